package middlebox

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
)

// made returns a packet of IPv4 with valid checksums.
func made(protocol byte, from, to netip.AddrPort) []byte {
	size := 8
	if protocol == protocolTCP {
		size = 20
	}
	p := make([]byte, header4Bytes+size+5)
	p[0], p[8], p[9] = 0x45, 64, protocol
	binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
	source, destination := from.Addr().As4(), to.Addr().As4()
	copy(p[12:], source[:])
	copy(p[16:], destination[:])
	binary.BigEndian.PutUint16(p[20:], from.Port())
	binary.BigEndian.PutUint16(p[22:], to.Port())
	copy(p[header4Bytes+size:], "hello")
	at := header4Bytes + checksumUDP
	if protocol == protocolTCP {
		at = header4Bytes + checksumTCP
	} else {
		binary.BigEndian.PutUint16(p[24:], uint16(size+5))
	}
	binary.BigEndian.PutUint16(p[10:], ^sum(p[:header4Bytes], 0))
	binary.BigEndian.PutUint16(p[at:], ^transportSum(p))
	return p
}

func sum(b []byte, sum uint32) uint16 {
	if len(b)%2 != 0 {
		b = append(bytes.Clone(b), 0)
	}
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}

// transportSum returns the sum of TCP or UDP and its pseudo header, 0xffff if the checksum is valid.
func transportSum(p []byte) uint16 {
	pseudo := append(bytes.Clone(p[12:20]), 0, p[9])
	return sum(append(pseudo, p[header4Bytes:]...), uint32(len(p)-header4Bytes))
}

func valid(p []byte) bool { return sum(p[:header4Bytes], 0) == 0xffff && transportSum(p) == 0xffff }

func ends(p []byte) (from, to netip.AddrPort) {
	d, _ := parse(p)
	return d.address(source), d.address(destination)
}

var (
	host     = netip.MustParseAddrPort("192.168.1.2:5000")
	server   = netip.MustParseAddrPort("203.0.113.5:7882")
	stranger = netip.MustParseAddrPort("203.0.113.9:9")
	external = netip.MustParseAddr("198.51.100.7")
)

// TestNAT: what the host sends comes from the NAT's address, answers return, and strangers do not reach the host.
func TestNAT(t *testing.T) {
	for _, symmetric := range []bool{false, true} {
		for _, protocol := range []byte{protocolUDP, protocolTCP} {
			n := NewNAT(external, symmetric)
			p := made(protocol, host, server)
			if !n.Outbound(p) || !valid(p) {
				t.Fatalf("the packet %x is dropped or has wrong checksums", p)
			}
			from, to := ends(p)
			if from.Addr() != external || to != server {
				t.Errorf("the packet is from %v to %v", from, to)
			}
			answer := made(protocol, server, from)
			if !n.Inbound(answer) || !valid(answer) {
				t.Fatal("the answer is dropped or has wrong checksums")
			}
			if _, to := ends(answer); to != host {
				t.Errorf("the answer is to %v, expected %v", to, host)
			}
			if n.Inbound(made(protocol, stranger, from)) {
				t.Error("a stranger's packet reached the host")
			}
			other := made(protocol, host, stranger)
			if !n.Outbound(other) {
				t.Fatal("a packet to another host is dropped")
			}
			if again, _ := ends(other); (again == from) == symmetric {
				t.Errorf("symmetric %t: the ports are %d and %d", symmetric, from.Port(), again.Port())
			}
		}
	}
}

// TestDoubleNAT: a packet passes two NATs and returns.
func TestDoubleNAT(t *testing.T) {
	boxes := Chain{NewNAT(netip.MustParseAddr("100.64.0.2"), false), NewNAT(external, true)}
	p := made(protocolUDP, host, server)
	if !boxes.Outbound(p) || !valid(p) {
		t.Fatal("the packet is dropped or has wrong checksums")
	}
	from, _ := ends(p)
	answer := made(protocolUDP, server, from)
	if !boxes.Inbound(answer) || !valid(answer) {
		t.Fatal("the answer is dropped or has wrong checksums")
	}
	if _, to := ends(answer); from.Addr() != external || to != host {
		t.Errorf("the packet is from %v, and the answer to %v", from, to)
	}
}

// TestNATIsBounded: a NAT whose ports are used up drops new flows and keeps the others.
func TestNATIsBounded(t *testing.T) {
	n := NewNAT(external, true)
	for i := range 2 * maxMappings {
		to := netip.AddrPortFrom(server.Addr(), uint16(i))
		if passed := n.Outbound(made(protocolUDP, host, to)); passed != (i < maxMappings) {
			t.Fatalf("flow %d passes: %t", i, passed)
		}
	}
	if !n.Outbound(made(protocolUDP, host, netip.AddrPortFrom(server.Addr(), 0))) {
		t.Error("an old flow is dropped")
	}
}

func TestFirewall(t *testing.T) {
	web := netip.AddrPortFrom(server.Addr(), 443)
	for name, test := range map[string]struct {
		box             Box
		udp, tcp, https bool
	}{
		"UDP blocked":    {Firewall{TCP: AnyPort}, false, true, true},
		"TCP 443 alone":  {Firewall{TCP: Port(443)}, false, false, true},
		"everything":     {Firewall{TCP: AnyPort, UDP: AnyPort}, true, true, true},
		"a narrow link":  {MTU(40), true, false, false},
		"a narrower one": {MTU(20), false, false, false},
	} {
		for _, c := range []struct {
			protocol byte
			to       netip.AddrPort
			passes   bool
		}{{protocolUDP, server, test.udp}, {protocolTCP, server, test.tcp}, {protocolTCP, web, test.https}} {
			if test.box.Outbound(made(c.protocol, host, c.to)) != c.passes ||
				test.box.Inbound(made(c.protocol, c.to, host)) != c.passes {
				t.Errorf("%s: protocol %d, port %d: expected %t in both directions", name, c.protocol, c.to.Port(),
					c.passes)
			}
		}
	}
}

// FuzzBoxes: no packet makes a box fail, and a NAT keeps valid checksums valid.
func FuzzBoxes(f *testing.F) {
	f.Add(made(protocolUDP, host, server))
	f.Add(made(protocolTCP, server, netip.AddrPortFrom(external, firstPort)))
	f.Add([]byte{0x60})
	f.Add([]byte{0x4f})
	f.Fuzz(func(t *testing.T, packet []byte) {
		n := NewNAT(external, true)
		box := Chain{Firewall{TCP: AnyPort, UDP: AnyPort}, MTU(1280), n}
		n.Outbound(made(protocolTCP, host, server))
		box.Inbound(bytes.Clone(packet))
		p := bytes.Clone(packet)
		passed := box.Outbound(p)
		d, ok := parse(packet)
		if passed && (!ok || !d.is4) {
			t.Errorf("%x passed", packet)
		}
		plain := len(packet) >= header4Bytes && packet[0] == 0x45 &&
			int(binary.BigEndian.Uint16(packet[2:])) == len(packet)
		if passed && plain && valid(packet) && !valid(p) {
			t.Errorf("%x became %x", packet, p)
		}
	})
}
