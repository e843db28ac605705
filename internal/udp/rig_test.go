package udp

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/test/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is the maximum time that a test waits for an expected event.
const patience = wait.Patience

var loopback4, loopback6 = netip.MustParseAddrPort("127.0.0.1:0"), netip.MustParseAddrPort("[::1]:0")

// variant is a way to open a port.
type variant struct {
	name string
	open func(t testing.TB, c Config) *Port
}

// listening opens ports with Listen and a changed configuration.
func listening(name string, change func(c *Config)) variant {
	return variant{name, func(t testing.TB, c Config) *Port {
		change(&c)
		return opened(t)(Listen(c))
	}}
}

// attached opens ports on a connection of the test.
func attached(name string, wrap func(*net.UDPConn) net.PacketConn) variant {
	return variant{name, func(t testing.TB, c Config) *Port {
		conn, err := net.ListenUDP(network(c.Address.Addr()), net.UDPAddrFromAddrPort(c.Address))
		if err != nil {
			t.Fatal(err)
		}
		return opened(t)(Attach(wrap(conn)))
	}}
}

// variants are all ways on this system.
func variants() []variant {
	return append([]variant{
		listening("as the system can", func(*Config) {}),
		listening("plain", func(c *Config) { c.PlainSending, c.PlainReceiving = true, true }),
		listening("plain sending", func(c *Config) { c.PlainSending = true }),
		listening("plain receiving", func(c *Config) { c.PlainReceiving = true }),
		attached("attached UDPConn", func(c *net.UDPConn) net.PacketConn { return c }),
		attached("attached AddrPort connection", func(c *net.UDPConn) net.PacketConn { return addrPortConn{c} }),
		attached("attached PacketConn", func(c *net.UDPConn) net.PacketConn { return struct{ net.PacketConn }{c} }),
	}, systemVariants()...)
}

// addrPortConn resembles a connection of an emulated network: not one of package net, but with methods that do not
// allocate.
type addrPortConn struct{ *net.UDPConn }

func (c addrPortConn) ReadFromAddrPort(b []byte) (int, netip.AddrPort, error) {
	return c.ReadFromUDPAddrPort(b)
}

func (c addrPortConn) WriteToAddrPort(b []byte, peer netip.AddrPort) (int, error) {
	return c.WriteToUDPAddrPort(b, peer)
}

// forEach runs a test with every variant on both ends.
func forEach(t *testing.T, test func(t *testing.T, open func(Config) *Port)) {
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) { test(t, func(c Config) *Port { return v.open(t, c) }) })
	}
}

// opened takes the results of Listen and Attach, and closes the port at the end of the test.
func opened(t testing.TB) func(*Port, error) *Port {
	return func(p *Port, err error) *Port {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
		return p
	}
}

// on6 skips a test if the system has no IPv6.
func on6(t *testing.T) {
	conn, err := net.ListenUDP("udp6", net.UDPAddrFromAddrPort(loopback6))
	if err != nil {
		t.Skipf("this system has no IPv6: %v", err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
}

// datagram returns a payload with a number and with different content at every position.
func datagram(number, length int) []byte {
	b := make([]byte, length)
	for i := range b {
		b[i] = byte(number*31 + i*7)
	}
	if length >= 4 {
		binary.BigEndian.PutUint32(b, uint32(number))
	}
	return b
}

// run returns a message of datagrams of one size, numbered from first on, with a last one of its own size.
func run(peer netip.AddrPort, first, count, length, last int) Message {
	m := Message{Peer: peer, Segment: length}
	for i := range count {
		size := length
		if i == count-1 {
			size = last
		}
		m.Data = append(m.Data, datagram(first+i, size)...)
	}
	return m
}

// taken is a received datagram.
type taken struct {
	peer    netip.AddrPort
	payload []byte
}

// take receives at least a number of datagrams, and fails the test if they do not arrive.
func take(t testing.TB, p *Port, s *Socket, count int) []taken {
	t.Helper()
	timer := time.AfterFunc(patience, func() { _ = p.Close() })
	defer timer.Stop()
	var got []taken
	for in := NewInbox(); len(got) < count; {
		if err := s.Receive(in); err != nil {
			t.Fatalf("after %d of %d datagrams: %v", len(got), count, err)
		}
		for _, m := range in.Messages() {
			for d := range m.Datagrams() {
				got = append(got, taken{m.Peer, bytes.Clone(d)})
			}
		}
	}
	return got
}

// send sends and fails the test on error.
func send(t testing.TB, p *Port, messages ...Message) {
	t.Helper()
	if err := p.Sockets()[0].Send(messages); err != nil {
		t.Fatal(err)
	}
}

// same compares the datagrams received from one peer with the sent ones.
func same(t *testing.T, got []taken, from netip.AddrPort, messages ...Message) {
	t.Helper()
	var want [][]byte
	for _, m := range messages {
		for d := range m.Datagrams() {
			want = append(want, d)
		}
	}
	if len(got) != len(want) {
		t.Fatalf("got %d datagrams, expected %d", len(got), len(want))
	}
	for i := range want {
		if got[i].peer != from {
			t.Fatalf("datagram %d arrived from %v, expected %v", i, got[i].peer, from)
		}
		if !bytes.Equal(got[i].payload, want[i]) {
			t.Fatalf("datagram %d of %d has %d bytes, expected %d, or other content", i, len(want), len(got[i].payload),
				len(want[i]))
		}
	}
}

// within fails the test if the goroutines are not done in time.
func within(t *testing.T, group *sync.WaitGroup, what string) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("waited for %s in vain", what)
	}
}
