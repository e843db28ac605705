package udp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// fullPause is how long a socket counts as full after it had no room for as long as Send waits.
const fullPause = 20 * time.Millisecond

// Socket is one of a port's sockets. Any of them reaches every peer; each receives from some.
type Socket struct {
	conn   packetConn // what plain calls are made on
	closer io.Closer
	closed atomic.Bool
	kernel kernel // what the system offers beyond plain calls
	local  netip.AddrPort
	// patience is how long one call of Send waits for room, 0 is without bound.
	patience time.Duration
	// What was granted, in bytes; 0 is unknown.
	receiveBuffer, sendBuffer int

	received, receives                   atomic.Uint64
	sent, sends, runs, sendErrors, drops atomic.Uint64
	// sendDrops counts datagrams that found the send buffer full, which are among sendErrors. fullAt is when one did
	// last, in nanoseconds since 1970.
	sendDrops atomic.Uint64
	fullAt    atomic.Int64

	counting  sync.Mutex
	lastDrops uint32 // what the kernel told last, guarded by counting
}

// newSocket makes a socket of plain calls, each of which waits for patience at most.
func newSocket(conn packetConn, patience time.Duration) (*Socket, error) {
	local, err := addrPort(conn.LocalAddr())
	if err != nil {
		return nil, fmt.Errorf("local address: %w", err)
	}
	return &Socket{conn: conn, closer: conn, local: local, patience: patience}, nil
}

// Receive waits for at least one datagram, or one stamp of a datagram that was sent, and fills the Inbox with what there is. It belongs to one goroutine at a time. It returns net.ErrClosed, wrapped,
// once the port is closed; any other error means that the socket is of no more use. Errors that concern a single peer, as ICMP messages cause them, are passed over.
func (s *Socket) Receive(in *Inbox) error {
	for {
		in.messages, in.departures = in.messages[:0], in.departures[:0]
		switch err := s.receive(in); {
		case err == nil:
			datagrams := 0
			for _, m := range in.messages {
				datagrams += m.Count()
			}
			if datagrams > 0 {
				s.received.Add(uint64(datagrams))
				s.receives.Add(1)
			}
			return nil
		case !passing(err):
			return fmt.Errorf("receiving on %s: %w", s.local, err)
		}
	}
}

// Send sends all messages in order. It is safe for concurrent use. If the send buffer is full, Send waits, in all for
// as long as it was configured to, and then drops what is left. A message that the system refuses does not keep back the
// others. Both are counted in Stats.SendErrors, so the only error is net.ErrClosed, wrapped, once the socket is closed.
// The messages are not kept.
func (s *Socket) Send(messages []Message) error {
	if err := s.send(messages); err != nil {
		return fmt.Errorf("sending from %s: %w", s.local, err)
	}
	return nil
}

// Full reports whether the send buffer had no room for the socket's packets a moment ago. While a socket is full, Send
// does not wait. It takes no lock.
func (s *Socket) Full(now time.Time) bool {
	at := s.fullAt.Load()
	return at != 0 && now.UnixNano()-at < int64(fullPause)
}

// receivePlain receives one datagram.
func (s *Socket) receivePlain(in *Inbox) error {
	in.reserve(1)
	length, peer, err := s.conn.ReadFromAddrPort(in.buffer(0))
	if err != nil {
		return err
	}
	in.append(unmap(peer), 0, length, 0)
	return nil
}

// leastPlainWait is how long a plain call waits for room at least. Package net makes no call whose deadline has passed,
// so the time cannot be next to nothing.
const leastPlainWait = 100 * time.Microsecond

// sendPlain sends every datagram by a call of its own. Concurrent calls share the connection's deadline: one may wait
// for as long as the latest of them.
func (s *Socket) sendPlain(messages []Message) error {
	rest := cursor{messages: messages}
	full, renewed := s.patience > 0 && s.Full(time.Now()), false
	if !full {
		s.limitPlain()
	}
	for datagram, ok := rest.next(false); ok; datagram, ok = rest.next(false) {
		if !datagram.Peer.IsValid() {
			s.sendErrors.Add(1)
			continue
		}
		if full {
			s.countSendDrops(1)
			continue
		}
		_, err := s.conn.WriteToAddrPort(datagram.Data, unmap(datagram.Peer))
		if !renewed && errors.Is(err, os.ErrDeadlineExceeded) {
			// The goroutine may have been stopped until the deadline had passed.
			renewed = true
			s.limitPlain()
			_, err = s.conn.WriteToAddrPort(datagram.Data, unmap(datagram.Peer))
		}
		switch {
		case err == nil:
			s.sent.Add(1)
			s.sends.Add(1)
			s.runs.Add(1)
		case errors.Is(err, net.ErrClosed):
			return err
		case errors.Is(err, os.ErrDeadlineExceeded):
			full = true
			s.fullAt.Store(time.Now().UnixNano())
			s.countSendDrops(1)
		default:
			s.sendErrors.Add(1)
		}
	}
	return nil
}

// countSendDrops counts datagrams for which the send buffer had no room.
func (s *Socket) countSendDrops(datagrams int) {
	s.sendErrors.Add(uint64(datagrams))
	s.sendDrops.Add(uint64(datagrams))
}

// limitPlain sets the time until which plain calls wait for room, if that is bounded.
func (s *Socket) limitPlain() {
	if s.patience > 0 {
		// A connection without deadlines, of which package net has none, waits as it likes.
		_ = s.conn.SetWriteDeadline(time.Now().Add(max(s.patience, leastPlainWait)))
	}
}

// passingErrors are what systems report on a socket because of a datagram that it sent to some peer (Linux: icmp_err_convert in net/ipv4/icmp.c), and
// want of memory for the moment. None of them says that the next datagram cannot be received.
var passingErrors = [...]syscall.Errno{
	syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EHOSTUNREACH, syscall.EHOSTDOWN, syscall.ENETUNREACH, syscall.ENETDOWN,
	syscall.ENOPROTOOPT, syscall.EPROTO, syscall.EMSGSIZE, syscall.EOPNOTSUPP,
	syscall.ENOBUFS, syscall.ENOMEM, syscall.EINTR, syscall.EAGAIN,
}

// passing tells errors after which receiving goes on.
func passing(err error) bool {
	var number syscall.Errno
	if !errors.As(err, &number) {
		return false
	}
	for _, known := range passingErrors {
		if number == known {
			return true
		}
	}
	return false
}

// addStats adds the socket's numbers.
func (s *Socket) addStats(sum *Stats) {
	s.countDrops()
	sum.add(Stats{
		Received: s.received.Load(), Receives: s.receives.Load(),
		Sent: s.sent.Load(), Sends: s.sends.Load(), Runs: s.runs.Load(),
		SendDrops: s.sendDrops.Load(), SendErrors: s.sendErrors.Load(), ReceiveDrops: s.drops.Load(),
	})
}

// countDrops brings the drops up to date. The kernel counts them modulo 2^32.
func (s *Socket) countDrops() {
	s.counting.Lock()
	defer s.counting.Unlock()
	if drops, ok := s.receiveDrops(); ok {
		s.drops.Add(uint64(drops - s.lastDrops))
		s.lastDrops = drops
	}
}

func (s *Socket) close() error {
	s.countDrops()
	s.closed.Store(true)
	return s.closer.Close()
}
