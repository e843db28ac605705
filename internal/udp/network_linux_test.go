package udp

import (
	"errors"
	"net"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFullSendBuffer sends more than the send buffer holds over a slow link: Send must wait, and lose nothing. All of
// it fits a receive buffer of the default size, of which a datagram of 1,000 bytes takes about 2,300.
func TestFullSendBuffer(t *testing.T) {
	var waits atomic.Uint32
	counting := waiting(&waits)
	for _, v := range append(variants(), counting) {
		t.Run(v.name, func(t *testing.T) {
			from, to := slowly(t, v)
			var messages []Message
			for i := range 10 {
				messages = append(messages, run(to.Address(), i*8, 8, 1000, 900))
			}
			var group sync.WaitGroup
			group.Go(func() {
				if err := from.Sockets()[0].Send(messages); err != nil {
					t.Error(err)
				}
			})
			same(t, take(t, to, to.Sockets()[0], 80), from.Address(), messages...)
			within(t, &group, "Send")
			if stats := from.Stats(); stats.Sent != 80 || stats.SendErrors != 0 {
				t.Errorf("expected 80 sent: %+v", stats)
			}
			if v.name == counting.name && waits.Load() == 0 {
				t.Error("the send buffer was never full")
			}
		})
	}
}

// TestCloseEndsSend closes a port while several senders wait for space in the send buffer.
func TestCloseEndsSend(t *testing.T) {
	var waits atomic.Uint32
	from, to := slowly(t, waiting(&waits))
	message := run(to.Address(), 0, 8, 1000, 1000)
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			for {
				if err := from.Sockets()[0].Send([]Message{message, message}); err != nil {
					if !errors.Is(err, net.ErrClosed) {
						t.Errorf("%v, expected net.ErrClosed", err)
					}
					return
				}
			}
		})
	}
	take(t, to, to.Sockets()[0], 100)
	if err := from.Close(); err != nil {
		t.Error(err)
	}
	within(t, &group, "Send to end")
	if waits.Load() == 0 {
		t.Error("the send buffer was never full")
	}
}

// waiting counts the times that the send buffer was full.
func waiting(times *atomic.Uint32) variant {
	return calling("counting waits", func(call multiCall) multiCall {
		return func(fd uintptr, headers []unix.Mmsghdr) (int, syscall.Errno) {
			n, err := call(fd, headers)
			if err == unix.EAGAIN {
				times.Add(1)
			}
			return n, err
		}
	})
}

// TestSmallLink sends runs with segments larger than the link's MTU. The kernel refuses to segment these, but fragments
// single datagrams.
func TestSmallLink(t *testing.T) {
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			from, to := inNetwork(t, v, "ip link set lo mtu 1280")
			messages := []Message{run(to.Address(), 0, 5, 1200, 1200), run(to.Address(), 5, 5, 1300, 600),
				run(to.Address(), 10, 3, 1200, 30)}
			send(t, from, messages...)
			same(t, take(t, to, to.Sockets()[0], 13), from.Address(), messages...)
			if stats := from.Stats(); stats.Sent != 13 || stats.SendErrors != 0 {
				t.Errorf("expected 13 sent: %+v", stats)
			}
		})
	}
}

// slowly opens two ports on a loopback of 20 Mbit/s: the system's own loopback has no queue that could fill a send
// buffer.
func slowly(t *testing.T, v variant) (from, to *Port) {
	return inNetwork(t, v, "tc qdisc add dev lo root tbf rate 20mbit burst 10kb limit 1mb")
}

// inNetwork opens two ports on the loopback of a network namespace of its own, configured by a command. It skips the
// test if that is not permitted.
func inNetwork(t *testing.T, v variant, command string) (from, to *Port) {
	var group sync.WaitGroup
	group.Go(func() {
		// The thread ends with this goroutine, which does not unlock it: no other goroutine enters the namespace.
		// Sockets stay in the namespace in which they were opened.
		runtime.LockOSThread()
		if unix.Unshare(unix.CLONE_NEWNET) != nil {
			return
		}
		for _, words := range [][]string{{"ip", "link", "set", "lo", "up"}, strings.Fields(command)} {
			if exec.Command(words[0], words[1:]...).Run() != nil {
				return
			}
		}
		from = v.open(t, Config{Address: loopback4, SendBuffer: 1 << 14})
		to = v.open(t, Config{Address: loopback4, ReceiveBuffer: 1 << 20})
	})
	group.Wait()
	if from == nil || to == nil {
		t.Skip("a network namespace takes root, ip and tc")
	}
	return from, to
}
