package egress

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/sender"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Path is the known state of the network path to a receiver.
type Path struct {
	// Known is set if the receiver has reported the arrival of packets. If not, only Sent and Wanted are valid, and the
	// sending rate is not limited.
	Known bool
	// Awaited is set if the first report is pending: the peer has agreed to report, and the first packet was sent less
	// than a second ago. Until then Estimate is the start rate.
	Awaited bool
	// L4S is the state of L4S on the path. Alpha is the mean share of marked packets while the rate follows marks, 0 to
	// 1. Both are valid even if the path is not known.
	L4S   congestion.L4SState
	Alpha float32
	// Estimate is the total rate that may be sent to the receiver, on the wire: media, audio, retransmissions, parity,
	// and their headers.
	Estimate volumetric.Bitrate
	// Acknowledged is the arrival rate over the last half second, 0 while unknown.
	Acknowledged volumetric.Bitrate
	// Sent is the rate of packets sent to the receiver in the last second, on the wire.
	Sent volumetric.Bitrate
	// Wanted is the last argument of Receiver.Want, 0 if there is none.
	Wanted volumetric.Bitrate
	// RTT is the smoothed round-trip time, including queues.
	RTT time.Duration
	// Loss is the share of packets lost on the path over the last seconds, InherentLoss the part that does not depend
	// on the rate, 0 to 1. Losses of publishers are not included.
	Loss, InherentLoss float64
	// QueueDelay is the minimum queueing delay on the path over the last tenth of a second.
	QueueDelay time.Duration
	// Second is the second path, valid even if the path is not known, or nil if there is none. During an outage of the
	// primary path, Estimate is at most that of the second path.
	Second *SecondPath
}

// firstReport is the time after the first packet within which a receiver makes its first report: reports follow every
// 25 to 250 ms, and round trips over satellites take 600 ms. A later first report is not expected, although the peer
// has agreed on numbers.
const firstReport = time.Second

// path is the state of the network path to one receiver: the sender with its pacer and estimator, the numbers that
// match reports with packets, and the round-trip times. The writer owns it, except for the marked fields.
type path struct {
	peer Peer
	cfg  *Config
	// deadline is the time after its arrival for which a packet is worth repairing, 0 to use Config.NACK.
	deadline time.Duration
	// sender holds waiting packets and sends probes.
	sender *sender.Sender[heldPacket, repair]
	// departures number the packets to the receiver. It is nil until the peer has agreed on numbers.
	departures *departures
	// estimation is nil while packets are not numbered.
	estimation *estimation
	// departed measures the sending rate.
	departed sentRate
	// measured is the round-trip time from receiver reports.
	measured feedback.RoundTrip
	// routes is nil if the receiver never has a second path.
	routes *routes
	// reception is nil until the first call of Receptions.
	reception atomic.Pointer[reception]

	// Any goroutine may use the fields below. want is one more than the last argument of Want, 0 before the first call.
	// limits is nil before SetLimits.
	want   atomic.Int64
	limits atomic.Pointer[congestion.Limits]
	// backlog is the maximum number of bytes that a reliable transport to the receiver holds.
	backlog atomic.Int64
	mu      sync.Mutex
	// latest is the last published Path. numbered is set while packets are numbered.
	latest   Path
	numbered bool
	// reliable is set if the receiver is sent whole frames over a transport that retransmits, and reports the
	// transport's acknowledgements. It does not change after the receiver's first slot.
	reliable bool
}

// Path returns the state of the path as of the last report or a tenth of a second ago. Path is safe for any goroutine,
// and cheap.
func (r *Receiver) Path() Path { return r.path.snapshot() }

// Want sets the rate on the wire that would be sent to the receiver if the path could carry it. An estimate below the
// rate is probed. Until the first call the maximum estimate is wanted.
func (r *Receiver) Want(rate volumetric.Bitrate) { r.path.want.Store(int64(max(rate, 0)) + 1) }

// SetLimits bounds the receiver's estimate. A limit of 0 selects the configured limit. The configured maximum always
// applies, and the minimum is reduced to the maximum if necessary. The limits take effect within a tenth of a second.
func (r *Receiver) SetLimits(limits congestion.Limits) {
	configured := r.path.cfg.Congestion.Limits()
	if limits.Max == 0 || limits.Max > configured.Max {
		limits.Max = configured.Max
	}
	limits = limits.Or(configured)
	r.path.limits.Store(&limits)
}

// Backlog returns the maximum number of bytes that a reliable transport to the receiver holds. Backlog is safe for any
// goroutine.
func (r *Receiver) Backlog() int64 { return r.path.backlog.Load() }

// snapshot returns the last published Path. snapshot is safe for any goroutine.
func (p *path) snapshot() Path {
	p.mu.Lock()
	latest, numbered := p.latest, p.numbered
	p.mu.Unlock()
	if numbered {
		return latest
	}
	// Packets will be numbered from the first on.
	if extension := p.peer.TransportSequenceID(); extension > 0 && extension <= maxExtension ||
		p.peer.ReportsByStream() {
		latest.Awaited, latest.Estimate = true, p.startRate()
	}
	return latest
}

// startRate returns the initial estimate.
func (p *path) startRate() volumetric.Bitrate {
	if limits := p.limits.Load(); limits != nil {
		return limits.Start
	}
	return p.cfg.Congestion.Limits().Start
}

// publish publishes the current Path.
func (p *path) publish(now time.Duration) {
	latest := Path{Sent: p.departed.rate(now)}
	if want := p.want.Load(); want > 0 {
		latest.Wanted = volumetric.Bitrate(want - 1)
	}
	e, s := p.estimation, p.sender.Stats()
	latest.L4S, latest.Alpha = s.L4S, float32(s.Alpha)
	switch {
	case e == nil:
	case !p.sender.Reported() && now-e.begun < firstReport:
		latest.Awaited, latest.Estimate = true, p.startRate()
	case p.sender.Reported():
		latest.Known, latest.Estimate, latest.Acknowledged = true, s.Estimate, s.Acknowledged
		latest.RTT, latest.QueueDelay, latest.Loss, latest.InherentLoss = s.RTT, s.QueueDelay, s.Loss, s.InherentLoss
	}
	if latest.Second = p.routes.second(); latest.Second != nil && latest.Second.Outage {
		latest.Estimate = min(latest.Estimate, latest.Second.Estimate)
	}
	p.mu.Lock()
	p.latest, p.numbered = latest, e != nil
	p.mu.Unlock()
	p.publishReception()
}

// publishReception publishes the counts. The writer calls it.
func (p *path) publishReception() {
	c := p.reception.Load()
	if c == nil {
		return
	}
	now := Reception{Sent: c.sent, Requested: c.requested, KeyFrames: c.keyFrames}
	if p.departures != nil {
		// Lost packets that arrived late are in both counts of the history.
		history := p.departures.history.Stats()
		now.Reports, now.Arrived, now.Lost = history.Reports, history.Received, history.Lost-history.Late
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c.published, c.known = now, true
}

const (
	// sentWindow is the time over which the sending rate is measured, 30 frames. It is divided into sentSteps, one per
	// housekeeping.
	sentWindow = time.Second
	sentSteps  = int(sentWindow / HousekeepingInterval)
)

// sentRate measures the sending rate to one receiver.
type sentRate struct {
	// bytes counts the bytes sent, on the wire.
	bytes uint64
	// marks are the counts at the last rounds of housekeeping.
	marks [sentSteps]sentMark
}

type sentMark struct {
	at    time.Duration
	bytes uint64
}

// begin sets all marks to the current count.
func (s *sentRate) begin(now time.Duration) {
	for i := range s.marks {
		s.marks[i] = sentMark{now, s.bytes}
	}
}

// mark begins the next step.
func (s *sentRate) mark(now time.Duration) {
	*s.oldest() = sentMark{now, s.bytes}
}

// oldest returns the oldest mark. An index of the mark would take the memory of a receiver beyond its size class.
func (s *sentRate) oldest() *sentMark {
	oldest := &s.marks[0]
	for i := range s.marks {
		if s.marks[i].at < oldest.at {
			oldest = &s.marks[i]
		}
	}
	return oldest
}

// rate returns the rate since the oldest mark. Except at the beginning, that mark is at least one window less one step
// old.
func (s *sentRate) rate(now time.Duration) volumetric.Bitrate {
	oldest := *s.oldest()
	elapsed := max(now-oldest.at, sentWindow-HousekeepingInterval)
	return volumetric.Bitrate(math.Round(float64(s.bytes-oldest.bytes) * 8 / elapsed.Seconds()))
}

const (
	// never is the time of an event that is not scheduled.
	never = sender.Never
	// keptResults bounds the buffer for results that a writer keeps, 90 kB. A report of 25 ms at 300 Mbit/s has 800
	// results.
	keptResults = 1 << 10
)

// estimation is the state beside the sender while the sender estimates.
type estimation struct {
	// begun is the start of estimation, since the engine's start.
	begun time.Duration
	// want and limits are the values last passed to the sender.
	want   int64
	limits *congestion.Limits
	// counted are the estimator's statistics that the writer's counters already include.
	counted congestion.Stats
}

// number sets the path's next number in the header of the packet that is queued next, or removes the extension if no
// numbers are negotiated. A packet that the outlet then refuses counts as lost on the network.
func (p *path) number(h *rtp.Header, payload int, kind packetlog.Class, now time.Time) {
	d := p.departures
	if d == nil || d.extension == 0 {
		h.Extension, h.ExtensionProfile, h.Extensions = false, 0, nil
		if d != nil && d.history.ByStream() {
			p.sender.Sent(h.SSRC, h.SequenceNumber, congestion.PacketOverhead+payload, kinds[kind], now)
		}
		return
	}
	number := p.sender.Sent(h.SSRC, h.SequenceNumber, congestion.PacketOverhead+payload, kinds[kind], now)
	d.write(h, uint16(number))
}

// agree sets the negotiated form of feedback: reports by SSRC and sequence number, or numbers in the extension with an
// identifier, or no feedback if the identifier is 0. Another identifier continues the numbers. Another form of reports
// begins a new history. agree reports whether estimation has started or stopped.
func (p *path) agree(extension uint8, byStream bool, now time.Time, at time.Duration) (changed bool) {
	if byStream || extension > maxExtension {
		extension = 0
	}
	d := p.departures
	known := d != nil && d.history.ByStream()
	switch {
	case d == nil && extension == 0 && !byStream, d != nil && d.extension == extension && known == byStream:
		return false
	case d == nil || known != byStream:
		changed = p.estimate(false, now, at)
		d = newDepartures(byStream)
		p.departures = d
	}
	d.extend(extension)
	return p.estimate(extension != 0 || byStream, now, at) || changed
}

// algorithm returns the estimator for the receiver: by reports of packet arrivals, or by acknowledgements of a reliable
// transport.
func (p *path) algorithm() congestion.Algorithm {
	if p.reliable {
		return congestion.Reliable
	}
	return p.cfg.Congestion.Algorithm(p.departures.history.ByStream())
}

// estimate starts or stops the estimator. estimate reports whether that is a change.
func (p *path) estimate(wanted bool, now time.Time, at time.Duration) (changed bool) {
	switch {
	case wanted && p.estimation == nil:
		p.estimation = &estimation{begun: at}
		p.sender.Start(p.departures.history, congestion.New(p.algorithm(), p.cfg.Congestion, now), now)
		p.backlog.Store(int64(p.sender.Stats().Backlog))
	case !wanted && p.estimation != nil:
		p.estimation = nil
		p.sender.Stop(now)
		p.publish(at)
	default:
		return false
	}
	p.mark()
	return true
}

// mark makes packets leave with the codepoint of the sender's statistics, with which the sender records them.
func (p *path) mark() { p.peer.SetECN(p.sender.Stats().ECN) }

// instruct passes the wanted rate and the limits to the sender if they have changed.
func (p *path) instruct(now time.Time) {
	e := p.estimation
	p.sender.Suspend(p.routes.suspended(now), now)
	if want := p.want.Load(); want != e.want {
		e.want = want
		p.sender.Want(congestion.Bitrate(want-1), now)
	}
	if limits := p.limits.Load(); limits != e.limits {
		e.limits = limits
		p.sender.SetLimits(*limits, now)
	}
}

// count adds the estimator's statistics since the last call to the counters.
func (p *path) count(counts *counters.Counts) {
	stats, counted := p.sender.Stats(), &p.estimation.counted
	counts[counters.ProbesMeasured] += stats.ProbesMeasured - counted.ProbesMeasured
	counts[counters.Overuses] += stats.Overuses - counted.Overuses
	counts[counters.Silences] += stats.Silences - counted.Silences
	for reason, fallbacks := range stats.ECNFallbacks {
		counts[int(counters.ECNFallbacks)+reason] += fallbacks - counted.ECNFallbacks[reason]
	}
	*counted = *stats
}
