package congestion

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/test/race"
)

// bottleneck is a link with a queue of netem in virtual time, the senders with estimators that use it, and competitors.
// Flow n of the link is sender n-1, and the competitors follow.
type bottleneck struct {
	link    *netem.Link
	queue   *timedQueue
	senders []*frameSender
	others  []competitor
	now     time.Duration
	// meddle changes the codepoint of each packet before the link; nil keeps it. The packet is dropped if it returns
	// false.
	meddle func(p *netem.Packet) bool
}

// competitor is an endless transfer of netem.
type competitor interface {
	Next() time.Time
	Step(link *netem.Link, now time.Time)
	Receive(p *netem.Packet)
}

// timedQueue records the waiting times of L4S packets and the bytes of each flow.
type timedQueue struct {
	netem.Queue
	since map[*netem.Packet]time.Time
	waits []sample
	bytes map[uint64]int
}

func (q *timedQueue) Enqueue(p *netem.Packet, now time.Time) int {
	q.since[p] = now
	return q.Queue.Enqueue(p, now)
}

func (q *timedQueue) Dequeue(now time.Time) (*netem.Packet, int) {
	p, dropped := q.Queue.Dequeue(now)
	if p != nil {
		if p.Offered() == ecn.ECT1 {
			q.waits = append(q.waits, sample{now.Sub(start), now.Sub(q.since[p])})
		}
		q.bytes[p.Flow] += p.Size
		delete(q.since, p)
	}
	return p, dropped
}

// wait returns a quantile of the waiting times within a time.
func (q *timedQueue) wait(from, to time.Duration, share float64) time.Duration {
	var waits []time.Duration
	for _, s := range q.waits {
		if s.at >= from && s.at < to {
			waits = append(waits, s.delay)
		}
	}
	if len(waits) == 0 {
		return 0
	}
	slices.Sort(waits)
	return waits[int(share*float64(len(waits)-1))]
}

// newBottleneck returns a link with a rate in Mbit/s and a delay of a half of 20 ms.
func newBottleneck(t *testing.T, mbps float64, queue netem.Queue) *bottleneck {
	t.Helper()
	race.SkipSequential(t)
	b := &bottleneck{queue: &timedQueue{Queue: queue, since: map[*netem.Packet]time.Time{}, bytes: map[uint64]int{}}}
	var err error
	b.link, err = netem.NewLink(linkOf(mbps), 1, b.queue)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func linkOf(mbps float64) netem.Config {
	return netem.Config{Delay: 10 * time.Millisecond, RateBPS: int(mbps * mbit), QueueBytes: 1 << 20}
}

// budgetShare is the share of the estimate that the budget of package allocate uses.
const budgetShare = 0.96

// paceTick is the longest tick of the pacer, smoothFactor its rate on a smooth path as a multiple of the estimate: like
// the pacer of package pacing, it builds no queue on a path with the rate of the estimate. reportSoon is the delay of a
// report after a mark, clockStep the resolution of arrival times in RFC 8888.
const (
	paceTick     = 250 * time.Microsecond
	smoothFactor = 1
	reportSoon   = 5 * time.Millisecond
	clockStep    = time.Second / 1024
)

// frameSender sends frames to one receiver, which reports arrivals and codepoints.
type frameSender struct {
	estimator Estimator
	number    uint64
	back      time.Duration // delay of reports
	extra     time.Duration // delay of the own path in addition to the link's
	share     float64       // share of the estimate that is used
	begins    time.Duration
	random    *rand.Rand
	span      time.Duration // over which a frame is spread whatever the estimate is, 0 for none
	hides     bool          // the receiver reports no marks
	forges    uint64        // the receiver reports a mark of each packet whose number is a multiple, 0 for none

	nextFrame, nextPacket, nextReport time.Duration
	left                              int // bytes of frames that wait
	dropped                           int // frames
	inFlight                          int
	// latest is the time at which the latest packet left. After pause a frame begins although it does not fit.
	latest, pause            time.Duration
	cluster                  ProbeCluster
	probing                  bool
	probeAt                  time.Duration
	probeBytes, probePackets int

	sent     []feedback.PacketResult
	base     uint64
	arriving []*netem.Packet // after extra
	covered  uint64
	marked   bool
	reports  []testReport
	received int

	due time.Duration
	estimates
}

func (b *bottleneck) add(e Estimator, seed uint64) *frameSender {
	s := &frameSender{estimator: e, number: uint64(len(b.senders) + 1), back: 10 * time.Millisecond, share: budgetShare,
		random: rand.New(rand.NewPCG(seed, 1)), due: math.MaxInt64}
	b.senders = append(b.senders, s)
	return s
}

func (s *frameSender) next() time.Duration {
	next := min(s.nextFrame, s.nextReport, s.due)
	if s.probing {
		next = min(next, s.probeAt)
	} else if s.left > 0 {
		next = min(next, s.nextPacket)
	}
	if len(s.reports) > 0 {
		next = min(next, s.reports[0].at)
	}
	if len(s.arriving) > 0 {
		next = min(next, s.arriving[0].Arrival.Sub(start))
	}
	return next
}

// consult does what sender.Sender.Consult does.
func (s *frameSender) consult(now time.Duration) {
	stats := s.estimator.Stats()
	if s.probing && stats.ProbeMarked {
		s.probing = false
	}
	if !s.probing {
		if c, ok := s.estimator.Probe(start.Add(now)); ok {
			s.cluster, s.probing, s.probeAt, s.probeBytes, s.probePackets = c, true, now, 0, 0
		}
	}
	s.due = math.MaxInt64
	if due := s.estimator.Next(); !due.IsZero() {
		s.due = max(due.Sub(start), now+5*time.Millisecond)
	}
}

func (s *frameSender) run(b *bottleneck, now time.Duration) {
	for len(s.arriving) > 0 && s.arriving[0].Arrival.Sub(start) <= now {
		s.arrive(s.arriving[0], now)
		s.arriving = s.arriving[1:]
	}
	if now >= s.nextFrame {
		s.frame(now)
	}
	if now >= s.due {
		s.estimator.Step(start.Add(now))
		s.consult(now)
	}
	if s.probing {
		for s.probing && now >= s.probeAt {
			s.left = max(s.left-testPacketSize, 0)
			s.send(b, now, s.cluster.ID)
			s.probeBytes += testPacketSize
			s.probePackets++
			s.probeAt += time.Duration(testPacketSize * 8 / float64(s.cluster.Rate) * 1e9)
			if s.probeBytes >= s.cluster.MinBytes && s.probePackets >= s.cluster.MinPackets {
				s.probing, s.nextPacket = false, now
				s.consult(now)
			}
		}
	} else if s.left > 0 && now >= s.nextPacket {
		s.tick(b, now)
	}
	if now >= s.nextReport {
		s.report(now)
	}
	for len(s.reports) > 0 && now >= s.reports[0].at {
		for _, r := range s.reports[0].results {
			s.inFlight -= r.Size
		}
		s.pause = framePause
		s.estimator.Report(start.Add(now), s.reports[0].results)
		s.reports = s.reports[1:]
		s.consult(now)
		s.estimates = append(s.estimates, estimate{now, float64(s.estimator.Estimate())})
	}
}

// framePause and maxFramePause are the times without a departure after which a frame begins although it does not fit,
// until a report arrives, and longer ones later: those of the pacer of package pacing.
const (
	framePause    = 200 * time.Millisecond
	maxFramePause = 800 * time.Millisecond
)

// frame captures a frame of the used share of the estimate, unless the previous one has not left or it does not fit
// into the window.
func (s *frameSender) frame(now time.Duration) {
	s.nextFrame += frameInterval
	stats := s.estimator.Stats()
	bytes := int(s.share * float64(stats.Estimate) * frameInterval.Seconds() / 8 * (0.9 + 0.2*s.random.Float64()))
	fits := stats.Window == 0 || s.inFlight+s.left+bytes <= stats.Window
	if s.left > 2*bytes || !fits && now < s.latest+s.pause {
		s.dropped++
		return
	}
	if !fits {
		s.pause = min(2*s.pause, maxFramePause)
	}
	if s.left == 0 {
		s.nextPacket = now
	}
	s.left += bytes
	s.consult(now)
}

// tick sends the packets of a tick.
func (s *frameSender) tick(b *bottleneck, now time.Duration) {
	stats := s.estimator.Stats()
	rate := 2.5 * float64(stats.Estimate)
	if stats.Smooth {
		rate = smoothFactor * float64(stats.Estimate)
	}
	if s.span > 0 {
		rate = float64(stats.Estimate) * frameInterval.Seconds() / s.span.Seconds()
	}
	for until := now + paceTick; s.left > 0 && s.nextPacket < until; {
		s.left = max(s.left-testPacketSize, 0)
		s.nextPacket += time.Duration(testPacketSize * 8 / rate * 1e9)
		s.send(b, now, 0)
	}
}

func (s *frameSender) send(b *bottleneck, now time.Duration, probe int) {
	s.sent = append(s.sent, feedback.PacketResult{Sequence: int64(s.base) + int64(len(s.sent)), Size: testPacketSize,
		Sent: start.Add(now), Probe: probe, SentECN: s.estimator.Stats().ECN})
	s.inFlight += testPacketSize
	s.latest, s.pause = now, max(s.pause, framePause)
	s.estimator.Sent(start.Add(now), testPacketSize)
	p := &netem.Packet{Size: testPacketSize, Flow: s.number, Number: s.base + uint64(len(s.sent)-1),
		ECN: s.estimator.Stats().ECN}
	if b.meddle == nil || b.meddle(p) {
		b.link.Send(p, start.Add(now))
	}
}

// arrive records a packet at the receiver.
func (s *frameSender) arrive(p *netem.Packet, now time.Duration) {
	if p.Number < s.base {
		return
	}
	r := &s.sent[p.Number-s.base]
	r.Received, r.Arrived, r.ECN = true, now/clockStep*clockStep+remoteOffset, p.ECN
	s.covered = max(s.covered, p.Number+1)
	s.received += p.Size
	if s.hides && p.ECN == ecn.CE {
		r.ECN = ecn.ECT1
		return
	}
	if s.forges > 0 && p.Number%s.forges == 0 {
		r.ECN = ecn.CE
	}
	if p.ECN == ecn.CE && !s.marked {
		s.marked = true
		s.nextReport = min(s.nextReport, now+reportSoon)
	}
}

func (s *frameSender) report(now time.Duration) {
	s.nextReport, s.marked = now+25*time.Millisecond, false
	if s.covered <= s.base {
		return
	}
	results := slices.Clone(s.sent[:s.covered-s.base])
	s.sent = slices.Delete(s.sent, 0, len(results))
	s.base = s.covered
	s.reports = append(s.reports, testReport{now + s.back, results})
}

// run runs until a time. at is called every 10 ms.
func (b *bottleneck) run(until time.Duration, at func(now time.Duration)) {
	for _, s := range b.senders {
		if b.now == 0 {
			s.nextFrame, s.nextReport = s.begins, s.begins
		}
	}
	tick := b.now
	for b.now < until {
		next := tick
		for _, s := range b.senders {
			next = min(next, s.next())
		}
		for _, c := range b.others {
			if due := c.Next(); !due.IsZero() {
				next = min(next, due.Sub(start))
			}
		}
		if due := b.link.Next(); !due.IsZero() {
			next = min(next, due.Sub(start))
		}
		b.now = max(b.now, next)
		b.deliver()
		if b.now >= tick {
			tick += 10 * time.Millisecond
			if at != nil {
				at(b.now)
			}
		}
		for _, s := range b.senders {
			if s.next() <= b.now {
				s.run(b, b.now)
			}
		}
		for _, c := range b.others {
			if due := c.Next(); !due.IsZero() && due.Sub(start) <= b.now {
				c.Step(b.link, start.Add(b.now))
			}
		}
	}
}

func (b *bottleneck) deliver() {
	for _, p := range b.link.Deliver(start.Add(b.now)) {
		i := int(p.Flow) - 1
		if i >= len(b.senders) {
			b.others[i-len(b.senders)].Receive(p)
			continue
		}
		s := b.senders[i]
		p.Arrival = p.Arrival.Add(s.extra)
		s.arriving = append(s.arriving, p)
	}
}
