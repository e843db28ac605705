package middlebox

// Firewall passes packets of TCP and UDP to and from some ports in front of it, and drops all others.
type Firewall struct {
	// UDP and TCP report whether packets to a port pass. nil passes none.
	UDP, TCP func(port uint16) bool
}

// AnyPort passes all ports.
func AnyPort(uint16) bool { return true }

// Port passes one port.
func Port(number uint16) func(uint16) bool { return func(port uint16) bool { return port == number } }

// Outbound implements Box.
func (f Firewall) Outbound(packet []byte) bool { return f.passes(packet, destination) }

// Inbound implements Box.
func (f Firewall) Inbound(packet []byte) bool { return f.passes(packet, source) }

// passes reports whether a packet passes, by the port at its end in front of the firewall.
func (f Firewall) passes(packet []byte, remote end) bool {
	d, ok := parse(packet)
	if !ok {
		return false
	}
	passes := f.UDP
	if d.protocol == protocolTCP {
		passes = f.TCP
	}
	return passes != nil && passes(d.address(remote).Port())
}

// MTU drops packets that are longer, in bytes, without a message to the sender.
type MTU int

// Outbound implements Box.
func (m MTU) Outbound(packet []byte) bool { return len(packet) <= int(m) }

// Inbound implements Box.
func (m MTU) Inbound(packet []byte) bool { return len(packet) <= int(m) }
