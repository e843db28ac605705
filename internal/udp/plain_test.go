package udp

import (
	"net"
	"net/netip"
	"os"
	"testing"
	"time"
)

// stuckConn is a connection whose send buffer stays full.
type stuckConn struct {
	packetConn
	deadline time.Time
	calls    int
}

func (c *stuckConn) LocalAddr() net.Addr { return net.UDPAddrFromAddrPort(loopback4) }

func (c *stuckConn) SetWriteDeadline(t time.Time) error {
	c.deadline = t
	return nil
}

func (c *stuckConn) WriteToAddrPort([]byte, netip.AddrPort) (int, error) {
	c.calls++
	time.Sleep(time.Until(c.deadline))
	return 0, os.ErrDeadlineExceeded
}

// TestPatienceOfPlainCalls sends on a full socket without sendmmsg: Send waits for its patience and once more, drops
// the rest, and does not try while the socket counts as full.
func TestPatienceOfPlainCalls(t *testing.T) {
	for _, patience := range []time.Duration{10 * time.Millisecond, time.Nanosecond} {
		conn := &stuckConn{}
		s, err := newSocket(conn, patience)
		if err != nil {
			t.Fatal(err)
		}
		message := run(loopback4, 0, 8, 1000, 1000)
		for sends := 1; sends <= 2; sends++ {
			begin := time.Now()
			if err := s.sendPlain([]Message{message, message}); err != nil {
				t.Fatal(err)
			}
			if waits := conn.deadline.Sub(begin); sends == 1 && waits < max(patience, leastPlainWait) {
				t.Errorf("a send waits for %v, expected %v", waits, max(patience, leastPlainWait))
			}
			var stats Stats
			s.addStats(&stats)
			if want := uint64(16 * sends); stats.SendDrops != want || stats.SendErrors != want || conn.calls != 2 {
				t.Errorf("after send %d: %d drops, %d errors, %d calls; expected %d, %d, 2",
					sends, stats.SendDrops, stats.SendErrors, conn.calls, want, want)
			}
			// The test may stall for longer than a socket counts as full, so the time of the last drop is in the
			// future.
			s.fullAt.Store(time.Now().Add(time.Hour).UnixNano())
		}
		s.fullAt.Store(0)
		if err := s.sendPlain([]Message{message}); err != nil {
			t.Fatal(err)
		}
		if conn.calls != 4 {
			t.Errorf("%d calls once the socket does not count as full, expected 2 more", conn.calls)
		}
	}
}
