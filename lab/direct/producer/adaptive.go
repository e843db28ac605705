package producer

import (
	"context"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/congestion/sender/precise"
	"github.com/volsfu/volsfu/lab/direct/stages"
	"github.com/volsfu/volsfu/lab/direct/stream"
	"github.com/volsfu/volsfu/lab/wallclock"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Way sends packets.
type Way interface {
	Send(packets []stream.Packet)
}

// Ledger receives the producer's record of each frame.
type Ledger interface {
	Sent(s *stages.Sent)
}

// Adaptive is the outlet of payload v1: paced, rate-controlled, and with retransmission.
type Adaptive struct {
	way    Way
	ledger Ledger
	// fixed is the rate if the bandwidth is not estimated.
	fixed volumetric.Bitrate
	wake  chan struct{}

	mu       sync.Mutex
	sender   *stream.Sender
	waiting  map[uint32]stages.Sent
	departed []stream.Departure
}

// NewAdaptive returns an outlet. A fixed rate above 0 replaces the bandwidth estimate.
func NewAdaptive(config stream.SenderConfig, fixed volumetric.Bitrate, way Way, ledger Ledger) (*Adaptive, error) {
	config.Estimate = fixed == 0
	sender, err := stream.NewSender(config, time.Now())
	if err != nil {
		return nil, err
	}
	return &Adaptive{way: way, ledger: ledger, fixed: fixed, wake: make(chan struct{}, 1), sender: sender,
		waiting: make(map[uint32]stages.Sent)}, nil
}

// Send implements Outlet.
func (a *Adaptive) Send(f *Frame) error {
	a.mu.Lock()
	err := a.sender.Send(stream.Frame{Number: f.Sent.Frame, Capture: f.Capture.Add(-wallclock.Shift()),
		Data: f.Data}, time.Now())
	if err == nil {
		a.waiting[f.Sent.Frame] = f.Sent
	}
	a.mu.Unlock()
	a.signal()
	return err
}

// Estimate implements Outlet.
func (a *Adaptive) Estimate() volumetric.Bitrate {
	if a.fixed > 0 {
		return a.fixed
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sender.Estimate()
}

// Want implements Outlet.
func (a *Adaptive) Want(rate volumetric.Bitrate) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sender.Want(time.Now(), rate)
}

// RTCP handles one RTCP packet of the consumer. rtt is the round-trip time, 0 if only the estimator knows it.
func (a *Adaptive) RTCP(packet []byte, now time.Time, rtt time.Duration) {
	a.mu.Lock()
	if rtt == 0 {
		rtt = a.sender.Stats().RTT
	}
	a.sender.RTCP(packet, now, rtt)
	a.mu.Unlock()
	a.signal()
}

func (a *Adaptive) signal() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Waiting reports whether frames wait to be sent.
func (a *Adaptive) Waiting() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.waiting) > 0
}

// Run sends until the context ends.
func (a *Adaptive) Run(ctx context.Context) {
	timer := precise.NewTimer(time.Hour)
	defer timer.Stop()
	var due []stream.Packet
	for {
		a.mu.Lock()
		now := time.Now()
		due = a.sender.Step(now, due[:0])
		a.departed = a.sender.Departures(a.departed[:0])
		left := a.leave()
		next := a.sender.Next()
		a.mu.Unlock()
		if len(due) > 0 {
			a.way.Send(due)
			clear(due)
		}
		for i := range left {
			a.ledger.Sent(&left[i])
		}
		wait := time.Hour
		if !next.IsZero() {
			wait = time.Until(next)
		}
		timer.Reset(wait)
		select {
		case <-a.wake:
		case <-timer.C:
		case <-ctx.Done():
			return
		}
	}
}

// leave returns the records of the frames that were sent.
func (a *Adaptive) leave() (left []stages.Sent) {
	for _, d := range a.departed {
		s, ok := a.waiting[d.Number]
		if !ok {
			continue
		}
		delete(a.waiting, d.Number)
		s.FirstSent, s.LastSent = stages.At(d.First.Add(wallclock.Shift())), stages.At(d.Last.Add(wallclock.Shift()))
		s.Packets, s.Dropped = d.Packets, d.Dropped
		s.Wire = s.Bytes + FrameBytes + d.Packets*stream.PacketBytes
		left = append(left, s)
	}
	return left
}
