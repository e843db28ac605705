package bridge

import (
	"net/netip"
	"time"
)

const (
	// readyInterval is how often a connector that has not answered is told that the bridge is ready.
	readyInterval = 100 * time.Millisecond
	// silence is how long a connector may say nothing until it is told again: it may have been replaced by one that waits. Any that lives answers.
	silence = 5 * time.Second
	// againInterval is how often it is told then.
	againInterval = time.Second
)

// Handshake finds the connector. The ready datagram is repeated until there is an answer, whatever it says, and the connector is at the address that the
// answer came from. A connector that falls silent is told again, and may then come from another address.
type Handshake struct {
	// home is where the connector is expected.
	home netip.AddrPort
	// peer is where it is, invalid before the first answer.
	peer netip.AddrPort
	// heard is when it was heard last, told when a ready datagram was sent last.
	heard, told time.Time
}

// NewHandshake expects the connector at an address.
func NewHandshake(home netip.AddrPort) *Handshake { return &Handshake{home: home} }

// Ready appends the addresses that a ready datagram is to be sent to by now; none where it is not due.
func (h *Handshake) Ready(now time.Time, to []netip.AddrPort) []netip.AddrPort {
	interval := readyInterval
	if h.peer.IsValid() {
		if !h.silent(now) {
			return to
		}
		interval = againInterval
	}
	if !h.told.IsZero() && now.Sub(h.told) < interval {
		return to
	}
	h.told = now
	if h.peer.IsValid() && h.peer != h.home {
		to = append(to, h.peer)
	}
	return append(to, h.home)
}

// Heard takes note of a datagram that a connector may have sent, and tells whether it is the connector's.
func (h *Handshake) Heard(from netip.AddrPort, now time.Time) bool {
	if h.peer.IsValid() && from != h.peer && !h.silent(now) {
		return false
	}
	h.peer, h.heard = from, now
	return true
}

// Peer is where the connector is. It is not ok before the first answer.
func (h *Handshake) Peer() (peer netip.AddrPort, ok bool) { return h.peer, h.peer.IsValid() }

func (h *Handshake) silent(now time.Time) bool { return now.Sub(h.heard) >= silence }
