package bridge

import (
	"net/netip"
	"time"
)

const (
	// readyInterval is the interval of ready datagrams to a connector that has not answered.
	readyInterval = 100 * time.Millisecond
	// askAfter is the silence after which a connector is asked whether it lives, by a ready datagram each askInterval.
	// VR2Gather's connector and Unity's package answer every ready datagram, also if they have nothing to send.
	askAfter    = 2 * time.Second
	askInterval = time.Second
	// silence is the silence after which nothing is sent to a connector and another one may take its place. The
	// connector is asked three times before, at 2, 3 and 4 s, so that one lost datagram does not count as the
	// connector's end.
	silence = 5 * time.Second
)

// Handshake finds the connector. The ready datagram is repeated until there is an answer, whatever it says, and the
// connector is at the address that the answer came from. A connector that falls silent is told again, and may then come
// from another address.
//
// With a secret the answer has to present the secret, and so does the first datagram after a silence.
type Handshake struct {
	// home is where the connector is expected.
	home netip.AddrPort
	// secret is what the connector has to present, nil if nothing.
	secret *Secret
	// peer is where it is, invalid before the first answer.
	peer netip.AddrPort
	// heard is when it was heard last, told when a ready datagram was sent last.
	heard, told time.Time
}

// NewHandshake expects the connector at an address.
func NewHandshake(home netip.AddrPort) *Handshake { return &Handshake{home: home} }

// Require has the connector present a secret.
func (h *Handshake) Require(secret *Secret) { h.secret = secret }

// Ready appends the addresses that a ready datagram is to be sent to by now; none where it is not due.
func (h *Handshake) Ready(now time.Time, to []netip.AddrPort) []netip.AddrPort {
	interval := readyInterval
	if h.peer.IsValid() {
		if now.Sub(h.heard) < askAfter {
			return to
		}
		interval = askInterval
	}
	if !h.told.IsZero() && now.Sub(h.told) < interval {
		return to
	}
	h.told = now
	if h.peer.IsValid() && h.peer != h.home {
		to = append(to, h.peer)
		if !h.silent(now) {
			return to
		}
	}
	return append(to, h.home)
}

// Heard notes a datagram that a connector may have sent, and reports whether it is the connector's.
func (h *Handshake) Heard(from netip.AddrPort, now time.Time) bool {
	if h.secret != nil && (from != h.peer || h.silent(now)) {
		return false
	}
	return h.admit(from, now)
}

// Presented notes a datagram that presents a secret, and returns the reason for which it is dropped. It is ok if the
// datagram is the connector's. Without a secret to compare with, any will do.
func (h *Handshake) Presented(from netip.AddrPort, secret []byte, now time.Time) (reason Drop, ok bool) {
	if h.secret != nil && !h.secret.equals(secret) {
		return DropSecret, false
	}
	return DropSource, h.admit(from, now)
}

// admit takes the sender as the connector unless there is another that is not silent.
func (h *Handshake) admit(from netip.AddrPort, now time.Time) bool {
	if h.peer.IsValid() && from != h.peer && !h.silent(now) {
		return false
	}
	h.peer, h.heard = from, now
	return true
}

// Peer is where the connector is. It is not ok before the first answer.
func (h *Handshake) Peer() (peer netip.AddrPort, ok bool) { return h.peer, h.peer.IsValid() }

// Receiver is the address that media for the connector is sent to. It is not ok before the first answer, and while the
// connector is silent.
func (h *Handshake) Receiver(now time.Time) (receiver netip.AddrPort, ok bool) {
	return h.peer, h.peer.IsValid() && !h.silent(now)
}

func (h *Handshake) silent(now time.Time) bool { return now.Sub(h.heard) >= silence }
