package egress

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/sender"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Path is what is known of the way to a receiver.
type Path struct {
	// Known says that the receiver has reported about what it was sent, packet by packet. Where it has not, only Sent
	// and Wanted mean anything, and nothing limits what is sent.
	Known bool
	// Awaited says that it has not reported yet, but is about to: its peer has agreed to, and it is less than a second
	// since it was sent the first packet. Until then Estimate is the start rate.
	Awaited bool
	// Estimate is what may be sent to the receiver in all, on the wire: media, audio, retransmissions, parity, and
	// their headers.
	Estimate volumetric.Bitrate
	// Acknowledged is the rate at which packets have arrived over the last half second, 0 while unknown.
	Acknowledged volumetric.Bitrate
	// Sent is what has left for the receiver in the last second, on the wire.
	Sent volumetric.Bitrate
	// Wanted is what Receiver.Want was told last, 0 if it was not.
	Wanted volumetric.Bitrate
	// RTT is the smoothed round-trip time, queues included.
	RTT time.Duration
	// Loss is the share of packets lost on the way over the last seconds, InherentLoss that which does not depend on
	// the rate, 0 to 1. What publishers lost is not among it.
	Loss, InherentLoss float64
	// QueueDelay is how long the queue on the path has been at least, throughout the last tenth of a second.
	QueueDelay time.Duration
}

// firstReport is how long after the first packet a receiver may report for the first time: reports come every 25 to 250
// ms, and round trips of 600 ms are those of satellites. One that does not, though its peer has agreed on numbers,
// never will.
const firstReport = time.Second

// path is what is known of the way to one receiver: the sender with its pacer and its estimator, the numbers that match
// reports with packets, and the round-trip times. The writer owns it, except for what is marked.
type path struct {
	peer Peer
	cfg  *Config
	// deadline is how long after its arrival a packet is worth repairing, 0 if Config.NACK says that.
	deadline time.Duration
	// reliable receivers are sent whole frames by a transport that repeats what is lost, and report what that
	// acknowledges.
	reliable bool
	// sender holds what waits, and sends probes.
	sender *sender.Sender[heldPacket, repair]
	// departures number the packets to the receiver, nil before its peer has agreed on it.
	departures *departures
	// estimation is nil while packets are not numbered.
	estimation *estimation
	// departed measures what is sent.
	departed sentRate
	// measured is the round-trip time by receiver reports.
	measured feedback.RoundTrip

	// What follows is for any goroutine. want is one more than Want was told last, 0 before; limits is nil before
	// SetLimits.
	want   atomic.Int64
	limits atomic.Pointer[congestion.Limits]
	// window is how many bytes may be under way to the receiver at once, if its estimator bounds that.
	window atomic.Int64
	mu     sync.Mutex
	// latest is the last that was published, numbered is set while packets are numbered.
	latest   Path
	numbered bool
}

// Path is what is known of the way to the receiver, as of its last report or a tenth of a second ago. It is safe for
// any goroutine, and cheap.
func (r *Receiver) Path() Path { return r.path.snapshot() }

// Want says what would be sent to the receiver if it could take it, on the wire. The path is probed beyond an estimate
// below that. Until it is called, the largest estimate is wanted.
func (r *Receiver) Want(rate volumetric.Bitrate) { r.path.want.Store(int64(max(rate, 0)) + 1) }

// SetLimits bounds the receiver's estimate; what is 0 is the configuration's. The configuration's largest estimate
// always holds, and no least one exceeds the largest. It takes effect within a tenth of a second.
func (r *Receiver) SetLimits(limits congestion.Limits) {
	configured := r.path.cfg.Congestion.Limits()
	if limits.Max == 0 || limits.Max > configured.Max {
		limits.Max = configured.Max
	}
	limits = limits.Or(configured)
	r.path.limits.Store(&limits)
}

// Window is how many bytes may be under way to the receiver at once, if its estimator bounds that. It is safe for any
// goroutine.
func (r *Receiver) Window() int64 { return r.path.window.Load() }

// snapshot is the path as it was published last. It is safe for any goroutine.
func (p *path) snapshot() Path {
	p.mu.Lock()
	latest, numbered := p.latest, p.numbered
	p.mu.Unlock()
	if numbered {
		return latest
	}
	// The first packet will be numbered.
	if extension := p.peer.TransportSequenceID(); extension > 0 && extension <= maxExtension ||
		p.peer.ReportsByStream() {
		latest.Awaited, latest.Estimate = true, p.startRate()
	}
	return latest
}

// startRate is the first estimate.
func (p *path) startRate() volumetric.Bitrate {
	if limits := p.limits.Load(); limits != nil {
		return limits.Start
	}
	return p.cfg.Congestion.Limits().Start
}

// publish makes the path as it is now visible.
func (p *path) publish(now time.Duration) {
	latest := Path{Sent: p.departed.rate(now)}
	if want := p.want.Load(); want > 0 {
		latest.Wanted = volumetric.Bitrate(want - 1)
	}
	e := p.estimation
	switch {
	case e == nil:
	case !p.sender.Reported() && now-e.begun < firstReport:
		latest.Awaited, latest.Estimate = true, p.startRate()
	case p.sender.Reported():
		s := p.sender.Stats()
		latest.Known, latest.Estimate, latest.Acknowledged = true, s.Estimate, s.Acknowledged
		latest.RTT, latest.QueueDelay, latest.Loss, latest.InherentLoss = s.RTT, s.QueueDelay, s.Loss, s.InherentLoss
	}
	p.mu.Lock()
	p.latest, p.numbered = latest, e != nil
	p.mu.Unlock()
}

const (
	// sentWindow is the time over which what is sent is measured, 30 frames; it is divided into sentSteps, one per
	// round of housekeeping.
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

const (
	// never is when something is due that is not.
	never = sender.Never
	// keptResults bounds the room for results that stays with a writer, 90 kB. A report of 25 ms at 300 Mbit/s has 800.
	keptResults = 1 << 10
)

// estimation is what is kept beside the sender of a path while the sender estimates.
type estimation struct {
	// begun is when the estimate began, since the engine's start.
	begun time.Duration
	// want and limits are what the sender was told of the receiver's.
	want   int64
	limits *congestion.Limits
	// counted is what the writer's counts have of the estimator's.
	counted congestion.Stats
}

// algorithm is how the receiver is estimated: by what it reports of packets, or by what it acknowledges of what is sent
// to it reliably.
func (p *path) algorithm() congestion.Algorithm {
	if p.reliable {
		return congestion.Reliable
	}
	return congestion.GCC
}

// estimate begins to estimate what the receiver can take, or gives that up. It reports whether that is a change.
func (p *path) estimate(wanted bool, now time.Time, at time.Duration) (changed bool) {
	switch {
	case wanted && p.estimation == nil:
		p.estimation = &estimation{begun: at}
		p.sender.Start(p.departures.history, congestion.New(p.algorithm(), p.cfg.Congestion, now), now)
		p.window.Store(int64(p.sender.Stats().Window))
	case !wanted && p.estimation != nil:
		p.estimation = nil
		p.sender.Stop(now)
		p.publish(at)
	default:
		return false
	}
	return true
}

// instruct tells the sender what is wanted and what bounds it, if that has changed.
func (p *path) instruct(now time.Time) {
	e := p.estimation
	if want := p.want.Load(); want != e.want {
		e.want = want
		p.sender.Want(congestion.Bitrate(want-1), now)
	}
	if limits := p.limits.Load(); limits != e.limits {
		e.limits = limits
		p.sender.SetLimits(*limits, now)
	}
}

// count adds what the estimator has counted since the last time to the counts.
func (p *path) count(counts *counters.Counts) {
	stats, counted := p.sender.Stats(), &p.estimation.counted
	counts[counters.ProbesMeasured] += stats.ProbesMeasured - counted.ProbesMeasured
	counts[counters.Overuses] += stats.Overuses - counted.Overuses
	counts[counters.Silences] += stats.Silences - counted.Silences
	*counted = *stats
}
