package netem_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
)

var (
	serverAddr = netip.MustParseAddr("10.0.0.1")
	clientAddr = netip.MustParseAddr("10.0.0.2")
)

func listen(t testing.TB, n *netem.Network, address string) *netem.Conn {
	t.Helper()
	c, err := n.Listen(netip.MustParseAddrPort(address))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newNetwork(t testing.TB, seed uint64) *netem.Network {
	n := netem.NewNetwork(seed)
	t.Cleanup(func() { _ = n.Close() })
	return n
}

func setAccess(t testing.TB, n *netem.Network, addr netip.Addr, up, down netem.Config) {
	t.Helper()
	if err := n.SetAccess(addr, up, down); err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, c *netem.Conn, payload string, to net.Addr) {
	t.Helper()
	if n, err := c.WriteTo([]byte(payload), to); err != nil || n != len(payload) {
		t.Fatalf("wrote %d bytes of %d: %v", n, len(payload), err)
	}
}

// expectRead reads one packet and checks its source.
func expectRead(t testing.TB, c *netem.Conn, payload string, from net.Addr) {
	t.Helper()
	b := make([]byte, 2000)
	n, source, err := c.ReadFrom(b)
	if err != nil {
		t.Fatal(err)
	}
	if string(b[:n]) != payload || source.String() != from.String() {
		t.Fatalf("read %q from %s, expected %q from %s", b[:n], source, payload, from)
	}
}

func expectElapsed(t testing.TB, since time.Time, expected time.Duration) {
	t.Helper()
	if elapsed := time.Since(since); elapsed != expected {
		t.Fatalf("%v have elapsed, expected %v", elapsed, expected)
	}
}

func TestRoundTripInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, 1)
		setAccess(t, n, clientAddr, netem.Config{Delay: 7 * time.Millisecond},
			netem.Config{Delay: 13 * time.Millisecond})
		server, client := listen(t, n, "10.0.0.1:5000"), listen(t, n, "10.0.0.2:6000")
		start := time.Now()
		write(t, client, "question", server.LocalAddr())
		expectRead(t, server, "question", client.LocalAddr())
		expectElapsed(t, start, 7*time.Millisecond)
		write(t, server, "answer", client.LocalAddr())
		expectRead(t, client, "answer", server.LocalAddr())
		expectElapsed(t, start, 20*time.Millisecond)
		up, down := n.AccessStats(clientAddr)
		if up.Delivered != 1 || up.DeliveredBytes != 8+28 || down.Delivered != 1 || down.DeliveredBytes != 6+28 {
			t.Errorf("uplink %+v, downlink %+v; expected one packet each, with 28 bytes of headers", up, down)
		}
	})
}

func TestTwoAccessLinksInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, 1)
		other := netip.MustParseAddr("2001:db8::3")
		home := netip.MustParseAddr("2001:db8::2")
		// 1,202 bytes and 48 of headers take 1 ms at 10 Mbit/s and 10 ms at 1 Mbit/s.
		setAccess(t, n, home, with(func(c *netem.Config) { c.Delay, c.RateBPS = 5*time.Millisecond, 10_000_000 }),
			netem.Config{})
		setAccess(t, n, other, netem.Config{},
			with(func(c *netem.Config) { c.Delay, c.RateBPS = 3*time.Millisecond, 1_000_000 }))
		a, b := listen(t, n, "[2001:db8::2]:1"), listen(t, n, "[2001:db8::3]:1")
		start := time.Now()
		payload := strings.Repeat("x", 1202)
		write(t, a, payload, b.LocalAddr())
		write(t, a, payload, b.LocalAddr())
		expectRead(t, b, payload, a.LocalAddr())
		expectElapsed(t, start, (1+5+10+3)*time.Millisecond)
		expectRead(t, b, payload, a.LocalAddr())
		expectElapsed(t, start, (1+5+10+10+3)*time.Millisecond)
	})
}

func TestWithoutAccessLinkPacketsArriveAtOnce(t *testing.T) {
	n := newNetwork(t, 1)
	a, b := listen(t, n, "10.0.0.1:1"), listen(t, n, "10.0.0.3:1")
	for i := range 100 {
		write(t, a, fmt.Sprint(i), b.LocalAddr())
	}
	if s := b.Stats(); s.Received != 100 || s.ReceivedBytes != 190 {
		t.Fatalf("%+v right after writing, expected 100 packets and 190 bytes", s)
	}
	for i := range 100 {
		expectRead(t, b, fmt.Sprint(i), a.LocalAddr())
	}
	// A host reaches itself without its access link, and even its own socket.
	setAccess(t, n, serverAddr, netem.Config{Loss: 1}, netem.Config{Loss: 1})
	write(t, a, "self", a.LocalAddr())
	expectRead(t, a, "self", a.LocalAddr())
}

func TestRealTime(t *testing.T) {
	n := newNetwork(t, 1)
	setAccess(t, n, clientAddr, netem.Config{Delay: 5 * time.Millisecond}, netem.Config{Delay: 5 * time.Millisecond})
	server, client := listen(t, n, "10.0.0.1:0"), listen(t, n, "10.0.0.2:0")
	start := time.Now()
	for i := range 3 {
		write(t, client, fmt.Sprint(i), server.LocalAddr())
		expectRead(t, server, fmt.Sprint(i), client.LocalAddr())
		write(t, server, fmt.Sprint(i), client.LocalAddr())
		expectRead(t, client, fmt.Sprint(i), server.LocalAddr())
	}
	if elapsed := time.Since(start); elapsed < 30*time.Millisecond {
		t.Errorf("three round trips of 10 ms took %v", elapsed)
	}
}

func TestAccessLinkIsSharedAndChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, 1)
		// 1,222 bytes and 28 of headers take 1 ms at 10 Mbit/s.
		payload := strings.Repeat("x", 1222)
		setAccess(t, n, clientAddr, with(func(c *netem.Config) { c.RateBPS = 10_000_000 }), netem.Config{})
		server, one, two := listen(t, n, "10.0.0.1:1"), listen(t, n, "10.0.0.2:1"), listen(t, n, "10.0.0.2:2")
		start := time.Now()
		for range 2 {
			write(t, one, payload, server.LocalAddr())
			write(t, two, payload, server.LocalAddr())
		}
		for i, from := range []*netem.Conn{one, two, one} {
			expectRead(t, server, payload, from.LocalAddr())
			expectElapsed(t, start, time.Duration(i+1)*time.Millisecond)
		}
		setAccess(t, n, clientAddr, netem.Config{}, netem.Config{})
		write(t, one, payload, server.LocalAddr())
		expectRead(t, server, payload, two.LocalAddr())
		expectRead(t, server, payload, one.LocalAddr())
		expectElapsed(t, start, 4*time.Millisecond) // the last packet of the slow link was in transmission
		setAccess(t, n, clientAddr, netem.Config{Loss: 1}, netem.Config{})
		write(t, one, payload, server.LocalAddr())
		if up, _ := n.AccessStats(clientAddr); up.LostRandom != 1 {
			t.Errorf("uplink %+v, expected one packet lost", up)
		}
	})
}

func TestAccessErrorsNameTheLink(t *testing.T) {
	n := newNetwork(t, 1)
	err := n.SetAccess(clientAddr, netem.Config{}, netem.Config{Loss: 3})
	if !errors.Is(err, netem.ErrConfig) || !strings.Contains(err.Error(), "downlink of 10.0.0.2") {
		t.Errorf("%v, expected ErrConfig that names the downlink", err)
	}
	err = n.SetAccess(clientAddr, netem.Config{Loss: -1}, netem.Config{})
	if !errors.Is(err, netem.ErrConfig) || !strings.Contains(err.Error(), "uplink of 10.0.0.2") {
		t.Errorf("%v, expected ErrConfig that names the uplink", err)
	}
	if up, down := n.AccessStats(clientAddr); up != (netem.Stats{}) || down != (netem.Stats{}) {
		t.Error("counters of a link that was not made")
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if err := n.SetAccess(clientAddr, netem.Config{}, netem.Config{}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("SetAccess after Close: %v", err)
	}
	if _, err := n.Listen(netip.MustParseAddrPort("10.0.0.1:1")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Listen after Close: %v", err)
	}
	if err := n.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("second Close: %v", err)
	}
}

func TestConcurrentUse(t *testing.T) {
	n := newNetwork(t, 1)
	const clients, count = 8, 200
	server := listen(t, n, "10.0.0.1:1")
	var wg sync.WaitGroup
	for i := range clients {
		addr := netip.AddrFrom4([4]byte{10, 0, 1, byte(i)})
		setAccess(t, n, addr, netem.Config{Delay: time.Duration(i) * 100 * time.Microsecond},
			netem.Config{Delay: time.Millisecond})
		c, err := n.Listen(netip.AddrPortFrom(addr, 7))
		if err != nil {
			t.Fatal(err)
		}
		wg.Add(2)
		go func() {
			defer wg.Done()
			for range count {
				if _, err := c.WriteTo([]byte("ping"), server.LocalAddr()); err != nil {
					t.Error(err)
				}
			}
		}()
		go func() {
			defer wg.Done()
			b := make([]byte, 100)
			for range count {
				if got, from, err := c.ReadFrom(b); err != nil || string(b[:got]) != "ping" ||
					from.String() != "10.0.0.1:1" {
					t.Errorf("read %q from %v, %v", b[:got], from, err)
				}
			}
		}()
	}
	b := make([]byte, 100)
	for range clients * count {
		got, from, err := server.ReadFromAddrPort(b)
		if err != nil || !bytes.Equal(b[:got], []byte("ping")) {
			t.Fatalf("read %q, %v", b[:got], err)
		}
		if _, err := server.WriteToAddrPort(b[:got], from); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
}
