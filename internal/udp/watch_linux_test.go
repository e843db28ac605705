package udp

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestOnlyArrivalsAreHeardOf expects Go's poller to be told when there is something to receive, and not of the room in the send buffer that each datagram leaves behind.
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
		t.Error("nothing was heard of 20 datagrams that came")
	}
	same(t, take(t, to, to.Sockets()[0], 20), from.Address(), message)
	if heard(from, 0) || heard(to, 0) {
		t.Error("something was heard of while there was nothing to receive")
	}
}
