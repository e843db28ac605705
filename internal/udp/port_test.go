package udp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestRuns sends runs of all shapes and expects the same datagrams in the same order. Together they fit a receive
// buffer of the default size.
func TestRuns(t *testing.T) {
	tests := []struct {
		name  string
		shape [][3]int // datagrams, their length, length of the last
	}{
		{"single", [][3]int{{1, 1200, 1200}}},
		{"single of one byte", [][3]int{{1, 1, 1}}},
		{"empty datagram between others", [][3]int{{1, 9, 9}, {1, 0, 0}, {1, 9, 9}}},
		{"equal", [][3]int{{10, 1200, 1200}}},
		{"last shorter", [][3]int{{10, 1200, 7}}},
		{"two", [][3]int{{2, 1200, 1199}}},
		{"mixed runs and singles", [][3]int{{5, 1200, 300}, {1, 80, 80}, {7, 900, 900}, {1, 1200, 1200}, {3, 20, 19}}},
		{"64 segments", [][3]int{{64, 100, 100}}},
		{"65 segments", [][3]int{{65, 100, 100}}},
		{"more than twice 64 segments", [][3]int{{140, 100, 50}}},
		{"more than 64 kB", [][3]int{{70, 1000, 600}}},
		{"large datagrams", [][3]int{{2, 20000, 20000}, {1, 65507, 65507}}},
		{"more messages than a batch", repeated(150, [3]int{1, 40, 40})},
		{"more runs than a batch", repeated(70, [3]int{2, 40, 33})},
	}
	forEach(t, func(t *testing.T, open func(Config) *Port) {
		from, to := open(Config{Address: loopback4}), open(Config{Address: loopback4})
		sent := uint64(0)
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				var messages []Message
				count := 0
				for _, s := range test.shape {
					messages = append(messages, run(to.Address(), count, s[0], s[1], s[2]))
					count += s[0]
				}
				send(t, from, messages...)
				same(t, take(t, to, to.Sockets()[0], count), from.Address(), messages...)
				sent += uint64(count)
			})
		}
		stats := from.Stats()
		if stats.Sent != sent || stats.SendErrors != 0 || stats.Runs > sent || stats.Sends > stats.Runs ||
			stats.Sends == 0 {
			t.Errorf("expected %d sent: %+v", sent, stats)
		}
		if stats := to.Stats(); stats.Received != sent || stats.Receives == 0 || stats.Receives > sent ||
			stats.ReceiveDrops != 0 {
			t.Errorf("expected %d received: %+v", sent, stats)
		}
	})
}

func repeated(times int, shape [3]int) [][3]int {
	all := make([][3]int, times)
	for i := range all {
		all[i] = shape
	}
	return all
}

func TestPeers(t *testing.T) {
	forEach(t, func(t *testing.T, open func(Config) *Port) {
		from := open(Config{Address: loopback4})
		ports := make([]*Port, 5)
		var messages []Message
		for i := range ports {
			ports[i] = open(Config{Address: loopback4})
		}
		for round := range 3 {
			for i, p := range ports {
				messages = append(messages, run(p.Address(), 100*i+10*round, 2+i, 300, 200+round))
			}
		}
		send(t, from, messages...)
		for i, p := range ports {
			same(t, take(t, p, p.Sockets()[0], 3*(2+i)), from.Address(), messages[i], messages[5+i], messages[10+i])
		}
	})
}

// TestUnsendable sends messages that the system refuses among valid ones.
func TestUnsendable(t *testing.T) {
	forEach(t, func(t *testing.T, open func(Config) *Port) {
		from, to := open(Config{Address: loopback4}), open(Config{Address: loopback4})
		v6, peer := netip.MustParseAddrPort("[2001:db8::1]:9"), to.Address()
		good := []Message{run(peer, 0, 3, 500, 500), run(peer, 3, 1, 500, 500), run(peer, 4, 4, 500, 10),
			run(peer, 8, 1, 10, 10), run(peer, 9, 2, 9, 9)}
		send(t, from, good[0],
			run(v6, 0, 2, 100, 100), good[1],
			run(netip.AddrPort{}, 0, 1, 100, 100), good[2],
			run(netip.AddrPort{}, 0, 4, 100, 100), good[3],
			Message{Peer: peer, Data: make([]byte, 140_000), Segment: 70_000}, // longer than the largest datagram
			run(netip.AddrPortFrom(loopback4.Addr(), 0), 0, 2, 100, 100), good[4])
		same(t, take(t, to, to.Sockets()[0], 11), from.Address(), good...)
		if stats := from.Stats(); stats.Sent != 11 || stats.SendErrors != 2+1+4+2+2 {
			t.Errorf("expected 11 sent and 11 errors: %+v", stats)
		}
	})
}

// TestRefusingPeer sends to a port without a listener, for which the system answers with ICMP.
func TestRefusingPeer(t *testing.T) {
	forEach(t, func(t *testing.T, open func(Config) *Port) {
		gone := open(Config{Address: loopback4})
		if err := gone.Close(); err != nil {
			t.Fatal(err)
		}
		from, to := open(Config{Address: loopback4}), open(Config{Address: loopback4})
		for round := range 20 {
			good := run(to.Address(), round, 3, 400, 100)
			send(t, from, run(gone.Address(), 0, 3, 400, 100), good, run(gone.Address(), 0, 1, 400, 400))
			same(t, take(t, to, to.Sockets()[0], 3), from.Address(), good)
			send(t, to, run(from.Address(), round, 2, 400, 400))
			take(t, from, from.Sockets()[0], 2)
		}
	})
}

func TestConcurrentSenders(t *testing.T) {
	forEach(t, func(t *testing.T, open func(Config) *Port) {
		const senders, rounds, datagrams = 8, 5, 4 // 160 datagrams fit a receive buffer of the default size
		from, to := open(Config{Address: loopback4}), open(Config{Address: loopback4})
		var group sync.WaitGroup
		for sender := range senders {
			group.Go(func() {
				for round := range rounds {
					m := run(to.Address(), sender*1000+round*datagrams, datagrams, 100+sender, 90)
					if err := from.Sockets()[0].Send([]Message{m}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		got := take(t, to, to.Sockets()[0], senders*rounds*datagrams)
		within(t, &group, "the senders")
		bySender := map[byte][]taken{}
		for _, d := range got {
			sender := byte((uint32(d.payload[2])<<8 | uint32(d.payload[3])) / 1000)
			bySender[sender] = append(bySender[sender], d)
		}
		for sender := range senders {
			var want []Message
			for round := range rounds {
				want = append(want, run(to.Address(), sender*1000+round*datagrams, datagrams, 100+sender, 90))
			}
			same(t, bySender[byte(sender)], from.Address(), want...)
		}
	})
}

// TestSharedPort opens a port of two sockets, to which 50 remote sockets send.
func TestSharedPort(t *testing.T) {
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			const remotes, datagrams = 50, 3
			to := v.open(t, Config{Address: loopback4, Sockets: 2})
			if len(to.Sockets()) == 1 {
				t.Skip("this port has one socket here")
			}
			for range remotes {
				from := v.open(t, Config{Address: loopback4})
				send(t, from, run(to.Address(), 0, datagrams, 100, 60))
			}
			peers := hearAll(t, to, remotes*datagrams)
			for peer, got := range peers {
				if got != datagrams {
					t.Errorf("%d datagrams from %v, expected %d", got, peer, datagrams)
				}
			}
			if stats := to.Stats(); len(peers) != remotes || stats.Received != remotes*datagrams ||
				stats.ReceiveDrops != 0 {
				t.Errorf("heard %d of %d peers: %+v", len(peers), remotes, stats)
			}
		})
	}
}

// hearAll receives on all sockets of a port, expects datagrams on each of them, and counts by peer. It closes the port.
func hearAll(t *testing.T, p *Port, datagrams int) map[netip.AddrPort]int {
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		total int
		peers = map[netip.AddrPort]int{}
	)
	for index, s := range p.Sockets() {
		group.Go(func() {
			in, own := NewInbox(), 0
			for s.Receive(in) == nil {
				mu.Lock()
				for _, m := range in.Messages() {
					peers[m.Peer] += m.Count()
					total += m.Count()
					own += m.Count()
				}
				if total == datagrams {
					_ = p.Close()
				}
				mu.Unlock()
			}
			if own == 0 {
				t.Errorf("socket %d got nothing", index)
			}
		})
	}
	within(t, &group, "all datagrams")
	return peers
}

func TestIPv6(t *testing.T) {
	on6(t)
	forEach(t, func(t *testing.T, open func(Config) *Port) {
		from, to := open(Config{Address: loopback6}), open(Config{Address: loopback6})
		for _, message := range []Message{run(to.Address(), 0, 70, 1000, 500), run(to.Address(), 0, 1, 65487, 65487)} {
			send(t, from, message)
			same(t, take(t, to, to.Sockets()[0], message.Count()), from.Address(), message)
		}
	})
}

// TestDualStack exchanges datagrams between a socket of both families and sockets of one. Returned IPv4 addresses are
// never mapped.
func TestDualStack(t *testing.T) {
	on6(t)
	forEach(t, func(t *testing.T, open func(Config) *Port) {
		dual := open(Config{Address: netip.MustParseAddrPort("[::]:0")})
		port := dual.Address().Port()
		for _, local := range []netip.AddrPort{loopback4, loopback6} {
			single := open(Config{Address: local})
			there := run(netip.AddrPortFrom(local.Addr(), port), 0, 3, 600, 500)
			send(t, single, there)
			got := take(t, dual, dual.Sockets()[0], 3)
			same(t, got, single.Address(), there)
			back := run(got[0].peer, 0, 3, 600, 500)
			send(t, dual, back)
			same(t, take(t, single, single.Sockets()[0], 3), netip.AddrPortFrom(local.Addr(), port), back)
		}
		four := open(Config{Address: loopback4})
		mapped := run(netip.AddrPortFrom(netip.AddrFrom16(loopback4.Addr().As16()), four.Address().Port()),
			0, 2, 80, 80)
		send(t, dual, mapped)
		send(t, four, mapped)
		if got := take(t, four, four.Sockets()[0], 4); got[3].peer != four.Address() {
			t.Errorf("a mapped address led to %v, expected %v", got[3].peer, four.Address())
		}
	})
}

func TestCloseEndsReceive(t *testing.T) {
	forEach(t, func(t *testing.T, open func(Config) *Port) {
		p := open(Config{Address: loopback4, Sockets: 2})
		var group sync.WaitGroup
		for _, s := range p.Sockets() {
			send(t, p, run(s.local, 0, 1, 10, 10))
			group.Go(func() {
				in := NewInbox()
				for {
					if err := s.Receive(in); err != nil {
						if !errors.Is(err, net.ErrClosed) {
							t.Errorf("%v, expected net.ErrClosed", err)
						}
						return
					}
				}
			})
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		within(t, &group, "Receive to end")
		if err := p.Sockets()[0].Send([]Message{run(p.Address(), 0, 3, 10, 10)}); !errors.Is(err, net.ErrClosed) {
			t.Errorf("sending: %v, expected net.ErrClosed", err)
		}
		if err := p.Sockets()[0].Receive(NewInbox()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("receiving: %v, expected net.ErrClosed", err)
		}
		if stats := p.Stats(); stats.Sent != uint64(len(p.Sockets())) {
			t.Errorf("a closed port lost its counts: %+v", stats)
		}
	})
}

func TestPortTaken(t *testing.T) {
	for _, sockets := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d sockets", sockets), func(t *testing.T) {
			first := opened(t)(Listen(Config{Address: loopback4, Sockets: sockets}))
			second, err := Listen(Config{Address: first.Address(), Sockets: sockets})
			if err == nil {
				_ = second.Close()
				t.Fatal("expected an error for a port that is taken")
			}
			if !errors.Is(err, syscall.EADDRINUSE) && len(first.Sockets()) == sockets ||
				!strings.Contains(err.Error(), first.Address().String()) {
				t.Errorf("%v, expected the system's error with %v", err, first.Address())
			}
		})
	}
}

func TestAddressInvalid(t *testing.T) {
	if _, err := Listen(Config{}); !errors.Is(err, ErrAddress) {
		t.Errorf("%v, expected ErrAddress", err)
	}
	conn := alien{}
	if _, err := Attach(conn); !errors.Is(err, ErrAddress) {
		t.Errorf("%v, expected ErrAddress", err)
	}
}

// alien is a connection that is not UDP.
type alien struct{ net.PacketConn }

func (alien) LocalAddr() net.Addr { return &net.UnixAddr{Name: "somewhere", Net: "unixgram"} }

func TestMappedAddress(t *testing.T) {
	mapped := netip.AddrPortFrom(netip.AddrFrom16(loopback4.Addr().As16()), 0)
	p := opened(t)(Listen(Config{Address: mapped}))
	if p.Address().Addr() != loopback4.Addr() || p.Address().Port() == 0 {
		t.Errorf("listens on %v, expected %v and a port", p.Address(), loopback4.Addr())
	}
}
