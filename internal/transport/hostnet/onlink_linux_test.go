package hostnet

import (
	"errors"
	"net/netip"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/test/wait"
)

// alone runs commands and then a function on a thread in a new network namespace. If the namespace cannot be made, the
// test is skipped.
func alone(t *testing.T, commands []string, do func()) {
	t.Helper()
	var failed string
	var group sync.WaitGroup
	group.Go(func() {
		// The goroutine does not unlock the thread, so the thread ends with the goroutine.
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			failed = err.Error()
			return
		}
		for _, command := range commands {
			words := strings.Fields(command)
			if output, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
				failed = command + ": " + string(output)
				return
			}
		}
		do()
	})
	group.Wait()
	if failed != "" {
		t.Skipf("skipped: a network namespace takes root and ip: %s", failed)
	}
}

// onLinkNetwork has a link with a network, single hosts and a network without an own address, a gateway, and a
// point-to-point interface.
var onLinkNetwork = []string{
	"ip link set lo up",
	"ip link add name lan type veth peer name other",
	"ip link set lan up", "ip link set other up",
	"ip address add 10.8.0.1/24 dev lan",
	"ip -6 address add 2001:db8:8::1/64 dev lan nodad",
	"ip route add default via 10.8.0.254",
	"ip -6 route add default via 2001:db8:8::fe",
	"ip route add 203.0.113.5/32 dev lan",
	"ip -6 route add 2001:db8:5::5/128 dev lan",
	"ip route add 198.51.100.0/24 dev lan",
	"ip route add 10.8.0.77/32 via 10.8.0.254",
	"ip route add unreachable 192.0.2.9/32",
	"ip tuntap add dev vpn mode tun",
	"ip link set vpn up",
	"ip route add 192.0.2.32/32 dev vpn",
}

// awaitLocalRoute waits until the kernel has the route to an own IPv6 address. The kernel adds the route after the
// address, from a queue. Until then the address looks like any other address of the network.
func awaitLocalRoute(t *testing.T, address string) bool {
	t.Helper()
	for deadline := time.Now().Add(wait.Patience); ; time.Sleep(time.Millisecond) {
		output, err := exec.Command("ip", "-6", "route", "get", address).CombinedOutput()
		if err == nil && strings.HasPrefix(string(output), "local ") {
			return true
		}
		if time.Now().After(deadline) {
			t.Errorf("timed out: the route to %s is local: %s (%v)", address, output, err)
			return false
		}
	}
}

func TestOnLink(t *testing.T) {
	alone(t, onLinkNetwork, func() {
		if !awaitLocalRoute(t, "2001:db8:8::1") {
			return
		}
		for _, test := range []struct {
			what, address string
			onLink        bool
		}{
			{"a host of the network", "10.8.0.7", true},
			{"a host of the network, of IPv6", "2001:db8:8::7", true},
			{"a host with a route of its own", "203.0.113.5", true},
			{"a host with a route of its own, mapped to IPv6", "::ffff:203.0.113.5", true},
			{"a host with a route of its own, of IPv6", "2001:db8:5::5", true},
			{"a host of a network without an own address", "198.51.100.9", true},
			{"a host of the link", "fe80::7%lan", true},
			{"a host of the network behind a gateway", "10.8.0.77", false},
			{"a host behind the gateway", "203.0.113.6", false},
			{"a host behind the gateway, of IPv6", "2001:db8:5::6", false},
			{"the gateway", "10.8.0.254", true},
			{"this host", "10.8.0.1", false},
			{"this host, of IPv6", "2001:db8:8::1", false},
			{"loopback", "127.0.0.5", false},
			{"loopback, of IPv6", "::1", false},
			{"the broadcast address", "10.8.0.255", false},
			{"a host that cannot be reached", "192.0.2.9", false},
			{"a host of a VPN", "192.0.2.32", false},
		} {
			address := netip.MustParseAddr(test.address)
			if got, err := onLink(address); err != nil || got != test.onLink {
				t.Errorf("%s, %v: got %t and %v, expected %t", test.what, address, got, err, test.onLink)
			}
			if got := IsNeighbour(address); got != test.onLink {
				t.Errorf("%s, %v counts as a neighbour: %t, expected %t", test.what, address, got, test.onLink)
			}
		}
	})
}

// TestNoRoute: no interface is up, so there is no route, which is not an error.
func TestNoRoute(t *testing.T) {
	alone(t, nil, func() {
		for _, text := range []string{"203.0.113.5", "2001:db8:5::5"} {
			if got, err := onLink(netip.MustParseAddr(text)); err != nil || got {
				t.Errorf("%s: got %t and %v, expected no neighbour", text, got, err)
			}
		}
	})
}

// TestParseRoute parses answers that the kernel does not send.
func TestParseRoute(t *testing.T) {
	for _, answer := range [][]byte{nil, make([]byte, 15), make([]byte, 16), routeRequest(netip.MustParseAddr("::1"))} {
		if route, err := parseRoute(answer); !errors.Is(err, errRoute) {
			t.Errorf("got %+v and %v of %d bytes, expected errRoute", route, err, len(answer))
		}
	}
}
