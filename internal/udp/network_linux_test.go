package udp

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/test/namespace"
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
			got := take(t, to, to.Sockets()[0], 80)
			// A queue of the loopback device keeps no order: either processor passes its packets to a backlog of its
			// own.
			slices.SortStableFunc(got, func(a, b taken) int { return bytes.Compare(a.payload[:4], b.payload[:4]) })
			same(t, got, from.Address(), messages...)
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

// The addresses of the two ends of onVeth.
var (
	vethAddresses  = [2]netip.Addr{netip.MustParseAddr("10.99.0.1"), netip.MustParseAddr("10.99.0.2")}
	vethAddresses6 = [2]netip.Addr{netip.MustParseAddr("fd99::1"), netip.MustParseAddr("fd99::2")}
)

// onVeth opens a port of both families at each end of a pair of virtual network cards, each in a network namespace of
// its own, with timestamps. The first end segments runs; the second coalesces the datagrams that arrive within 2 ms, as
// a network card's driver does with those of one interrupt. It skips the test if that is not permitted.
func onVeth(t *testing.T) (from, to *Port) {
	on6(t)
	a, b := namespace.New(t), namespace.New(t)
	for _, command := range []string{
		// Package net checks once, at the first socket for both families, whether the loopback has IPv6.
		"ip link set lo up",
		fmt.Sprintf("ip link add near type veth peer name far netns %d", b.Thread),
		"ip link set near up",
	} {
		a.Run(t, command)
	}
	b.Run(t, "ip link set lo up")
	b.Run(t, "ip link set far up")
	for i, end := range []struct {
		at     *namespace.Namespace
		device string
	}{{a, "near"}, {b, "far"}} {
		end.at.Run(t, fmt.Sprintf("ip address add %s/24 dev %s", vethAddresses[i], end.device))
		end.at.Run(t, fmt.Sprintf("ip address add %s/64 dev %s nodad", vethAddresses6[i], end.device))
	}
	a.Do(func() {
		// A pair coalesces only if the sending end has no TCP segmentation offload (veth_skb_is_eligible_for_gro).
		switchOffload(t, "near", unix.ETHTOOL_STSO, false)
		switchOffload(t, "near", unix.ETHTOOL_SGSO, false)
		from = opened(t)(Listen(Config{Address: bothFamilies, SendBuffer: 4 << 20}))
	})
	b.Do(func() {
		switchOffload(t, "far", unix.ETHTOOL_SGRO, true)
		if err := os.WriteFile("/sys/class/net/far/gro_flush_timeout", []byte("2000000"), 0); err != nil {
			t.Error(err)
		}
		to = opened(t)(Listen(Config{Address: bothFamilies, ReceiveBuffer: 4 << 20}))
	})
	if !from.Sockets()[0].TakeStamps(true) || !to.Sockets()[0].TakeStamps(true) {
		t.Skip("the kernel gives no stamps")
	}
	// Address resolution, and the timestamps that the kernel enables late.
	for _, peer := range []netip.Addr{vethAddresses[1], vethAddresses6[1]} {
		end := time.Now().Add(patience)
		for stampedOnce := false; !stampedOnce; {
			send(t, from, run(netip.AddrPortFrom(peer, to.Address().Port()), 0, 1, 20, 20))
			got, _ := arrivals(t, to, 1)
			stampedOnce = got[0].stamped
			if time.Now().After(end) {
				t.Fatal("no datagram was stamped")
			}
		}
	}
	return from, to
}

// switchOffload switches an offload of a network card on or off.
func switchOffload(t *testing.T, device string, command uint32, on bool) {
	t.Helper()
	if err := namespace.SwitchOffload(device, command, on); err != nil {
		t.Error(err)
	}
}
