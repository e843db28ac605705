package udp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// ErrAddress says that an address is none that UDP sockets can have.
var ErrAddress = errors.New("not an IP address with a port")

// Config says what to listen on, and how.
type Config struct {
	// Address is what to listen on; port 0 lets the system choose. [::] listens on IPv6 and IPv4, 0.0.0.0 on IPv4 alone.
	Address netip.AddrPort
	// Sockets is how many sockets share the port, so that as many goroutines can receive: the system gives all datagrams of one peer to the same socket, chosen
	// by a hash of both addresses. Values below 1 count as 1. Only Linux shares ports in this way; elsewhere there is one socket.
	Sockets int
	// ReceiveBuffer and SendBuffer are the buffers asked for each socket, in bytes: beyond the system's limits where the process may (CAP_NET_ADMIN), else as
	// much as the system gives. 0 keeps the system's default.
	ReceiveBuffer, SendBuffer int
	// Patience is how long one call of Send waits for room in the send buffer before it drops packets, and 0 is as long
	// as it takes. Sockets of plain calls may wait once more as long.
	Patience time.Duration
	// PlainSending switches off segmented sends and sendmmsg: every datagram is a system call.
	PlainSending bool
	// PlainReceiving switches off UDP_GRO and recvmmsg: every system call receives one datagram.
	PlainReceiving bool
}

// Port is the sockets of one UDP port. Its methods are safe for concurrent use.
type Port struct {
	sockets []*Socket
	senders senders
	closing sync.Once
	failure error // of closing
}

// Listen opens the sockets. Its errors name address and port, and wrap the system's, such as syscall.EADDRINUSE; ErrAddress where Address is the zero value.
//
// No other process shares the port, not even one of the same user that asks for SO_REUSEPORT, too: the first socket binds alone, and only then admits the others.
func Listen(c Config) (*Port, error) {
	if !c.Address.IsValid() {
		return nil, fmt.Errorf("listening on %q: %w", c.Address, ErrAddress)
	}
	return listenWith(c, wanted(c))
}

// listenWith is Listen with what the sockets may use of the kernel's batching.
func listenWith(c Config, use abilities) (*Port, error) {
	c.Address = unmap(c.Address)
	c.Sockets = max(c.Sockets, 1)
	sockets, err := listen(c, use)
	if err != nil {
		for _, s := range sockets {
			err = errors.Join(err, s.close())
		}
		return nil, err
	}
	p := &Port{sockets: sockets}
	p.senders.config, p.senders.use, p.senders.able = c, use, true
	return p, nil
}

// Attach makes a port of one socket on a packet connection of the caller's, such as one of an emulated network, by plain calls. Closing the port closes the
// connection. ErrAddress where its local address is not one of UDP.
func Attach(conn net.PacketConn) (*Port, error) {
	s, err := newSocket(adapt(conn), 0)
	if err != nil {
		return nil, err
	}
	return &Port{sockets: []*Socket{s}}, nil
}

// abilities is what a socket uses of the kernel's batching.
type abilities struct {
	batchedReceiving bool // recvmmsg
	coalescing       bool // UDP_GRO, only with batchedReceiving
	batchedSending   bool // sendmmsg
	segmenting       bool // UDP_SEGMENT, only with batchedSending
	watching         bool // an epoll of the socket's own, only with both
}

// wanted is what a configuration allows.
func wanted(c Config) abilities {
	return abilities{
		batchedReceiving: !c.PlainReceiving,
		coalescing:       !c.PlainReceiving,
		batchedSending:   !c.PlainSending,
		segmenting:       !c.PlainSending,
		watching:         true,
	}
}

// Sockets returns the sockets, at least one; always the same.
func (p *Port) Sockets() []*Socket { return p.sockets }

// Address returns the local address and the port, chosen by the system where 0 was asked for. An address of IPv4 is not mapped.
func (p *Port) Address() netip.AddrPort { return p.sockets[0].local }

// ReceiveBuffer returns the receive buffer that each socket was granted, in bytes as asked: Linux doubles them for its own bookkeeping, which this leaves out.
// It is the smallest where they differ, and 0 where it is not known.
func (p *Port) ReceiveBuffer() int {
	smallest := p.sockets[0].receiveBuffer
	for _, s := range p.sockets {
		smallest = min(smallest, s.receiveBuffer)
	}
	return smallest
}

// SendBuffer returns the send buffer that each socket was granted, in the same way.
func (p *Port) SendBuffer() int {
	smallest := p.sockets[0].sendBuffer
	for _, s := range p.sockets {
		smallest = min(smallest, s.sendBuffer)
	}
	return smallest
}

// Stats counts since the port was opened.
type Stats struct {
	// Received and Sent count datagrams.
	Received, Sent uint64
	// Receives and Sends count system calls that moved something.
	Receives, Sends uint64
	// Runs counts messages handed to the kernel, each a segmented run or a single datagram: Sent/Runs is the mean run, Runs/Sends the mean batch.
	Runs uint64
	// ReceiveDrops counts datagrams that the kernel dropped, for the most part because the receive buffer was full. 0 where it does not tell.
	ReceiveDrops uint64
	// SendDrops counts datagrams that were dropped because the send buffer had no room for too long. They are among
	// SendErrors.
	SendDrops uint64
	// SendErrors counts datagrams that could not be sent. Every datagram given to Send is in either Sent or SendErrors, unless the port was closed meanwhile.
	SendErrors uint64
}

// Stats returns the sums over the sockets. It still counts for a closed port what was there before.
func (p *Port) Stats() Stats {
	var sum Stats
	for _, s := range p.sockets {
		s.addStats(&sum)
	}
	p.addSenderStats(&sum)
	return sum
}

// add adds other counts.
func (s *Stats) add(other Stats) {
	s.Received += other.Received
	s.Sent += other.Sent
	s.Receives += other.Receives
	s.Sends += other.Sends
	s.Runs += other.Runs
	s.ReceiveDrops += other.ReceiveDrops
	s.SendDrops += other.SendDrops
	s.SendErrors += other.SendErrors
}

// Close closes the sockets, which ends Receive and Send wherever they wait, and returns what went wrong. Closing again does nothing and returns the same.
func (p *Port) Close() error {
	p.closing.Do(func() {
		p.failure = p.closeSenders()
		for _, s := range p.sockets {
			p.failure = errors.Join(p.failure, s.close())
		}
	})
	return p.failure
}

// unmap makes an address of IPv4 that is mapped to IPv6 one of IPv4.
func unmap(address netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(address.Addr().Unmap(), address.Port())
}

// network names the kind of socket for a local address as package net does. Only with "udp" an unspecified address of IPv6 takes IPv4, too, and so would one
// of IPv4 take IPv6.
func network(address netip.Addr) string {
	switch {
	case address.Is4():
		return "udp4"
	case address == netip.IPv6Unspecified():
		return "udp"
	default:
		return "udp6"
	}
}
