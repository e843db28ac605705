package udp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// ErrAddress is the sentinel of addresses that UDP sockets cannot have.
var ErrAddress = errors.New("not an IP address with a port")

// Config is the configuration of a Port.
type Config struct {
	// Address is the local address; port 0 lets the system choose. [::] listens on IPv6 and IPv4, 0.0.0.0 on IPv4 only.
	Address netip.AddrPort
	// Sockets is the number of sockets that share the port, which is also the number of goroutines that can receive:
	// the system delivers all datagrams of one peer to the same socket, chosen by a hash of both addresses. Values
	// below 1 count as 1. Only Linux shares ports in this way; other systems have one socket.
	Sockets int
	// ReceiveBuffer and SendBuffer are the requested buffers of each socket, in bytes: beyond the system's limits if
	// the process has CAP_NET_ADMIN, else at most the system's limit. 0 keeps the system's default.
	ReceiveBuffer, SendBuffer int
	// Device is the name of the network interface through which all datagrams arrive and leave, empty for all
	// interfaces. The kernel then routes by the routes of this interface alone (SO_BINDTODEVICE; before Linux 5.7
	// CAP_NET_RAW is needed). Systems other than Linux route as usual.
	Device string
	// Patience is the time for which one call of Send waits for space in the send buffer before it drops packets; 0 is
	// no limit. Sockets of plain calls may wait for twice as long.
	Patience time.Duration
	// PlainSending disables segmented sends and sendmmsg: every datagram is a system call.
	PlainSending bool
	// PlainReceiving disables UDP_GRO and recvmmsg: every system call receives one datagram.
	PlainReceiving bool
}

// Port has the sockets of one UDP port. Its methods are safe for concurrent use.
type Port struct {
	sockets []*Socket
	senders senders
	closing sync.Once
	failure error // of closing
}

// Listen opens the sockets. Its errors name address and port, and wrap the system's error, such as syscall.EADDRINUSE,
// or ErrAddress if Address is the zero value.
//
// No other process shares the port, not even one of the same user with SO_REUSEPORT: the first socket binds alone, and
// only then permits the others.
func Listen(c Config) (*Port, error) {
	if !c.Address.IsValid() {
		return nil, fmt.Errorf("listening on %q: %w", c.Address, ErrAddress)
	}
	return listenWith(c, wanted(c))
}

// listenWith is Listen with the kernel features that the sockets may use.
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

// Attach returns a port with one socket on the caller's packet connection, for example one of an emulated network, with
// plain calls. Closing the port closes the connection. The error wraps ErrAddress if the local address is not a UDP
// address.
func Attach(conn net.PacketConn) (*Port, error) {
	s, err := newSocket(adapt(conn), 0)
	if err != nil {
		return nil, err
	}
	return &Port{sockets: []*Socket{s}}, nil
}

// abilities are the kernel features that a socket uses.
type abilities struct {
	batchedReceiving bool // recvmmsg
	reportingECN     bool // IP_RECVTOS and IPV6_RECVTCLASS, only with batchedReceiving
	coalescing       bool // UDP_GRO, only with batchedReceiving
	batchedSending   bool // sendmmsg
	segmenting       bool // UDP_SEGMENT, only with batchedSending
	settingECN       bool // IP_TOS and IPV6_TCLASS, only with batchedSending
	watching         bool // an epoll of the socket's own, only with both
}

// wanted returns the features that a configuration permits.
func wanted(c Config) abilities {
	return abilities{
		batchedReceiving: !c.PlainReceiving,
		coalescing:       !c.PlainReceiving,
		reportingECN:     !c.PlainReceiving,
		batchedSending:   !c.PlainSending,
		segmenting:       !c.PlainSending,
		settingECN:       !c.PlainSending,
		watching:         true,
	}
}

// Sockets returns the sockets, at least one; always the same.
func (p *Port) Sockets() []*Socket { return p.sockets }

// Address returns the local address and the port, which may have been chosen by the system. An IPv4 address is not
// mapped.
func (p *Port) Address() netip.AddrPort { return p.sockets[0].local }

// ReceiveBuffer returns the granted receive buffer of each socket in bytes, without the doubling by Linux. It is the
// smallest if they differ, and 0 if it is unknown.
func (p *Port) ReceiveBuffer() int {
	smallest := p.sockets[0].receiveBuffer
	for _, s := range p.sockets {
		smallest = min(smallest, s.receiveBuffer)
	}
	return smallest
}

// SendBuffer returns the granted send buffer of each socket, in the same way.
func (p *Port) SendBuffer() int {
	smallest := p.sockets[0].sendBuffer
	for _, s := range p.sockets {
		smallest = min(smallest, s.sendBuffer)
	}
	return smallest
}

// Stats are counters since the port was opened.
type Stats struct {
	// Received and Sent count datagrams.
	Received, Sent uint64
	// ReceivedECN and SentECN count the same datagrams by codepoint. Unknown codepoints count as Not-ECT.
	ReceivedECN, SentECN CodepointCounts
	// Receives and Sends count system calls that transferred datagrams.
	Receives, Sends uint64
	// Runs counts messages passed to the kernel, each a segmented run or a single datagram: Sent/Runs is the mean run,
	// Runs/Sends the mean batch.
	Runs uint64
	// ReceiveDrops counts datagrams dropped by the kernel, mostly because the receive buffer was full. 0 if it is
	// unknown.
	ReceiveDrops uint64
	// SendDrops counts datagrams dropped because the send buffer had no space for too long. SendErrors includes them.
	SendDrops uint64
	// SendErrors counts datagrams that could not be sent. Every datagram passed to Send is counted in Sent or
	// SendErrors, unless the port was closed meanwhile.
	SendErrors uint64
}

// Stats returns the sums over the sockets, also after the port is closed.
func (p *Port) Stats() Stats {
	var sum Stats
	for _, s := range p.sockets {
		s.addStats(&sum)
	}
	p.addSenderStats(&sum)
	return sum
}

// Add adds other counters.
func (s *Stats) Add(other Stats) {
	s.Received += other.Received
	s.Sent += other.Sent
	s.ReceivedECN.add(&other.ReceivedECN)
	s.SentECN.add(&other.SentECN)
	s.Receives += other.Receives
	s.Sends += other.Sends
	s.Runs += other.Runs
	s.ReceiveDrops += other.ReceiveDrops
	s.SendDrops += other.SendDrops
	s.SendErrors += other.SendErrors
}

// Close closes the sockets, which ends all waiting calls of Receive and Send, and returns the errors of closing.
// Further calls do nothing and return the same.
func (p *Port) Close() error {
	p.closing.Do(func() {
		p.failure = p.closeSenders()
		for _, s := range p.sockets {
			p.failure = errors.Join(p.failure, s.close())
		}
	})
	return p.failure
}

// unmap converts an IPv4 address mapped to IPv6 to IPv4.
func unmap(address netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(address.Addr().Unmap(), address.Port())
}

// network returns the network name of package net for a local address. Only with "udp" an unspecified IPv6 address
// accepts IPv4, too, and an unspecified IPv4 address would accept IPv6.
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
