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

	"github.com/volsfu/volsfu/internal/ecn"
)

// fullPause is the time for which a socket counts as full after it had no space for the whole patience of Send.
const fullPause = 20 * time.Millisecond

// Socket is one of a port's sockets. Each can send to every peer, and receives from some peers.
type Socket struct {
	conn   packetConn // for plain calls
	ecn    ecnConn    // conn, if it carries codepoints
	closer io.Closer
	closed atomic.Bool
	kernel kernel // system calls beyond plain calls
	local  netip.AddrPort
	// patience bounds the wait of one Send for space, 0 is no bound.
	patience time.Duration
	// The granted sizes in bytes; 0 is unknown.
	receiveBuffer, sendBuffer int

	received, sent                           datagramCounts
	receives, sends, runs, sendErrors, drops atomic.Uint64
	// sendDrops counts datagrams that found the send buffer full, which are included in sendErrors. fullAt is the time
	// of the last one, in nanoseconds since 1970.
	sendDrops atomic.Uint64
	fullAt    atomic.Int64

	counting  sync.Mutex
	lastDrops uint32 // last value from the kernel, guarded by counting
}

// newSocket returns a socket of plain calls, each of which waits at most for patience.
func newSocket(conn packetConn, patience time.Duration) (*Socket, error) {
	local, err := addrPort(conn.LocalAddr())
	if err != nil {
		return nil, fmt.Errorf("local address: %w", err)
	}
	carries, _ := conn.(ecnConn)
	return &Socket{conn: conn, ecn: carries, closer: conn, local: local, patience: patience}, nil
}

// codepointMask selects the ECN field in the TOS byte of IPv4 and in the traffic class of IPv6 (RFC 3168 section 5).
const codepointMask = 3

// CodepointCounts are numbers of datagrams by ecn.Codepoint.
type CodepointCounts [codepointMask + 1]uint64

// Sum returns the number of all datagrams.
func (c *CodepointCounts) Sum() uint64 {
	return c[ecn.NotECT] + c[ecn.ECT1] + c[ecn.ECT0] + c[ecn.CE]
}

// count adds the datagrams of a message.
func (c *CodepointCounts) count(m *Message) { c[m.ECN&codepointMask] += uint64(m.Count()) }

// add adds other counts.
func (c *CodepointCounts) add(other *CodepointCounts) {
	for i := range c {
		c[i] += other[i]
	}
}

// datagramCounts are CodepointCounts of several goroutines.
type datagramCounts [codepointMask + 1]atomic.Uint64

// add adds the counts of one batch, usually of one codepoint.
func (d *datagramCounts) add(batch *CodepointCounts) {
	for i, n := range batch {
		if n > 0 {
			d[i].Add(n)
		}
	}
}

// load returns the present counts.
func (d *datagramCounts) load() (counts CodepointCounts) {
	for i := range d {
		counts[i] = d[i].Load()
	}
	return counts
}

// Receive waits for at least one datagram, or one timestamp of a sent datagram, and fills the Inbox with everything
// available. It belongs to one goroutine at a time. The error wraps net.ErrClosed after the port is closed; any other
// error means that the socket is unusable. Errors that concern a single peer, caused by ICMP messages, are ignored.
func (s *Socket) Receive(in *Inbox) error {
	for {
		in.messages, in.departures = in.messages[:0], in.departures[:0]
		switch err := s.receive(in); {
		case err == nil:
			var counts CodepointCounts
			for i := range in.messages {
				counts.count(&in.messages[i])
			}
			if len(in.messages) > 0 {
				s.received.add(&counts)
				s.receives.Add(1)
			}
			return nil
		case !passing(err):
			return fmt.Errorf("receiving on %s: %w", s.local, err)
		}
	}
}

// Send sends all messages in order. It is safe for concurrent use. If the send buffer is full, Send waits, in all for
// the configured patience, and then drops the rest. A message that the system refuses does not affect the others. Both
// are counted in Stats.SendErrors, so the only error is net.ErrClosed, wrapped, after the socket is closed. The
// messages are not kept.
func (s *Socket) Send(messages []Message) error {
	if err := s.send(messages); err != nil {
		return fmt.Errorf("sending from %s: %w", s.local, err)
	}
	return nil
}

// Full reports whether the send buffer was full a moment ago. While a socket is full, Send does not wait. Full takes no
// lock.
func (s *Socket) Full(now time.Time) bool {
	at := s.fullAt.Load()
	return at != 0 && now.UnixNano()-at < int64(fullPause)
}

// receivePlain receives one datagram.
func (s *Socket) receivePlain(in *Inbox) error {
	in.reserve(1)
	length, peer, codepoint, err := s.readPlain(in.buffer(0))
	if err != nil {
		return err
	}
	in.append(unmap(peer), 0, length, 0).ECN = codepoint & codepointMask
	return nil
}

func (s *Socket) readPlain(b []byte) (int, netip.AddrPort, ecn.Codepoint, error) {
	if s.ecn != nil {
		return s.ecn.ReadECN(b)
	}
	length, peer, err := s.conn.ReadFromAddrPort(b)
	return length, peer, ecn.NotECT, err
}

// writePlain sends one datagram.
func (s *Socket) writePlain(datagram *Message) (err error) {
	peer := unmap(datagram.Peer)
	if s.ecn != nil {
		_, err = s.ecn.WriteECN(datagram.Data, peer, datagram.ECN&codepointMask)
	} else {
		_, err = s.conn.WriteToAddrPort(datagram.Data, peer)
	}
	return err
}

// leastPlainWait is the minimum wait of a plain call for space. Package net makes no call after its deadline, so the
// wait cannot be arbitrarily short.
const leastPlainWait = 100 * time.Microsecond

// sendPlain sends every datagram by a call of its own. Concurrent calls share the connection's deadline: one may wait
// until the deadline of the latest of them.
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
		err := s.writePlain(&datagram)
		if !renewed && errors.Is(err, os.ErrDeadlineExceeded) {
			// The goroutine may have been paused until after the deadline.
			renewed = true
			s.limitPlain()
			err = s.writePlain(&datagram)
		}
		switch {
		case err == nil:
			if s.ecn == nil {
				datagram.ECN = ecn.NotECT
			}
			s.sent[datagram.ECN&codepointMask].Add(1)
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

// countSendDrops counts datagrams for which the send buffer had no space.
func (s *Socket) countSendDrops(datagrams int) {
	s.sendErrors.Add(uint64(datagrams))
	s.sendDrops.Add(uint64(datagrams))
}

// limitPlain sets the deadline of plain calls, if the patience is bounded.
func (s *Socket) limitPlain() {
	if s.patience > 0 {
		// A connection without deadlines, which package net does not have, waits without bound.
		_ = s.conn.SetWriteDeadline(time.Now().Add(max(s.patience, leastPlainWait)))
	}
}

// passingErrors are errors that systems report on a socket because of a datagram sent to some peer (Linux:
// icmp_err_convert in net/ipv4/icmp.c), and temporary lack of memory. After any of them the next datagram can be
// received.
var passingErrors = [...]syscall.Errno{
	syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EHOSTUNREACH, syscall.EHOSTDOWN, syscall.ENETUNREACH,
	syscall.ENETDOWN,
	syscall.ENOPROTOOPT, syscall.EPROTO, syscall.EMSGSIZE, syscall.EOPNOTSUPP,
	syscall.ENOBUFS, syscall.ENOMEM, syscall.EINTR, syscall.EAGAIN,
}

// passing reports whether receiving continues after an error.
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

// addStats adds the socket's counters.
func (s *Socket) addStats(sum *Stats) {
	s.countDrops()
	received, sent := s.received.load(), s.sent.load()
	sum.Add(Stats{
		Received: received.Sum(), ReceivedECN: received, Receives: s.receives.Load(),
		Sent: sent.Sum(), SentECN: sent, Sends: s.sends.Load(), Runs: s.runs.Load(),
		SendDrops: s.sendDrops.Load(), SendErrors: s.sendErrors.Load(), ReceiveDrops: s.drops.Load(),
	})
}

// countDrops updates the drops. The kernel counts them modulo 2^32.
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
