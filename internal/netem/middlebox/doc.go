// Package middlebox emulates network address translators and firewalls: boxes that change or drop the IP packets of the
// hosts behind them (RFC 4787, RFC 5382). A box is pure and has neither goroutine nor lock. router.Interface.Box puts a
// box in front of an interface of an emulated network.
package middlebox

// Box changes or drops packets. Outbound is called for a packet from the hosts behind the box, Inbound for a packet to
// them. Both may change the packet in place, and report whether the packet passes.
type Box interface {
	Outbound(packet []byte) bool
	Inbound(packet []byte) bool
}

// Chain is a row of boxes, the one next to the hosts first.
type Chain []Box

// Outbound implements Box.
func (c Chain) Outbound(packet []byte) bool {
	for _, b := range c {
		if !b.Outbound(packet) {
			return false
		}
	}
	return true
}

// Inbound implements Box.
func (c Chain) Inbound(packet []byte) bool {
	for i := len(c) - 1; i >= 0; i-- {
		if !c[i].Inbound(packet) {
			return false
		}
	}
	return true
}
