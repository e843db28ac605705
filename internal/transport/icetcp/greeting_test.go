package icetcp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/pion/logging"
	"github.com/pion/stun/v4"

	"github.com/volsfu/volsfu/internal/description"
	"github.com/volsfu/volsfu/internal/transport/ratelimit"
)

func TestGreeting(t *testing.T) {
	build := func(setters ...stun.Setter) []byte {
		message, err := stun.Build(append([]stun.Setter{stun.TransactionID}, setters...)...)
		if err != nil {
			t.Fatal(err)
		}
		return framed(message.Raw)
	}
	for _, test := range []struct {
		name  string
		bytes []byte
		peer  string
		valid bool
	}{
		{"a request for ada", bindingRequest(t, "ada"), "ada", true},
		{"a response", build(stun.BindingSuccess, stun.NewUsername("ada:x")), "", false},
		{"a request for nobody", build(stun.BindingRequest), "", false},
		{"a name without a colon", build(stun.BindingRequest, stun.NewUsername("ada")), "", false},
		{"an empty name", build(stun.BindingRequest, stun.NewUsername(":x")), "", false},
		{"another method", build(stun.NewType(stun.MethodAllocate, stun.ClassRequest), stun.NewUsername("ada:x")), "",
			false},
		{"nothing", framed(nil), "", false},
		{"no STUN", framed([]byte("GET / HTTP/1.1")), "", false},
		{"too much", framed(make([]byte, maxGreeting+1)), "", false},
	} {
		// Byte by byte, as the greeting may arrive.
		var g greeting
		var peer string
		var whole bool
		var err error
		for _, b := range test.bytes {
			if peer, whole, err = g.add([]byte{b}); whole || err != nil {
				break
			}
		}
		if peer != test.peer || whole != test.valid || errors.Is(err, errGreeting) == test.valid {
			t.Errorf("%s: got %q, whole %v, %v", test.name, peer, whole, err)
		}
	}
	request := bindingRequest(t, "ada")
	var g greeting
	if _, whole, err := g.add(request[:len(request)-1]); whole || err != nil {
		t.Errorf("a packet that is cut off: whole %v, %v", whole, err)
	}
}

// TestLongestGreeting connects with the largest binding request that a client may send: after this package, Pion's mux
// has to read the request, too.
func TestLongestGreeting(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	logs := logging.NewDefaultLoggerFactory()
	logs.DefaultLogLevel = logging.LogLevelDisabled
	rate := ratelimit.Rate{PerSecond: 100, Burst: checkBurst}
	mux := Serve(inner, Config{
		Connections: 10, AddressConnections: 10, PeerChecks: rate, AddressChecks: rate, Failed: func(error) {},
		Logs: logs,
	})
	defer func() { _ = mux.Close() }()
	const ufragLength = 16 // Pion's
	ours := strings.Repeat("o", ufragLength)
	packets, err := mux.GetConnByUfrag(ours, false, net.IPv4(127, 0, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	raw := func(kind stun.AttrType, length int) stun.Setter {
		return stun.RawAttribute{Type: kind, Value: bytes.Repeat([]byte("s"), length)}
	}
	const networkCost, nomination = 0xc057, 0xc001 // of browsers
	request, err := stun.Build(stun.TransactionID, stun.BindingRequest,
		stun.NewUsername(ours+":"+strings.Repeat("t", description.MaxUfrag)),
		raw(stun.AttrPriority, 4), raw(stun.AttrICEControlling, 8), raw(stun.AttrUseCandidate, 0),
		raw(networkCost, 4), raw(nomination, 4), raw(stun.AttrSoftware, 127),
		stun.NewShortTermIntegrity("password"), raw(stun.AttrMessageIntegritySHA256, 32), stun.Fingerprint)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(framed(request.Raw)); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 2*maxGreeting)
	// A packet that is lost must not let the test wait for its own time limit.
	defer time.AfterFunc(time.Minute, func() { _ = packets.Close() }).Stop()
	if n, _, err := packets.ReadFrom(buffer); err != nil || !bytes.Equal(buffer[:n], request.Raw) {
		t.Errorf("%d bytes were read and %v, expected the request of %d bytes", n, err, len(request.Raw))
	}
}

// FuzzGreeting splits the greeting at any place.
func FuzzGreeting(f *testing.F) {
	f.Add(bindingRequest(f, "ada"), 7)
	f.Add(framed([]byte("GET / HTTP/1.1")), 1)
	f.Add(binary.BigEndian.AppendUint16(nil, maxGreeting), 0)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		var at, once greeting
		cut = min(max(cut, 0), len(data))
		name, whole, err := at.add(data[:cut])
		if !whole && err == nil {
			name, whole, err = at.add(data[cut:])
		}
		if err != nil && !errors.Is(err, errGreeting) || whole != (name != "") {
			t.Fatalf("got %q, whole %v, %v", name, whole, err)
		}
		if n, w, e := once.add(data); n != name || w != whole || (e == nil) != (err == nil) {
			t.Fatalf("cut at %d: %q, %v, %v; at once: %q, %v, %v", cut, name, whole, err, n, w, e)
		}
	})
}
