package congestion

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
)

// Start of the tests' virtual time; the remote clock has an offset.
var start = time.Unix(1_795_188_600, 0)

const (
	testPacketSize = 1200
	frameInterval  = time.Second / 30
	frameSpread    = 0.4
	captureJitter  = 4 * time.Millisecond
	arrivalTick    = 250 * time.Microsecond
	remoteOffset   = 977 * time.Hour
)

// testFlow is a sender of frames, its receiver and an estimator.
type testFlow struct {
	estimator Estimator
	link      *testLink
	random    *rand.Rand
	feedback  time.Duration // interval of reports
	share     float64       // share of the estimate that is sent
	interval  time.Duration // of frames
	begins    time.Duration
	deaf      bool // no report arrives

	captured   time.Duration // time of the last frame
	frame      time.Duration // start of the next frame
	media      int           // packets left of the current frame
	pace       time.Duration
	mediaAt    time.Duration
	cluster    ProbeCluster
	probing    bool
	probeAt    time.Duration
	probeBytes int
	probeCount int

	sent     []feedback.PacketResult // of sequence number n at n - base
	base     int64
	highest  int64 // highest that arrived, -1 for none
	covered  int64 // one after the highest reported
	reportAt time.Duration
	reports  []testReport
	bytes    int // delivered

	due time.Duration // of the estimator's next step
	estimates
}

// estimates are the estimates of a sender over time.
type estimates []estimate

type estimate struct {
	at   time.Duration
	rate float64
}

type testReport struct {
	at      time.Duration
	results []feedback.PacketResult
}

func newTestFlow(e Estimator, link *testLink, seed uint64) *testFlow {
	return &testFlow{estimator: e, link: link, random: rand.New(rand.NewPCG(seed, 1)), feedback: 25 * time.Millisecond,
		share: 1, interval: frameInterval, highest: -1, due: math.MaxInt64}
}

func (f *testFlow) now(at time.Duration) time.Time { return start.Add(at) }

// next returns the time of the flow's next event.
func (f *testFlow) next() time.Duration {
	next := min(f.frame, f.reportAt)
	if f.probing {
		next = min(next, f.probeAt)
	} else if f.media > 0 {
		next = min(next, f.mediaAt)
	}
	if len(f.reports) > 0 {
		next = min(next, f.reports[0].at)
	}
	return min(next, f.due)
}

// ask gets the next step time of the estimator, and a probe.
func (f *testFlow) ask(now time.Duration) {
	f.due = math.MaxInt64
	if due := f.estimator.Next(); !due.IsZero() {
		f.due = due.Sub(start)
	}
	if !f.probing {
		if c, ok := f.estimator.Probe(f.now(now)); ok {
			f.cluster, f.probing, f.probeAt, f.probeBytes, f.probeCount = c, true, now, 0, 0
		}
	}
}

// run processes due events.
func (f *testFlow) run(now time.Duration) {
	if now >= f.frame {
		bits := f.share * float64(f.estimator.Estimate()) * f.interval.Seconds() * (0.8 + 0.4*f.random.Float64())
		if f.media == 0 {
			f.mediaAt = now
		}
		f.media += max(1, int(math.Round(bits/8/testPacketSize)))
		stats := f.estimator.Stats()
		path := stats.Path()
		f.pace = time.Duration(frameSpread * float64(f.interval) / float64(f.media))
		if path.Evenly {
			f.pace = max(f.pace, time.Duration(testPacketSize*8/path.Factor()/float64(path.Estimate)*1e9))
		}
		f.captured += f.interval
		f.ask(now)
		f.frame = f.captured + time.Duration(f.random.Int64N(int64(captureJitter)))
	}
	if now >= f.due {
		f.estimator.Step(f.now(now))
		f.ask(now)
	}
	switch {
	case f.probing && now >= f.probeAt:
		f.probe(now)
	case !f.probing && f.media > 0 && now >= f.mediaAt:
		f.media--
		f.mediaAt = max(f.mediaAt, now-time.Millisecond) + f.pace
		f.send(now, 0)
	}
	f.listen(now)
}

func (f *testFlow) probe(now time.Duration) {
	f.media = max(f.media-1, 0)
	f.send(now, f.cluster.ID)
	f.probeBytes += testPacketSize
	f.probeCount++
	f.probeAt += time.Duration(testPacketSize * 8 / float64(f.cluster.Rate) * 1e9)
	if f.probeBytes >= f.cluster.MinBytes && f.probeCount >= f.cluster.MinPackets {
		f.probing, f.mediaAt = false, now+f.pace
		f.ask(now)
	}
}

func (f *testFlow) send(now time.Duration, probe int) {
	sequence := f.base + int64(len(f.sent))
	f.sent = append(f.sent, feedback.PacketResult{Sequence: sequence, Size: testPacketSize, Sent: f.now(now),
		Probe: probe})
	f.estimator.Sent(f.now(now), testPacketSize)
	f.link.send(now, testPacket{flow: f, sequence: sequence, size: testPacketSize})
}

// arrive is called when the link releases a packet, some time before its arrival.
func (f *testFlow) arrive(p testPacket, at time.Duration) {
	i := p.sequence - f.base
	if i < 0 {
		return
	}
	f.sent[i].Arrived = (at + remoteOffset) / arrivalTick * arrivalTick
	f.sent[i].Received = true
	f.bytes += p.size
	f.highest = max(f.highest, p.sequence)
}

// listen makes the receiver's reports, and processes them after the return delay.
func (f *testFlow) listen(now time.Duration) {
	if now >= f.reportAt {
		f.reportAt += f.feedback
		f.link.advance(now)
		f.report(now)
	}
	for len(f.reports) > 0 && now >= f.reports[0].at {
		f.estimator.Report(f.now(now), f.reports[0].results)
		f.reports = f.reports[1:]
		f.ask(now)
		f.estimates = append(f.estimates, estimate{now, float64(f.estimator.Estimate())})
	}
}

func (f *testFlow) report(now time.Duration) {
	last := int64(-1)
	for n := f.highest; n >= f.base; n-- { // later packets are still in transit
		if r := f.sent[n-f.base]; r.Received && r.Arrived <= now+remoteOffset {
			last = n
			break
		}
	}
	if last < f.covered || f.deaf {
		return
	}
	results := slices.Clone(f.sent[:last+1-f.base])
	f.sent = slices.Delete(f.sent, 0, len(results))
	f.base, f.covered = last+1, last+1
	f.reports = append(f.reports, testReport{now + f.link.delay, results})
}

// simulate runs flows over one link. at is called every 10 ms.
func simulate(link *testLink, until time.Duration, at func(now time.Duration), flows ...*testFlow) {
	for _, f := range flows {
		f.captured, f.frame, f.reportAt = f.begins, f.begins, f.begins
	}
	tick := time.Duration(0)
	now := time.Duration(0)
	for now < until {
		next := tick
		for _, f := range flows {
			next = min(next, max(f.next(), now))
		}
		now = next
		if now >= tick {
			tick += 10 * time.Millisecond
			if at != nil {
				at(now)
			}
		}
		for _, f := range flows {
			if now >= f.begins && f.next() <= now {
				f.run(now)
			}
		}
	}
	link.advance(until)
}

// reaches returns the first time after a given time at which the estimate is at least rate, and whether there is one.
func (f estimates) reaches(from time.Duration, rate float64) (time.Duration, bool) {
	for _, e := range f {
		if e.at >= from && e.rate >= rate {
			return e.at, true
		}
	}
	return 0, false
}

// extremes returns the minimum, mean and maximum of the estimate between two times.
func (f estimates) extremes(from, to time.Duration) (least, mean, most float64) {
	least = math.Inf(1)
	n := 0
	for _, e := range f {
		if e.at >= from && e.at < to {
			least, most = min(least, e.rate), max(most, e.rate)
			mean += e.rate
			n++
		}
	}
	return least, mean / float64(max(n, 1)), most
}
