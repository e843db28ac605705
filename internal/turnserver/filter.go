package turnserver

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/pion/stun/v4"

	"github.com/volsfu/volsfu/internal/panics"
	"github.com/volsfu/volsfu/internal/transport/ratelimit"
)

const (
	// maxMessage is the size of the largest message in bytes: an Ethernet frame has less room for UDP, and media
	// packets have at most 1,200 bytes. Pion ignores messages of 1,600 bytes and more.
	maxMessage = 1500
	// stunHeader and channelHeader are the sizes of the headers (RFC 8489 section 5, RFC 8656 section 12.4).
	stunHeader    = 20
	channelHeader = 4
)

// magicCookie is the cookie of STUN (RFC 8489 section 5).
var magicCookie = []byte{0x21, 0x12, 0xa4, 0x42}

// requestRate limits the requests of an address. A client makes an allocation with some five requests on each of three
// URLs, and refreshes it a few times per minute: 64 clients behind one NAT that join within a second send 1,000. A
// response is at most six times as long as the request, so a forged source address brings 200 × 120 bytes per second to
// its owner.
var requestRate = ratelimit.Rate{PerSecond: 200, Burst: 1000}

// message is the kind of a message from a client: a request, or data for the media port.
type message int

const (
	// messageUnknown is neither, and is dropped.
	messageUnknown message = iota
	messageRequest
	messageData
)

// methods are the requests that the server offers. Connections to peers (RFC 6062) are not among them.
var methods = []stun.Method{
	stun.MethodBinding, stun.MethodAllocate, stun.MethodRefresh, stun.MethodCreatePermission, stun.MethodChannelBind,
}

// messageLength returns the length of a message in bytes by its first channelHeader bytes, which includes the padding
// of a stream (RFC 8656 section 12.5). ok is false if the bytes begin no message.
func messageLength(head []byte) (length int, ok bool) {
	length = int(binary.BigEndian.Uint16(head[2:]))
	switch head[0] >> 6 {
	case 0:
		return stunHeader + length, length%4 == 0
	case 1:
		return channelHeader + (length+3)&^3, true
	}
	return 0, false
}

// kindOf returns the kind of a message.
func kindOf(b []byte) (kind message, method stun.Method) {
	if len(b) < channelHeader {
		return messageUnknown, 0
	}
	length, ok := messageLength(b)
	if !ok {
		return messageUnknown, 0
	}
	if b[0]>>6 == 1 {
		// Over UDP, the padding may be absent.
		if data := int(binary.BigEndian.Uint16(b[2:])); data > len(b)-channelHeader || len(b) > length {
			return messageUnknown, 0
		}
		// In a stream, Pion takes data that begin with the cookie of STUN for a STUN message, which is longer, and then
		// looks for the next message within the data of this one, behind the filter. No packet of media begins so: the
		// first byte is in the range of DTLS (RFC 7983), and no content type of DTLS.
		if bytes.HasPrefix(b[channelHeader:], magicCookie) {
			return messageUnknown, 0
		}
		return messageData, 0
	}
	if len(b) != length || !stun.IsMessage(b) {
		return messageUnknown, 0
	}
	var t stun.MessageType
	t.ReadValue(binary.BigEndian.Uint16(b))
	switch {
	case t.Class == stun.ClassRequest && slices.Contains(methods, t.Method):
		return messageRequest, t.Method
	case t.Class == stun.ClassIndication && t.Method == stun.MethodSend:
		return messageData, t.Method
	}
	return messageUnknown, 0
}

// filter decides which messages of clients are processed. It is safe for concurrent use.
type filter struct {
	// isMedia reports whether an address is one of the media port. port is the number of the media port.
	isMedia func(netip.AddrPort) bool
	port    uint16
	refuse  func(refusal)
	// guard confines panics in the decoder of STUN messages.
	guard *panics.Guard

	mu       sync.Mutex
	requests ratelimit.Sources
}

// attributes are the attributes of requests that Pion reads, with their shortest and longest values in bytes (RFC 8489
// section 14, RFC 8656 section 18). Pion answers requests with other attributes, or ignores these attributes.
var attributes = map[stun.AttrType]struct{ least, most int }{
	stun.AttrUsername: {1, 513}, stun.AttrRealm: {0, 763}, stun.AttrNonce: {0, 763},
	stun.AttrMessageIntegrity: {20, 20}, stun.AttrFingerprint: {4, 4},
	stun.AttrXORPeerAddress: {8, 20}, stun.AttrData: {0, maxMessage}, stun.AttrChannelNumber: {4, 4},
	stun.AttrLifetime: {4, 4}, stun.AttrRequestedTransport: {4, 4}, stun.AttrRequestedAddressFamily: {4, 4},
	stun.AttrEvenPort: {1, 1}, stun.AttrReservationToken: {8, 8}, stun.AttrDontFragment: {0, 0},
}

// admits reports whether a message from an address is processed. Refused messages are counted.
func (f *filter) admits(b []byte, from netip.Addr, now time.Time) bool {
	kind, method := kindOf(b)
	if kind == messageUnknown {
		f.refuse(refusedMethod)
		return false
	}
	if kind == messageRequest {
		f.mu.Lock()
		taken := f.requests.Take(from, now)
		f.mu.Unlock()
		if !taken {
			f.refuse(refusedRate)
			return false
		}
	}
	if b[0]>>6 != 0 {
		return true
	}
	why := refusedMethod
	f.guard.Try(PanicPlace, func() { why = f.refuses(b, method) })
	if why != "" {
		f.refuse(why)
	}
	return why == ""
}

// refuses returns the reason why a STUN message is not processed, empty if it is.
//
// Pion's goroutines decode the message again, and no guard helps against a panic there. What they decode has been
// decoded here by the same decoder, and each attribute has a length that its reader expects.
func (f *filter) refuses(b []byte, method stun.Method) refusal {
	// Pion's decoder writes behind the message.
	m := stun.Message{Raw: slices.Clone(b)}
	if m.Decode() != nil {
		return refusedMethod
	}
	for _, a := range m.Attributes {
		if bounds, read := attributes[a.Type]; read && (len(a.Value) < bounds.least || len(a.Value) > bounds.most) {
			return refusedMethod
		}
	}
	if method != stun.MethodChannelBind {
		return ""
	}
	return f.refusesChannel(&m)
}

// refusesChannel returns the reason why a request for a channel is not processed. Pion checks only the IP address of
// the peer, and keeps a channel for each port. The answer to a wrong IP address is Pion's.
func (f *filter) refusesChannel(m *stun.Message) refusal {
	var peer stun.XORMappedAddress
	if peer.GetFromAs(m, stun.AttrXORPeerAddress) != nil {
		return refusedMethod
	}
	ip, _ := netip.AddrFromSlice(peer.IP)
	if f.isMedia(netip.AddrPortFrom(ip.Unmap(), f.port)) && peer.Port != int(f.port) {
		return refusedPeer
	}
	return ""
}
