package udp

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOnlyArrivalsAreHeardOf expects Go's poller to be notified of received datagrams, and not of space in the send
// buffer after each sent datagram.
func TestOnlyArrivalsAreHeardOf(t *testing.T) {
	from, to := opened(t)(Listen(Config{Address: loopback4})), opened(t)(Listen(Config{Address: loopback4}))
	heard := func(p *Port, patience int) bool {
		t.Helper()
		w, ok := p.Sockets()[0].closer.(*watched)
		if !ok {
			t.Fatalf("a socket of type %T, expected one that is watched", p.Sockets()[0].closer)
		}
		ready := false
		if err := w.raw.Control(func(fd uintptr) {
			room := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			n, err := unix.Poll(room, patience)
			ready = err == nil && n == 1
		}); err != nil {
			t.Fatal(err)
		}
		return ready
	}
	message := run(to.Address(), 0, 20, 1200, 1200)
	send(t, from, message)
	if !heard(to, int(patience.Milliseconds())) {
		t.Error("20 arrived datagrams were not reported")
	}
	same(t, take(t, to, to.Sockets()[0], 20), from.Address(), message)
	if heard(from, 0) || heard(to, 0) {
		t.Error("something was heard of while there was nothing to receive")
	}
}

// TestDescriptors expects that ports leave no open descriptor, after closing or after a failed Listen.
func TestDescriptors(t *testing.T) {
	count := func() int {
		t.Helper()
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	// The poller's own descriptors are opened with the first port.
	taken := opened(t)(Listen(Config{Address: loopback4}))
	before := count()
	for range 3 {
		for _, plain := range []bool{false, true} {
			p, err := Listen(Config{Address: loopback4, Sockets: 2, PlainSending: plain})
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
		if _, err := Listen(Config{Address: taken.Address(), Sockets: 2}); err == nil {
			t.Error("a port that is taken was opened")
		}
	}
	if after := count(); after != before {
		t.Errorf("%d descriptors, expected %d as before", after, before)
	}
}
