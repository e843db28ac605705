package router

import (
	"errors"
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLastAnswer: an answer counts although the thread has stopped since. 100 times, since select chooses at random.
func TestLastAnswer(t *testing.T) {
	r := &Router{stopped: make(chan struct{})}
	close(r.stopped)
	for range 100 {
		reply := make(chan answer, 1)
		reply <- answer{statistics: Statistics{Duration: 1}}
		if a := r.await(reply); a.err != nil || a.statistics.Duration != 1 {
			t.Fatalf("got %+v, expected the thread's answer", a)
		}
		if a := r.await(reply); !errors.Is(a.err, net.ErrClosed) {
			t.Fatalf("got %+v of a thread that has stopped, expected net.ErrClosed", a)
		}
	}
}

// TestClosedTwice: a second Close does not write to a file that has the alarm's descriptor by then.
func TestClosedTwice(t *testing.T) {
	alarm, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(alarm) }()
	r := &Router{alarm: alarm, stopped: make(chan struct{}), closed: true}
	close(r.stopped)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	var rung [8]byte
	if _, err := unix.Read(alarm, rung[:]); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("the second Close wrote %v into the file, %v", rung, err)
	}
}
