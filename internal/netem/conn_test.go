package netem_test

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/netem"
)

// The interface of pion/ice without allocations, and that of UDP sockets for setting a receive buffer.
var (
	_ net.PacketConn = (*netem.Conn)(nil)
	_ interface {
		ReadFromAddrPort(b []byte) (int, netip.AddrPort, error)
		WriteToAddrPort(b []byte, addr netip.AddrPort) (int, error)
	} = (*netem.Conn)(nil)
	_ interface{ SetReadBuffer(bytes int) error } = (*netem.Conn)(nil)
)

func TestReceiveBufferIsBounded(t *testing.T) {
	n := newNetwork(t, 1)
	a, b := listen(t, n, "10.0.0.1:1"), listen(t, n, "10.0.0.3:1")
	if err := b.SetReadBuffer(3000); err != nil {
		t.Fatal(err)
	}
	payload := strings.Repeat("x", 1000)
	for range 5 {
		write(t, a, payload, b.LocalAddr())
	}
	if s := b.Stats(); s.Received != 3 || s.DroppedBuffer != 2 {
		t.Errorf("%+v, expected 3 received and 2 dropped", s)
	}
	expectRead(t, b, payload, a.LocalAddr())
	write(t, a, payload, b.LocalAddr())
	if s := b.Stats(); s.Received != 4 || s.DroppedBuffer != 2 {
		t.Errorf("%+v, expected room again after a read", s)
	}
	for _, wrong := range []int{0, -1, 1<<30 + 1} {
		if err := b.SetReadBuffer(wrong); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("SetReadBuffer(%d): %v, expected EINVAL", wrong, err)
		}
	}
}

func TestShortReadLosesTheRest(t *testing.T) {
	n := newNetwork(t, 1)
	a, b := listen(t, n, "10.0.0.1:1"), listen(t, n, "10.0.0.3:1")
	write(t, a, "long packet", b.LocalAddr())
	write(t, a, "", b.LocalAddr())
	small := make([]byte, 4)
	if got, source, err := b.ReadFromAddrPort(small); err != nil || string(small[:got]) != "long" ||
		source.String() != "10.0.0.1:1" {
		t.Errorf("read %q from %s, %v; expected the first four bytes", small[:got], source, err)
	}
	expectRead(t, b, "", a.LocalAddr())
}

func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, 1)
		c := listen(t, n, "10.0.0.1:1")
		b := make([]byte, 10)
		expectTimeout := func(err error) {
			t.Helper()
			var netErr net.Error
			if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &netErr) || !netErr.Timeout() ||
				!os.IsTimeout(err) {
				t.Fatalf("error %v, expected a timeout", err)
			}
		}
		set := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		set(c.SetReadDeadline(start.Add(50 * time.Millisecond)))
		_, _, err := c.ReadFrom(b)
		expectTimeout(err)
		expectElapsed(t, start, 50*time.Millisecond)

		// As with a UDP socket, a passed deadline has precedence over received packets.
		write(t, c, "x", c.LocalAddr())
		_, _, err = c.ReadFrom(b)
		expectTimeout(err)
		set(c.SetReadDeadline(time.Time{}))
		expectRead(t, c, "x", c.LocalAddr())

		// A deadline that changes while a reader waits applies to that reader.
		set(c.SetDeadline(start.Add(time.Hour)))
		go func() {
			time.Sleep(10 * time.Millisecond)
			_ = c.SetDeadline(time.Now())
		}()
		_, _, err = c.ReadFrom(b)
		expectTimeout(err)
		expectElapsed(t, start, 60*time.Millisecond)
		_, err = c.WriteTo(b, c.LocalAddr())
		expectTimeout(err)
		set(c.SetWriteDeadline(time.Time{}))
		write(t, c, "x", c.LocalAddr())
	})
}

func TestCloseWakesReaders(t *testing.T) {
	for name, closing := range map[string]func(n *netem.Network, c *netem.Conn) error{
		"socket":  func(_ *netem.Network, c *netem.Conn) error { return c.Close() },
		"network": func(n *netem.Network, _ *netem.Conn) error { return n.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t, 1)
				setAccess(t, n, clientAddr, netem.Config{Delay: time.Second}, netem.Config{})
				c := listen(t, n, "10.0.0.2:1")
				write(t, c, "under way", &net.UDPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 9})
				errs := make(chan error)
				for range 3 {
					go func() {
						_, _, err := c.ReadFrom(make([]byte, 10))
						errs <- err
					}()
				}
				synctest.Wait()
				if err := closing(n, c); err != nil {
					t.Fatal(err)
				}
				for range 3 {
					if err := <-errs; !errors.Is(err, net.ErrClosed) {
						t.Errorf("read: %v, expected net.ErrClosed", err)
					}
				}
				_, err := c.WriteTo([]byte("x"), c.LocalAddr())
				for what, err := range map[string]error{
					"write": err, "close": c.Close(), "read deadline": c.SetReadDeadline(time.Time{}),
					"write deadline": c.SetWriteDeadline(time.Time{}), "deadline": c.SetDeadline(time.Time{}),
				} {
					if !errors.Is(err, net.ErrClosed) {
						t.Errorf("%s: %v, expected net.ErrClosed", what, err)
					}
				}
			})
		})
	}
}

func TestAddresses(t *testing.T) {
	n := newNetwork(t, 1)
	first, second := listen(t, n, "10.0.0.1:0"), listen(t, n, "10.0.0.1:0")
	if first.LocalAddr().String() != "10.0.0.1:49152" || second.LocalAddr().String() != "10.0.0.1:49153" {
		t.Errorf("ports taken are %s and %s, expected 49152 and 49153", first.LocalAddr(), second.LocalAddr())
	}
	if _, ok := first.LocalAddr().(*net.UDPAddr); !ok {
		t.Errorf("local address is a %T, expected *net.UDPAddr", first.LocalAddr())
	}
	if _, err := n.Listen(netip.MustParseAddrPort("10.0.0.1:49152")); !errors.Is(err, netem.ErrAddressInUse) {
		t.Errorf("second socket on a port: %v, expected ErrAddressInUse", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again := listen(t, n, "[::ffff:10.0.0.1]:49152")
	if again.LocalAddr().String() != "10.0.0.1:49152" {
		t.Errorf("local address %s, expected the IPv4 address that was mapped", again.LocalAddr())
	}
	for _, wrong := range []string{"0.0.0.0:1", "[::]:1", "224.0.0.1:1"} {
		addrPort := netip.MustParseAddrPort(wrong)
		if _, err := n.Listen(addrPort); !errors.Is(err, netem.ErrAddress) {
			t.Errorf("Listen(%s): %v, expected ErrAddress", wrong, err)
		}
		if err := n.SetAccess(addrPort.Addr(), netem.Config{}, netem.Config{}); !errors.Is(err, netem.ErrAddress) {
			t.Errorf("SetAccess(%s): %v, expected ErrAddress", wrong, err)
		}
	}
	for _, wrong := range []net.Addr{nil, (*net.UDPAddr)(nil), &net.TCPAddr{}, &net.UDPAddr{},
		&net.UDPAddr{IP: net.ParseIP("::1"), Port: 1}, &net.UDPAddr{IP: net.IPv4(10, 0, 0, 1)}} {
		if _, err := again.WriteTo(nil, wrong); !errors.Is(err, netem.ErrAddress) {
			t.Errorf("WriteTo(%v): %v, expected ErrAddress", wrong, err)
		}
	}
	if _, err := again.WriteTo(make([]byte, 65508), second.LocalAddr()); !errors.Is(err, syscall.EMSGSIZE) {
		t.Errorf("65508 bytes: %v, expected EMSGSIZE", err)
	}
	write(t, again, "nobody", &net.UDPAddr{IP: net.IPv4(10, 0, 0, 9), Port: 1})
	write(t, again, "nobody", &net.UDPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1})
	if s := n.Stats(); s.Unreachable != 2 {
		t.Errorf("%d unreachable, expected 2", s.Unreachable)
	}
}

// readECN reads one packet with its codepoint.
func readECN(t *testing.T, c *netem.Conn) (string, ecn.Codepoint) {
	t.Helper()
	b := make([]byte, 2000)
	n, _, codepoint, err := c.ReadECN(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n]), codepoint
}

// TestCodepointsPass: a packet arrives with its codepoint, and the packet after it without.
func TestCodepointsPass(t *testing.T) {
	n := newNetwork(t, 1)
	a, b := listen(t, n, "10.0.0.1:1"), listen(t, n, "10.0.0.3:1")
	to := netip.MustParseAddrPort("10.0.0.3:1")
	for _, codepoint := range []ecn.Codepoint{ecn.CE, ecn.NotECT, ecn.ECT1, ecn.ECT0} {
		if _, err := a.WriteECN([]byte("x"), to, codepoint); err != nil {
			t.Fatal(err)
		}
		write(t, a, "y", b.LocalAddr())
		if payload, got := readECN(t, b); payload != "x" || got != codepoint {
			t.Errorf("%q arrived as %v, expected %q as %v", payload, got, "x", codepoint)
		}
		if payload, got := readECN(t, b); payload != "y" || got != ecn.NotECT {
			t.Errorf("%q arrived as %v, expected %q as %v", payload, got, "y", ecn.NotECT)
		}
	}
}

// TestQueuesMarkPacketsOfConns overloads a DualPI2 queue: exactly the packets that the queue has marked arrive as CE.
func TestQueuesMarkPacketsOfConns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, 1)
		a, b := listen(t, n, "10.0.0.1:1"), listen(t, n, "10.0.0.3:1")
		to := netip.MustParseAddrPort("10.0.0.3:1")
		config := netem.Config{RateBPS: 10e6, Queue: netem.QueueDualPI2, QueueBytes: 1 << 20}
		setAccess(t, n, to.Addr(), netem.Config{}, config)
		payload := make([]byte, 1000)
		const count = 100
		for range count {
			if _, err := a.WriteECN(payload, to, ecn.ECT1); err != nil {
				t.Fatal(err)
			}
		}
		marked := uint64(0)
		for range count {
			switch _, codepoint := readECN(t, b); codepoint {
			case ecn.CE:
				marked++
			case ecn.ECT1:
			default:
				t.Errorf("a packet arrived as %v", codepoint)
			}
		}
		_, down := n.AccessStats(to.Addr())
		if marked == 0 || marked == count || marked != down.Marked {
			t.Errorf("%d of %d packets arrived as CE, %d were marked", marked, count, down.Marked)
		}
	})
}
