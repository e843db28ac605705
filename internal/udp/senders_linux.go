package udp

import (
	"context"
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// openSender opens a socket that shares the port and to which the kernel delivers no datagrams. The caller holds the
// mutex.
//
// The kernel numbers the sockets of a port in the order in which they were bound, and a classic BPF program selects one
// for each datagram (SO_ATTACH_REUSEPORT_CBPF, Linux 4.5). The program selects only among the first sockets, which
// receive. When a sender is closed, the kernel assigns its number to the sender with the highest number.
func (p *Port) openSender(c SenderConfig) (*Socket, error) {
	if err := p.sockets[0].share(); err != nil {
		return nil, fmt.Errorf("sharing %s: %w", p.Address(), err)
	}
	listen := net.ListenConfig{Control: p.senders.config.control(true)}
	conn, err := listen.ListenPacket(context.Background(), network(p.Address().Addr()), p.Address().String())
	if err != nil {
		return nil, err
	}
	s, err := newSocket(adapt(conn), c.Patience)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	use := p.senders.use
	use.coalescing, use.watching = false, false
	config := p.senders.config
	config.ReceiveBuffer, config.SendBuffer = 0, c.Buffer
	if err := s.configure(conn.(*net.UDPConn), config, use); err != nil {
		return nil, errors.Join(err, s.closer.Close())
	}
	if err := p.steer(); err != nil {
		return nil, errors.Join(err, s.closer.Close())
	}
	return s, nil
}

// networkHeader is the base of offsets in the IP header for loads of classic BPF (SKF_NET_OFF).
const networkHeader = 0xfff00000

// Multipliers that spread the bits of addresses and ports (of Fibonacci hashing and of MurmurHash3).
const spreadPort, spreadBoth = 0x9e3779b1, 0x85ebca6b

// steer makes the kernel deliver every datagram to one of the receiving sockets, selected by the remote address and
// port, so that all datagrams of one peer reach one socket. IPv4 options and extension headers of IPv6 move the port;
// the selection then depends on other bytes, which are the same for all datagrams of a flow.
func (p *Port) steer() error {
	load := func(size uint16, offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | size | unix.BPF_ABS, K: networkHeader + offset}
	}
	constant := func(operation uint16, k uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_ALU | operation | unix.BPF_K, K: k}
	}
	toX := unix.SockFilter{Code: unix.BPF_MISC | unix.BPF_TAX}
	program := []unix.SockFilter{
		load(unix.BPF_B, 0),
		constant(unix.BPF_RSH, 4),
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 6, Jt: 4},
		// IPv4: source address, source port.
		load(unix.BPF_W, 12),
		toX,
		load(unix.BPF_H, 20),
		{Code: unix.BPF_JMP | unix.BPF_JA, K: 3},
		// IPv6: the last word of the source address, source port.
		load(unix.BPF_W, 20),
		toX,
		load(unix.BPF_H, 40),
		constant(unix.BPF_MUL, spreadPort),
		{Code: unix.BPF_ALU | unix.BPF_XOR | unix.BPF_X},
		constant(unix.BPF_MUL, spreadBoth),
		constant(unix.BPF_RSH, 16),
		constant(unix.BPF_MOD, uint32(len(p.sockets))),
		{Code: unix.BPF_RET | unix.BPF_A},
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	var failure error
	err := p.sockets[0].kernel.Control(func(fd uintptr) {
		failure = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF, &filter)
	})
	return errors.Join(err, failure)
}
