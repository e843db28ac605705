package interop

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/pion/transport/v5"
	"github.com/pion/transport/v5/stdnet"
	"golang.org/x/sys/unix"
)

// namespace is a network namespace, which lives as long as its thread and its sockets. All its sockets are opened on
// that thread.
type namespace struct {
	thread int
	work   chan func()
}

// newNamespace creates a network with only a loopback interface that is down. It skips the test if this is not
// permitted.
func newNamespace(t *testing.T) *namespace {
	t.Helper()
	n := &namespace{work: make(chan func())}
	made := make(chan error)
	go func() {
		// The thread ends with this goroutine, which does not unlock it: no other goroutine gets into the network.
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_NEWNET)
		n.thread = unix.Gettid()
		made <- err
		if err != nil {
			return
		}
		for f := range n.work {
			f()
		}
	}()
	if err := <-made; err != nil {
		t.Skipf("skipped: a network namespace takes root: %v", err)
	}
	t.Cleanup(func() { close(n.work) })
	return n
}

// do runs a function in the network, and waits for it.
func (n *namespace) do(f func()) {
	done := make(chan struct{})
	n.work <- func() {
		defer close(done)
		f()
	}
	<-done
}

// run runs a command in the network.
func (n *namespace) run(t *testing.T, command string) {
	t.Helper()
	words := strings.Fields(command)
	var output []byte
	var err error
	n.do(func() { output, err = exec.Command(words[0], words[1:]...).CombinedOutput() })
	if err != nil {
		t.Fatalf("%s: %v: %s", command, err, output)
	}
}

// connectNamespaces connects two networks by a virtual cable, with an address at each end.
func connectNamespaces(t *testing.T, a, b *namespace, addressA, addressB string) {
	t.Helper()
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skipf("skipped: a cable between network namespaces takes ip, of Debian's package iproute2: %v", err)
	}
	a.run(t, fmt.Sprintf("ip link add cable type veth peer name cable netns %d", b.thread))
	a.run(t, "ip address add "+addressA+" dev cable")
	b.run(t, "ip address add "+addressB+" dev cable")
	a.run(t, "ip link set cable up")
	b.run(t, "ip link set cable up")
}

// listen opens a TCP listener in the network.
func (n *namespace) listen(t *testing.T, address string) net.Listener {
	t.Helper()
	var listener net.Listener
	var err error
	n.do(func() { listener, err = net.Listen("tcp", address) })
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// dial opens a TCP connection in the network. Addresses must be numeric: resolving names would use other threads.
func (n *namespace) dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	n.do(func() { conn, err = (&net.Dialer{}).DialContext(ctx, network, address) })
	return conn, err
}

// view is the network for Pion.
type view struct {
	*stdnet.Net
	namespace *namespace
}

// pion returns the network for Pion, with its current addresses.
func (n *namespace) pion(t *testing.T) transport.Net {
	t.Helper()
	v := &view{namespace: n}
	var err error
	n.do(func() { v.Net, err = stdnet.NewNet() })
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// ListenUDP opens a socket in the network.
func (v *view) ListenUDP(network string, address *net.UDPAddr) (conn transport.UDPConn, err error) {
	v.namespace.do(func() { conn, err = v.Net.ListenUDP(network, address) })
	return conn, err
}
