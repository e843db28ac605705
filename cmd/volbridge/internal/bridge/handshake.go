package bridge

import (
	"net/netip"
	"time"
)

const (
	// readyInterval is the interval of ready datagrams to a connector that has not answered.
	readyInterval = 100 * time.Millisecond
	// probeAfter is the silence after which a connector is probed by a ready datagram each probeInterval. VR2Gather's
	// connector and Unity's package answer every ready datagram, even if they have nothing to send.
	probeAfter    = 2 * time.Second
	probeInterval = time.Second
	// silenceTimeout is the silence after which a connector is sent nothing and another connector may take its place.
	// Before that, the connector is probed three times, at 2, 3 and 4 s, so that one lost datagram does not end the
	// connection.
	silenceTimeout = 5 * time.Second
)

// Handshake finds the address of the connector. The ready datagram is repeated until an answer arrives, with any
// content. The source of the answer is the connector's address. A silent connector is sent ready datagrams again and
// may then answer from another address.
//
// If a secret is required, the answer must present the secret, and so must the first datagram after a silence.
type Handshake struct {
	// expected is the address at which the connector is expected.
	expected netip.AddrPort
	// secret is the secret that the connector must present, nil for none.
	secret *Secret
	// peer is the address of the connector, invalid before the first answer.
	peer netip.AddrPort
	// lastReceived is the time of the last datagram from the connector, lastReady the time of the last ready datagram
	// to the connector.
	lastReceived, lastReady time.Time
}

// NewHandshake returns a handshake that expects the connector at the given address.
func NewHandshake(expected netip.AddrPort) *Handshake { return &Handshake{expected: expected} }

// Require makes the connector present a secret.
func (h *Handshake) Require(secret *Secret) { h.secret = secret }

// Ready appends the addresses to which a ready datagram is to be sent now; none if it is not due.
func (h *Handshake) Ready(now time.Time, to []netip.AddrPort) []netip.AddrPort {
	interval := readyInterval
	if h.peer.IsValid() {
		if now.Sub(h.lastReceived) < probeAfter {
			return to
		}
		interval = probeInterval
	}
	if !h.lastReady.IsZero() && now.Sub(h.lastReady) < interval {
		return to
	}
	h.lastReady = now
	if h.peer.IsValid() && h.peer != h.expected {
		to = append(to, h.peer)
		if !h.silent(now) {
			return to
		}
	}
	return append(to, h.expected)
}

// Received records a datagram without a secret. Received reports whether the datagram is from the connector.
func (h *Handshake) Received(from netip.AddrPort, now time.Time) bool {
	if h.secret != nil && (from != h.peer || h.silent(now)) {
		return false
	}
	return h.admit(from, now)
}

// Presented records a datagram that presents a secret. Presented returns true if the datagram is from the connector,
// and the reason of the drop otherwise. If no secret is required, any secret is accepted.
func (h *Handshake) Presented(from netip.AddrPort, secret []byte, now time.Time) (reason Drop, ok bool) {
	if h.secret != nil && !h.secret.equals(secret) {
		return DropSecret, false
	}
	return DropSource, h.admit(from, now)
}

// admit makes the sender the connector, unless there is another connector that is not silent.
func (h *Handshake) admit(from netip.AddrPort, now time.Time) bool {
	if h.peer.IsValid() && from != h.peer && !h.silent(now) {
		return false
	}
	h.peer, h.lastReceived = from, now
	return true
}

// Peer returns the address of the connector. Peer returns false before the first answer.
func (h *Handshake) Peer() (peer netip.AddrPort, ok bool) { return h.peer, h.peer.IsValid() }

// Receiver returns the address to which media for the connector is sent. Receiver returns false before the first answer
// and while the connector is silent.
func (h *Handshake) Receiver(now time.Time) (receiver netip.AddrPort, ok bool) {
	return h.peer, h.peer.IsValid() && !h.silent(now)
}

func (h *Handshake) silent(now time.Time) bool { return now.Sub(h.lastReceived) >= silenceTimeout }
