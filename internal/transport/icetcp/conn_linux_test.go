package icetcp

import (
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/internal/panics"
)

// steadyClock is a clock that the test advances.
type steadyClock struct{ nanoseconds atomic.Int64 }

func (c *steadyClock) now() time.Time { return time.Unix(1_795_188_600, c.nanoseconds.Load()) }

// link is an ICE-TCP connection over loopback. The test reads the far end.
type link struct {
	t     *testing.T
	near  *connection
	far   net.Conn
	clock *steadyClock
}

func newLink(t *testing.T) *link {
	t.Helper()
	inner, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config, _, _ := listening()
	k := &link{t: t, clock: new(steadyClock)}
	l := newListener(inner, config, limits{total: 10, address: 10, peer: 10, age: 250 * time.Millisecond})
	l.clock = k.clock.now
	if k.far, err = net.Dial("tcp4", inner.Addr().String()); err != nil {
		t.Fatal(err)
	}
	// The receive window must not grow to the megabytes that loopback would have. It belongs to the path, and its
	// content arrives whatever the server does.
	if err := k.far.(*net.TCPConn).SetReadBuffer(64 << 10); err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	k.near = conn.(*connection)
	t.Cleanup(func() {
		_, _, _ = k.far.Close(), k.near.Close(), l.Close()
	})
	return k
}

// send sends a packet with a number.
func (k *link) send(n int) {
	k.t.Helper()
	packet := make([]byte, 1200)
	binary.BigEndian.PutUint32(packet, uint32(n))
	if _, err := k.near.Write(framed(packet)); err != nil {
		k.t.Fatal(err)
	}
}

// receive reads a packet and returns its number.
func (k *link) receive() int {
	k.t.Helper()
	var packet [frameHeader + 1200]byte
	if _, err := io.ReadFull(k.far, packet[:]); err != nil {
		k.t.Fatal(err)
	}
	if length := binary.BigEndian.Uint16(packet[:]); length != 1200 {
		k.t.Fatalf("the stream is out of step: a packet of %d bytes", length)
	}
	return int(binary.BigEndian.Uint32(packet[frameHeader:]))
}

func (k *link) waiting() int {
	k.near.mu.Lock()
	defer k.near.mu.Unlock()
	return k.near.queue.waiting()
}

// TestOutagesLeaveLittleOfTheirTime: the far end stops reading for five seconds and then continues. After the packets
// that the path and the system held at the beginning, new packets arrive.
func TestOutagesLeaveLittleOfTheirTime(t *testing.T) {
	k := newLink(t)
	sent, received := 0, 0
	for range 100 {
		sent++
		k.send(sent)
		if received++; k.receive() != received {
			t.Fatal("packets came in another order")
		}
	}
	// The far end does not read from here on. 30 Mbit/s for 5 s are 15,625 packets.
	before := k.near.listener.stats().Stale
	for range 15_625 {
		sent++
		k.clock.nanoseconds.Add(int64(5*time.Second) / 15_625)
		k.send(sent)
	}
	k.clock.nanoseconds.Add(int64(time.Second))
	fresh := sent + 1
	k.send(fresh)
	stale := 0
	for n := k.receive(); n != fresh; n = k.receive() {
		if n <= received || n > sent {
			t.Fatalf("packet %d came behind %d", n, received)
		}
		received = n
		stale++
	}
	dropped := int(k.near.listener.stats().Stale - before)
	if dropped+stale != 15_625 {
		t.Errorf("%d packets were left out and %d came, of 15625", dropped, stale)
	}
	// The window is at most twice 64 KiB, and takes some 64 KiB more at once. unsentBytes may be exceeded by as much,
	// and one batch waits. Without a bound the window would have been followed by 4 MiB and the largest buffer of the
	// system, some 4 MiB as well.
	if most := (128<<10 + 64<<10 + unsentBytes + 64<<10 + batchBytes) / 1200; stale > most {
		t.Errorf("%d packets of the outage came, expected %d at most", stale, most)
	}
	t.Logf("%d of 15625 packets of the outage came, %d kB", stale, stale*1200/1000)
}

// TestTheSystemHoldsLittleOfAConnection: the socket options are set, if the system has them.
func TestTheSystemHoldsLittleOfAConnection(t *testing.T) {
	raw, err := newLink(t).near.Conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) {
		if got, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT); err != nil ||
			got != unsentBytes {
			t.Errorf("the system takes %d bytes that it has not sent (%v), expected %d", got, err, unsentBytes)
		}
		if got, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_RTO_MAX_MS); err == nil &&
			got != longestRepeat {
			t.Errorf("the system repeats after %d ms at the latest, expected %d", got, longestRepeat)
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// TestWritingToWhoDoesNotReadEnds once the connection is closed, and its goroutine has ended.
func TestWritingToWhoDoesNotReadEnds(t *testing.T) {
	k := newLink(t)
	for n := 0; k.waiting() < 1<<20; n++ {
		k.send(n)
	}
	if err := k.near.Close(); err != nil {
		t.Error(err)
	}
	for writing := true; writing; {
		runtime.Gosched()
		k.near.mu.Lock()
		writing = k.near.writing
		k.near.mu.Unlock()
	}
	if _, err := k.near.Write(framed(make([]byte, 100))); err == nil {
		t.Error("a packet was taken for a connection that is closed")
	}
}

// brokenTCP is a connection whose Write panics.
type brokenTCP struct {
	net.Conn
	closed chan struct{}
}

func (brokenTCP) Write([]byte) (int, error) { panic("broken") }

func (b brokenTCP) Close() error {
	close(b.closed)
	return b.Conn.Close()
}

// TestAPanicEndsOneTCPConnection: the goroutine that writes to a connection panics.
func TestAPanicEndsOneTCPConnection(t *testing.T) {
	k := newLink(t)
	reported := make(chan panics.Report, 1)
	k.near.listener.config.Guard = panics.NewGuard(func(r panics.Report) { reported <- r }, PanicPlace)
	broken := brokenTCP{k.near.Conn, make(chan struct{})}
	k.near.Conn = broken
	k.send(1)
	if r := <-reported; r.Where != PanicPlace {
		t.Errorf("the panic is one of %q, expected %q", r.Where, PanicPlace)
	}
	<-broken.closed
	k.near.Conn = broken.Conn
}
