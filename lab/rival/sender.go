package rival

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/volsfu/volsfu/internal/congestion/sender/precise"
	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/internal/udp"
)

// ErrSilent reports that a Sender received no acknowledgement. The wrapping error has the address and the time.
var ErrSilent = errors.New("no acknowledgement arrived")

const (
	// silence is the time without any acknowledgement after which a Sender ends: four timeouts of 1 s, 2 s, … have
	// passed by then (RFC 6298), unless the path is so slow that no measurement would be possible.
	silence = 8 * time.Second
	// sampleInterval is the interval of Sample: four virtual round trips.
	sampleInterval = 100 * time.Millisecond
	// ackBacklog is the number of batches of acknowledgements that wait for the pacing goroutine.
	ackBacklog = 256
)

// Sender is an endless Prague transfer to a Sink. Segments have netem.SegmentBytes with headers, leave as ECT(1), and
// leave in bursts of at most netem.PragueBurst of the paced rate.
type Sender struct {
	port   *udp.Port
	to     netip.AddrPort
	prague *netem.Prague
	// patience is the time without any acknowledgement after which Run ends.
	patience time.Duration

	summary Summary
	last    netem.PragueStats // at the latest sample
	sampled time.Duration     // time of that sample
}

// Open opens a Sender to a Sink. The socket belongs to the namespace of the calling thread. The error names the
// address.
func Open(to netip.AddrPort) (*Sender, error) {
	if !to.IsValid() || to.Port() == 0 {
		return nil, fmt.Errorf("%w: %v, expected the address of a sink with its port", udp.ErrAddress, to)
	}
	local := netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	if !to.Addr().Unmap().Is4() {
		local = netip.AddrPortFrom(netip.IPv6Unspecified(), 0)
	}
	port, err := udp.Listen(udp.Config{Address: local, ReceiveBuffer: socketBuffer, SendBuffer: socketBuffer})
	if err != nil {
		return nil, err
	}
	return &Sender{port: port, to: to, prague: netem.NewPrague(), patience: silence}, nil
}

// Run sends until the context ends, which is not an error, and returns the summary, also with an error. It closes the
// socket. The error wraps ErrSilent if no acknowledgement arrives for some seconds.
func (s *Sender) Run(ctx context.Context) (*Summary, error) {
	acks, free := make(chan []acknowledgement, ackBacklog), make(chan []acknowledgement, ackBacklog)
	failed := make(chan error, 1)
	received := make(chan struct{})
	go func() {
		defer close(received)
		failed <- s.receive(acks, free)
	}()
	err := s.pace(ctx, acks, free, failed)
	err = errors.Join(err, s.port.Close())
	<-received
	return s.finish(), err
}

// receive reads acknowledgements until the socket is closed, which is not an error. Batches that find no place are
// dropped: their segments count as lost.
func (s *Sender) receive(acks, free chan []acknowledgement) error {
	inbox := udp.NewInbox()
	for {
		if err := s.port.Sockets()[0].Receive(inbox); err != nil {
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			return fmt.Errorf("receive acknowledgements: %w", err)
		}
		var batch []acknowledgement
		select {
		case batch = <-free:
		default:
		}
		for _, m := range inbox.Messages() {
			if m.Peer != s.to {
				continue
			}
			for d := range m.Datagrams() {
				batch, _ = parseAcknowledgements(d, batch)
			}
		}
		select {
		case acks <- batch:
		default:
		}
	}
}

// pace owns the congestion control.
func (s *Sender) pace(ctx context.Context, acks <-chan []acknowledgement, free chan<- []acknowledgement,
	failed <-chan error) error {
	begun := time.Now()
	acknowledged := begun
	timer := precise.NewTimer(0)
	defer timer.Stop()
	var out burst
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case batch := <-acks:
			acknowledged = time.Now()
			for _, a := range batch {
				s.summary.count(a.codepoint)
				s.prague.Acknowledge(a.number, a.codepoint == ecn.CE, acknowledged)
			}
			select {
			case free <- batch[:0]:
			default:
			}
		case <-timer.C:
		}
		now := time.Now()
		s.sample(now.Sub(begun))
		s.prague.Expire(now)
		full := s.send(&out, now)
		if now.Sub(acknowledged) > s.patience {
			return fmt.Errorf("%w from %v for %v; does vollab rival prague --listen run there?", ErrSilent, s.to,
				s.patience)
		}
		timer.Reset(s.wait(now, full))
	}
}

// send sends the segments that are due, one burst at most, and reports whether more may be due.
func (s *Sender) send(out *burst, now time.Time) (full bool) {
	size := netem.SegmentBytes - headerBytes(s.to.Addr())
	limit := max(1, int(s.prague.Stats().RateBPS*netem.PragueBurst.Seconds()/(8*netem.SegmentBytes)))
	out.data = out.data[:0]
	for count := 0; ; count++ {
		if count == limit {
			full = true
			break
		}
		number, ok := s.prague.Send(now)
		if !ok {
			break
		}
		out.data = appendSegment(out.data, number, size)
	}
	if len(out.data) > 0 {
		out.messages[0] = udp.Message{Peer: s.to, Data: out.data, Segment: size, ECN: ecn.ECT1}
		// The only error is that of a closed socket, which the receiving goroutine returns, too.
		_ = s.port.Sockets()[0].Send(out.messages[:])
	}
	return full
}

// burst is the memory of one burst.
type burst struct {
	data     []byte
	messages [1]udp.Message
}

// wait returns the time until the next segment or sample is due. After a full burst the next burst waits for half of
// the time of a burst, so that a late timer does not join two bursts.
func (s *Sender) wait(now time.Time, full bool) time.Duration {
	wait := sampleInterval
	if next := s.prague.Next(); !next.IsZero() {
		wait = min(wait, next.Sub(now))
	}
	if full {
		return max(wait, netem.PragueBurst/2)
	}
	return max(wait, 0)
}
