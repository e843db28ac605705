package egress

import (
	"math"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Path is what is known of the way to a receiver.
type Path struct {
	// Known says that the receiver has reported about what it was sent, packet by packet. Where it has not, only Sent and Wanted mean anything, and
	// nothing limits what is sent.
	Known bool
	// Awaited says that it has not reported yet, but is about to: its peer has agreed to, and it is less than a second since it was sent the first packet.
	// Until then Estimate is the start rate.
	Awaited bool
	// Estimate is what may be sent to the receiver in all, on the wire: media, audio, retransmissions, parity, and their headers.
	Estimate volumetric.Bitrate
	// Acknowledged is the rate at which packets have arrived over the last half second, 0 while unknown.
	Acknowledged volumetric.Bitrate
	// Sent is what has left for the receiver in the last second, on the wire.
	Sent volumetric.Bitrate
	// Wanted is what Receiver.Want was told last, 0 if it was not.
	Wanted volumetric.Bitrate
	// RTT is the smoothed round-trip time, queues included.
	RTT time.Duration
	// Loss is the share of packets lost on the way over the last seconds, InherentLoss that which does not depend on the rate, 0 to 1. What publishers lost is
	// not among it.
	Loss, InherentLoss float64
	// QueueDelay is how long the queue on the path has been at least, throughout the last tenth of a second.
	QueueDelay time.Duration
}

// firstReport is how long after the first packet a receiver may report for the first time: reports come every 25 to 250 ms, and round trips of 600 ms are those of
// satellites. One that does not, though its peer has agreed on numbers, never will.
const firstReport = time.Second

// pathBox holds the latest Path.
type pathBox struct {
	mu   sync.Mutex
	path Path
	// numbered is set while packets are numbered.
	numbered bool
}

// Path is what is known of the way to the receiver, as of its last report or a tenth of a second ago. It is safe for any goroutine, and cheap.
func (r *Receiver) Path() Path {
	r.path.mu.Lock()
	p, numbered := r.path.path, r.path.numbered
	r.path.mu.Unlock()
	if numbered {
		return p
	}
	// The first packet will be.
	if extension := r.peer.TransportSequenceID(); extension > 0 && extension <= maxExtension || r.peer.ReportsByStream() {
		p.Awaited, p.Estimate = true, r.startRate()
	}
	return p
}

// startRate is the first estimate.
func (r *Receiver) startRate() volumetric.Bitrate {
	if limits := r.limits.Load(); limits != nil {
		return limits.Start
	}
	return r.writer.set.cfg.Congestion.Limits().Start
}

// Want says what would be sent to the receiver if it could take it, on the wire. The path is probed beyond an estimate below that. Until it is called, the
// largest estimate is wanted.
func (r *Receiver) Want(rate volumetric.Bitrate) { r.want.Store(int64(max(rate, 0)) + 1) }

// SetLimits bounds the receiver's estimate; what is 0 is the configuration's. The configuration's largest estimate always holds, and no least one exceeds the
// largest. It takes effect within a tenth of a second.
func (r *Receiver) SetLimits(limits congestion.Limits) {
	configured := r.writer.set.cfg.Congestion.Limits()
	if limits.Max == 0 || limits.Max > configured.Max {
		limits.Max = configured.Max
	}
	limits = limits.Or(configured)
	r.limits.Store(&limits)
}

// publish makes the path as it is now visible. The writer calls it.
func (r *Receiver) publish(now time.Duration) {
	p := Path{Sent: r.departed.rate(now)}
	if want := r.want.Load(); want > 0 {
		p.Wanted = volumetric.Bitrate(want - 1)
	}
	e := r.estimation
	switch {
	case e == nil:
	case !r.sender.Reported() && now-e.begun < firstReport:
		p.Awaited, p.Estimate = true, r.startRate()
	case r.sender.Reported():
		s := r.sender.Stats()
		p.Known, p.Estimate, p.Acknowledged = true, s.Estimate, s.Acknowledged
		p.RTT, p.QueueDelay, p.Loss, p.InherentLoss = s.RTT, s.QueueDelay, s.Loss, s.InherentLoss
	}
	r.path.mu.Lock()
	r.path.path, r.path.numbered = p, e != nil
	r.path.mu.Unlock()
}

const (
	// sentWindow is the time over which what is sent is measured, 30 frames; it is divided into sentSteps, one per round of housekeeping.
	sentWindow = time.Second
	sentSteps  = int(sentWindow / HousekeepingInterval)
)

// sentRate measures what is sent to one receiver.
type sentRate struct {
	// bytes counts what was sent, on the wire.
	bytes uint64
	// marks are the counts at the last rounds of housekeeping, the oldest at oldest.
	marks  [sentSteps]sentMark
	oldest int
}

type sentMark struct {
	at    time.Duration
	bytes uint64
}

// begin makes as if marks had been made while nothing was sent.
func (s *sentRate) begin(now time.Duration) {
	for i := range s.marks {
		s.marks[i] = sentMark{now, s.bytes}
	}
}

// mark begins the next step.
func (s *sentRate) mark(now time.Duration) {
	s.marks[s.oldest] = sentMark{now, s.bytes}
	s.oldest = (s.oldest + 1) % sentSteps
}

// rate is that since the oldest mark, which is one window less one step old at least, but at the beginning.
func (s *sentRate) rate(now time.Duration) volumetric.Bitrate {
	oldest := s.marks[s.oldest]
	elapsed := max(now-oldest.at, sentWindow-HousekeepingInterval)
	return volumetric.Bitrate(math.Round(float64(s.bytes-oldest.bytes) * 8 / elapsed.Seconds()))
}
