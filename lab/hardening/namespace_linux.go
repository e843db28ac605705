package hardening

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrPrivileges reports that this process may not create network namespaces.
var ErrPrivileges = errors.New("creating network namespaces requires root")

// namespace is a network namespace. A namespace exists as long as its thread or any of its processes or sockets. The
// thread runs every function that opens a socket in the namespace or starts a process there.
type namespace struct {
	name    string
	thread  int
	address netip.Addr
	work    chan func()
}

// newNamespace creates a network namespace with loopback and without IPv6.
func newNamespace(name string) (*namespace, error) {
	n := &namespace{name: name, work: make(chan func())}
	made := make(chan error)
	go func() {
		// The goroutine does not unlock its thread, so the thread ends with the goroutine and runs no other goroutine.
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
		return nil, fmt.Errorf("%w: namespace of %s: %w", ErrPrivileges, name, err)
	}
	if err := n.prepare(); err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

// settings are the kernel settings of each namespace. Reverse path filters would drop packets with spoofed sources
// before they reach the server.
var settings = map[string]string{
	"ipv6/conf/all/disable_ipv6":     "1",
	"ipv6/conf/default/disable_ipv6": "1",
	"ipv4/conf/all/rp_filter":        "0",
	"ipv4/conf/default/rp_filter":    "0",
}

func (n *namespace) prepare() error {
	err := n.call(func() error {
		for name, value := range settings {
			err := os.WriteFile("/proc/sys/net/"+name, []byte(value), 0)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("namespace of %s: %w", n.name, err)
			}
		}
		return nil
	})
	return errors.Join(err, n.ip("link set lo up"))
}

// do runs a function on the namespace's thread and waits for it.
func (n *namespace) do(f func()) {
	done := make(chan struct{})
	n.work <- func() {
		defer close(done)
		f()
	}
	<-done
}

// call is do for a function that may fail.
func (n *namespace) call(f func() error) (err error) {
	n.do(func() { err = f() })
	return err
}

// close ends the namespace's thread.
func (n *namespace) close() { close(n.work) }

// ip runs the command ip in the namespace.
func (n *namespace) ip(arguments string) error {
	return n.call(func() error {
		output, err := exec.Command("ip", strings.Fields(arguments)...).CombinedOutput()
		if errors.Is(err, exec.ErrNotFound) {
			return fmt.Errorf("the command ip is missing (Debian package iproute2): %w", err)
		}
		if err != nil {
			said := strings.TrimSpace(string(output))
			return fmt.Errorf("ip %s, in the namespace of %s: %w: %s", arguments, n.name, err, said)
		}
		return nil
	})
}

// listenUDP opens a UDP socket on the namespace's address.
func (n *namespace) listenUDP() (conn *net.UDPConn, err error) {
	err = n.call(func() error {
		conn, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(n.address, 0)))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("UDP socket of %s: %w", n.name, err)
	}
	return conn, nil
}

// dialTimeout bounds the time for a TCP connection. The namespace's thread is blocked for this time.
const dialTimeout = 2 * time.Second

// dial opens a connection from the namespace. The address must not need name resolution, which would run on other
// threads.
func (n *namespace) dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	n.do(func() { conn, err = dialer.DialContext(ctx, network, address) })
	return conn, err
}
