package turnserver

import (
	"bufio"
	"bytes"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/stun/v4"
	"github.com/pion/turn/v5"
)

// newFilter returns a filter that counts nothing.
func newFilter() *filter {
	return &filter{
		isMedia: func(a netip.AddrPort) bool { return a.Addr() == netip.MustParseAddr("203.0.113.5") }, port: 7882,
		refuse: func(refusal) {}, requests: requestRate.Sources(),
	}
}

func addMessages(f *testing.F) {
	for _, setters := range [][]stun.Setter{
		{stun.TransactionID, stun.BindingRequest},
		{stun.TransactionID, stun.NewType(stun.MethodAllocate, stun.ClassRequest), stun.NewUsername("1:ada")},
		{stun.TransactionID, stun.NewType(stun.MethodChannelBind, stun.ClassRequest),
			peerAddress{IP: net.IPv4(203, 0, 113, 5), Port: 7882}},
		{stun.TransactionID, stun.NewType(stun.MethodSend, stun.ClassIndication)},
	} {
		m, err := stun.Build(setters...)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(m.Raw)
	}
	f.Add([]byte{0x40, 0, 0, 3, 1, 2, 3, 0})
	f.Add([]byte{0x7f, 0xff, 0xff, 0xff})
}

// peerAddress is the attribute XOR-PEER-ADDRESS.
type peerAddress stun.XORMappedAddress

func (p peerAddress) AddTo(m *stun.Message) error {
	return stun.XORMappedAddress(p).AddToAs(m, stun.AttrXORPeerAddress)
}

// FuzzMessage: what the filter admits has the length in its header, and is a request that the server offers, or data.
func FuzzMessage(f *testing.F) {
	addMessages(f)
	from := netip.MustParseAddr("203.0.113.9")
	f.Fuzz(func(t *testing.T, b []byte) {
		if !newFilter().admits(b, from, time.Now()) {
			return
		}
		length, ok := messageLength(b)
		if !ok || len(b) > length || b[0]>>6 == 0 && (len(b) != length || !stun.IsMessage(b)) {
			t.Errorf("%x is admitted, and has a length of %d, %t", b, length, ok)
		}
	})
}

// addStreams adds streams that Pion would divide into other messages than the filter: data that begin with the cookie
// of STUN, before data with a request for a connection to a peer, and data shorter than Pion's least message.
func addStreams(f *testing.F) {
	request, err := stun.Build(stun.TransactionID, stun.NewType(stun.MethodConnect, stun.ClassRequest))
	if err != nil {
		f.Fatal(err)
	}
	// Pion takes the first data for a message of 16 bytes with a header, whose rest it takes from the second data.
	first := append([]byte{0x40, 0, 0, 16, 0x21, 0x12, 0xa4, 0x42}, make([]byte, 12)...)
	second := append(make([]byte, stunHeader-2*channelHeader), request.Raw...)
	f.Add(slices.Concat(first, []byte{0x40, 0, 0, byte(len(second))}, second))
	f.Add([]byte{0x40, 0, 0, 0, 0x40, 0, 0, 4, 1, 2, 3, 4, 0x40, 0, 0, 0, 0x40, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8})
}

// FuzzStream: whatever a client sends, a connection returns whole messages, each in one piece, or ends. Pion sees these
// messages and no others.
func FuzzStream(f *testing.F) {
	addMessages(f)
	addStreams(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		buffer, rest := make([]byte, 1600), b
		var messages [][]byte
		for c := newStream(b); ; {
			n, err := c.Read(buffer)
			if err != nil {
				break
			}
			if n > maxMessage || !bytes.HasPrefix(rest, buffer[:n]) {
				t.Fatalf("read %x, expected the beginning of %x", buffer[:n], rest)
			}
			if kind, _ := kindOf(buffer[:n]); kind == messageUnknown {
				t.Errorf("%x is no message", buffer[:n])
			}
			messages = append(messages, slices.Clone(buffer[:n]))
			rest = rest[n:]
		}
		pion := turn.NewSTUNConn(newStream(b))
		for i := 0; ; i++ {
			n, _, err := pion.ReadFrom(buffer)
			if err != nil {
				return
			}
			if i == len(messages) || !bytes.Equal(buffer[:n], messages[i]) {
				t.Fatalf("Pion reads %x as message %d of %x", buffer[:n], i, messages)
			}
		}
	})
}

// newStream returns a connection over which a client has sent b.
func newStream(b []byte) *connection {
	s := &Server{filter: newFilter(), refused: make(map[refusal]*atomic.Uint64)}
	for _, why := range refusals {
		s.refused[why] = new(atomic.Uint64)
	}
	return &connection{
		Conn: silent{}, connections: &connections{server: s}, reader: bufio.NewReader(bytes.NewReader(b)),
	}
}

// silent is a connection whose deadlines have no effect.
type silent struct{ net.Conn }

func (silent) SetReadDeadline(time.Time) error { return nil }
func (silent) RemoteAddr() net.Addr            { return &net.TCPAddr{} }

// TestAttributes: an attribute has a length that its reader expects.
func TestAttributes(t *testing.T) {
	for length, admitted := range map[int]bool{0: false, 3: false, 4: true, 5: false, 8: false} {
		m, err := stun.Build(stun.TransactionID, stun.NewType(stun.MethodRefresh, stun.ClassRequest),
			stun.RawAttribute{Type: stun.AttrLifetime, Value: make([]byte, length)})
		if err != nil {
			t.Fatal(err)
		}
		if got := newFilter().admits(m.Raw, netip.MustParseAddr("203.0.113.9"), time.Now()); got != admitted {
			t.Errorf("a lifetime of %d bytes is admitted: %t, expected %t", length, got, admitted)
		}
	}
}

// TestChannels: a channel leads to the media port only.
func TestChannels(t *testing.T) {
	for address, admitted := range map[string]bool{
		"203.0.113.5:7882": true,
		"203.0.113.5:22":   false,
		// Pion refuses the address, with an answer.
		"203.0.113.6:22": true,
	} {
		to := netip.MustParseAddrPort(address)
		m, err := stun.Build(stun.TransactionID, stun.NewType(stun.MethodChannelBind, stun.ClassRequest),
			peerAddress{IP: to.Addr().AsSlice(), Port: int(to.Port())})
		if err != nil {
			t.Fatal(err)
		}
		if got := newFilter().admits(m.Raw, netip.MustParseAddr("203.0.113.9"), time.Now()); got != admitted {
			t.Errorf("a channel to %s is admitted: %t, expected %t", address, got, admitted)
		}
	}
}

// TestRequestRate: an address that floods is refused, and another one is not.
func TestRequestRate(t *testing.T) {
	f, now := newFilter(), time.Now()
	m, err := stun.Build(stun.TransactionID, stun.BindingRequest)
	if err != nil {
		t.Fatal(err)
	}
	admitted := 0
	for range 10 * requestRate.Burst {
		if f.admits(m.Raw, netip.MustParseAddr("203.0.113.9"), now) {
			admitted++
		}
	}
	if admitted != requestRate.Burst || !f.admits(m.Raw, netip.MustParseAddr("203.0.113.10"), now) {
		t.Errorf("%d requests of a flood are admitted, expected %d", admitted, requestRate.Burst)
	}
}
