package udp

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openSender opens a send-only socket, which the port closes.
func openSender(t *testing.T, p *Port, c SenderConfig) *Socket {
	t.Helper()
	s, err := p.OpenSender(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSendersReceiveNothing opens senders and closes some: datagrams of many peers still reach the receiving sockets,
// those of each peer always the same one, while the senders send from the port's address.
func TestSendersReceiveNothing(t *testing.T) {
	const peers, rounds = 40, 5
	for _, test := range []struct {
		name    string
		address netip.AddrPort
		sockets int
	}{
		{"one socket", loopback4, 1},
		{"three sockets", loopback4, 3},
		{"IPv6", loopback6, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := opened(t)(Listen(Config{Address: test.address, Sockets: test.sockets}))
			var senders []*Socket
			for range 4 {
				senders = append(senders, openSender(t, p, SenderConfig{}))
			}
			if err := errors.Join(p.CloseSender(senders[1]), p.CloseSender(senders[1]),
				p.CloseSender(senders[3])); err != nil {
				t.Fatal(err)
			}
			senders = append(senders[:1], senders[2])
			type arrival struct {
				peer   netip.AddrPort
				socket int
			}
			arrivals := make(chan arrival, peers*rounds)
			var readers sync.WaitGroup
			for i, socket := range p.Sockets() {
				readers.Go(func() {
					inbox := NewInbox()
					for socket.Receive(inbox) == nil {
						for _, m := range inbox.Messages() {
							for range m.Count() {
								arrivals <- arrival{m.Peer, i}
							}
						}
					}
				})
			}
			t.Cleanup(func() {
				_ = p.Close()
				readers.Wait()
			})
			chosen, used := map[netip.AddrPort]int{}, map[int]bool{}
			for range peers {
				peer := opened(t)(Listen(Config{Address: test.address}))
				for range rounds {
					if err := peer.Sockets()[0].Send(
						[]Message{{Peer: p.Address(), Data: []byte("x"), Segment: 1}}); err != nil {
						t.Fatal(err)
					}
				}
				for range rounds {
					select {
					case a := <-arrivals:
						if before, known := chosen[a.peer]; known && before != a.socket {
							t.Errorf("datagrams of %v reach sockets %d and %d", a.peer, before, a.socket)
						}
						chosen[a.peer], used[a.socket] = a.socket, true
					case <-time.After(patience):
						t.Fatalf("after %d peers a datagram did not come", len(chosen))
					}
				}
				for _, sender := range senders {
					if err := sender.Send([]Message{{Peer: peer.Address(), Data: []byte("y"), Segment: 1}}); err !=
						nil {
						t.Fatal(err)
					}
				}
				same(t, take(t, peer, peer.Sockets()[0], len(senders)), p.Address(),
					Message{Data: []byte("y"), Segment: 1}, Message{Data: []byte("y"), Segment: 1})
			}
			if len(used) != test.sockets {
				t.Errorf("%d peers reach %d of %d sockets", peers, len(used), test.sockets)
			}
			if stats := p.Stats(); stats.Sent != peers*uint64(len(senders)) {
				t.Errorf("%d datagrams are counted as sent, expected %d", stats.Sent, peers*len(senders))
			}
		})
	}
}

// TestNoSenders requests senders on ports that cannot have them.
func TestNoSenders(t *testing.T) {
	closed := opened(t)(Listen(Config{Address: loopback4}))
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*Port{
		"a closed port": closed,
		"an attached network": attached("", func(c *net.UDPConn) net.PacketConn { return c }).open(t,
			Config{Address: loopback4}),
	} {
		if _, err := p.OpenSender(SenderConfig{}); !errors.Is(err, ErrNoSender) {
			t.Errorf("%s: got %v, expected ErrNoSender", name, err)
		}
	}
}

// TestPatience sends on sockets whose send buffer stays full. Send returns within its patience, counts the dropped
// datagrams, does not wait while the socket is full, and sends again when there is space.
func TestPatience(t *testing.T) {
	var full atomic.Bool
	var calls atomic.Int64
	v := calling("full", func(call multiCall) multiCall {
		return func(fd uintptr, headers []unix.Mmsghdr) (int, syscall.Errno) {
			if full.Load() && len(headers) > 0 {
				calls.Add(1)
				return 0, unix.EAGAIN
			}
			return call(fd, headers)
		}
	})
	to := opened(t)(Listen(Config{Address: loopback4}))
	from := v.open(t, Config{Address: loopback4, Patience: 10 * time.Millisecond})
	socket := from.Sockets()[0]
	message := run(to.Address(), 0, 8, 1000, 1000)
	full.Store(true)
	if err := socket.Send([]Message{message, message}); err != nil {
		t.Fatal(err)
	}
	if stats := from.Stats(); stats.SendDrops != 16 || stats.SendErrors != 16 || stats.Sent != 0 {
		t.Errorf("expected 16 dropped: %+v", stats)
	}
	if made := calls.Load(); made < 2 {
		t.Errorf("%d attempts were made, expected several", made)
	}
	at := time.Unix(0, socket.fullAt.Load())
	if !socket.Full(at) || socket.Full(at.Add(fullPause)) {
		t.Error("the socket counts as full for another time than fullPause")
	}
	// The test may stall for longer than fullPause, so the time of the last drop is in the future.
	socket.fullAt.Store(time.Now().Add(time.Hour).UnixNano())
	calls.Store(0)
	if err := socket.Send([]Message{message}); err != nil {
		t.Fatal(err)
	}
	if made := calls.Load(); made != 1 {
		t.Errorf("%d attempts were made on a full socket, expected 1", made)
	}
	full.Store(false)
	if err := socket.Send([]Message{message}); err != nil {
		t.Fatal(err)
	}
	same(t, take(t, to, to.Sockets()[0], 8), from.Address(), message)
}
