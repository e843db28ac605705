package udp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// kernel has a socket's system calls that package net lacks. The zero value has none: the socket is a connection passed
// to Attach.
type kernel struct {
	// raw waits for received datagrams, and keeps the socket open while its methods run; fd is the descriptor of the
	// socket, which may differ from raw's.
	raw syscall.RawConn
	fd  uintptr
	// receiving and sending are set if recvmmsg and sendmmsg are used.
	receiving, sending bool
	recvmmsg, sendmmsg multiCall
	ipv6               bool // addresses are passed as IPv6 addresses, mapped if they are IPv4
	// segmenting is cleared if the kernel or the device refuses every run; segmented is set after a run was accepted.
	segmenting, segmented atomic.Bool
	// settingECN is set while sent datagrams get their codepoint. It is cleared if the kernel refuses that.
	settingECN atomic.Bool
	// stamping is set while timestamps are taken; awaited counts the outstanding timestamps of sent datagrams.
	stamping atomic.Bool
	awaited  atomic.Int32
}

// multiCall receives into or sends from many headers by one system call. It returns the number of completed headers, or
// the error of the first.
type multiCall func(fd uintptr, headers []unix.Mmsghdr) (int, syscall.Errno)

// listen opens the sockets. The first binds alone and then shares its port, for three reasons: a port that another
// process listens on is refused even if both allow sharing; no other process has a port chosen by the system; and if
// sharing is not supported, one socket works. With an error it returns the sockets that are open.
func listen(c Config, use abilities) ([]*Socket, error) {
	var sockets []*Socket
	for len(sockets) < c.Sockets {
		s, err := open(c, use, len(sockets) > 0)
		if err != nil {
			return sockets, fmt.Errorf("socket %d of %d: %w", len(sockets)+1, c.Sockets, err)
		}
		sockets = append(sockets, s)
		c.Address = netip.AddrPortFrom(c.Address.Addr(), s.local.Port())
		if len(sockets) == 1 && c.Sockets > 1 {
			switch err := s.share(); {
			case errors.Is(err, unix.ENOPROTOOPT):
				return sockets, nil
			case err != nil:
				return sockets, fmt.Errorf("sharing %s: %w", s.local, err)
			}
		}
	}
	return sockets, nil
}

// open opens and binds a socket, which shares the port of a bound socket if shared is set.
func open(c Config, use abilities, shared bool) (*Socket, error) {
	config := net.ListenConfig{Control: c.control(shared)}
	conn, err := config.ListenPacket(context.Background(), network(c.Address.Addr()), c.Address.String())
	if err != nil {
		return nil, err
	}
	s, err := newSocket(adapt(conn), c.Patience)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if err := s.configure(conn.(*net.UDPConn), c, use); err != nil {
		return nil, errors.Join(err, s.closer.Close())
	}
	return s, nil
}

// share lets further sockets of this user bind to the port.
func (s *Socket) share() error { return setInt(&s.kernel, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) }

// configure sets the buffer sizes and detects which of the wanted features the kernel has.
func (s *Socket) configure(conn *net.UDPConn, c Config, use abilities) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	k := &s.kernel
	k.raw, k.recvmmsg, k.sendmmsg = raw, recvmmsg, sendmmsg
	k.ipv6 = c.Address.Addr().Is6()
	s.receiveBuffer, s.sendBuffer = EnlargeBuffers(conn, c.ReceiveBuffer, c.SendBuffer)
	err = raw.Control(func(fd uintptr) {
		k.fd = fd
		k.receiving = use.batchedReceiving && works(recvmmsg, fd)
		if k.receiving && use.coalescing {
			// Kernels before 5.0 refuse. Then every datagram is received separately.
			_ = unix.SetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_GRO, 1)
		}
		if k.receiving && use.reportingECN {
			reportECN(int(fd), k.ipv6)
		}
		k.sending = use.batchedSending && works(sendmmsg, fd)
		// Kernels before 4.18 do not have the option, and would ignore it in a control message: the run would be sent
		// as one large datagram.
		_, err := unix.GetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_SEGMENT)
		k.segmenting.Store(k.sending && use.segmenting && err == nil)
		k.settingECN.Store(k.sending && use.settingECN)
	})
	// Plain calls are made by package net.
	if err == nil && k.receiving && k.sending && use.watching && watchable() {
		s.watch(conn)
	}
	return err
}

// reportECN makes the kernel report the codepoint of each received message. An IPv6 socket may also receive IPv4. If
// the kernel refuses, codepoints are unknown.
func reportECN(fd int, ipv6 bool) {
	_ = unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_RECVTOS, 1)
	if ipv6 {
		_ = unix.SetsockoptInt(fd, unix.SOL_IPV6, unix.IPV6_RECVTCLASS, 1)
	}
}

// watch moves the socket from package net to an epoll of its own. If that fails, the socket stays with package net, at
// a higher cost.
func (s *Socket) watch(conn *net.UDPConn) {
	if w, err := watch(conn); err == nil {
		s.closer, s.kernel.raw, s.kernel.fd = w, w.raw, uintptr(w.socket)
	}
}

// works reports whether a call exists and is permitted, by a call without messages.
func works(call multiCall, fd uintptr) bool {
	var header [1]unix.Mmsghdr
	_, err := call(fd, header[:0])
	return err == 0
}

// controller passes the descriptor of a socket to a function and keeps the socket open meanwhile: syscall.RawConn, and
// kernel.
type controller interface {
	Control(f func(fd uintptr)) error
}

// Control implements controller. It fails after the socket is closed.
func (k *kernel) Control(f func(fd uintptr)) error {
	return k.raw.Control(func(uintptr) { f(k.fd) })
}

// control returns the function that prepares a socket for binding: to share the port of a bound socket if shared is
// set, and to use the configured interface alone.
func (c Config) control(shared bool) func(network, address string, raw syscall.RawConn) error {
	return func(_, _ string, raw syscall.RawConn) error {
		var sharing, binding error
		if shared {
			sharing = setInt(raw, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		}
		if c.Device != "" {
			binding = bindDevice(raw, c.Device)
		}
		return errors.Join(sharing, binding)
	}
}

// bindDevice binds a socket to a network interface.
func bindDevice(c controller, device string) error {
	var failure error
	err := c.Control(func(fd uintptr) { failure = unix.BindToDevice(int(fd), device) })
	if err = errors.Join(err, failure); err != nil {
		return fmt.Errorf("bind to device %q: %w", device, err)
	}
	return nil
}

// setInt sets an option of a socket.
func setInt(c controller, level, option, value int) error {
	var failure error
	err := c.Control(func(fd uintptr) { failure = unix.SetsockoptInt(int(fd), level, option, value) })
	return errors.Join(err, failure)
}
