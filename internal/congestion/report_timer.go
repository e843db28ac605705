package congestion

import (
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
)

const (
	// agePart and variationPart are the inverses of the weights of a new report in the mean age of reports and in its
	// variation. waitVariations is the number of variations that the timer waits beyond the mean (RFC 6298 section 2).
	agePart        = 8
	variationPart  = 4
	waitVariations = 4
	// leastAgeVariation is the mean deviation of an age that is spread evenly over a frame interval: 33 ms / 4, rounded
	// up. While reports keep step with frames, the measured variation is less.
	leastAgeVariation = 10 * time.Millisecond
	// heldWindow is the window in bytes while a report is overdue. No frame fits before all packets are reported. The
	// pacer begins one frame after each pause without departures all the same.
	heldWindow = 1
	// Departures are remembered for 2.56 s, in bins of 10 ms. The wait for a report is at most half a second and the
	// least age, so the memory suffices for round trips of 2 s.
	departureBin  = 10 * time.Millisecond
	departureBins = 256
	// maxReportInterval bounds the time between two reports that counts: reports leave every 25 to 250 ms, and a longer
	// time is a pause of the sender or of the path.
	maxReportInterval = 250 * time.Millisecond
	// leavingTime is the longest time without departures in which a report is expected: an interval of 10 frames per
	// second. A receiver reports when packets arrive, so in a pause of the sender a lost packet has no report.
	leavingTime = 100 * time.Millisecond
)

// reportTimer detects that a report is overdue, long before a silence: the path may carry nothing at present. A frame
// that begins then is probably lost, or late, and its packets fill the queue with which the path resumes.
//
// The timer has the form of RFC 6298. The age of the oldest packet of a report stands for the round trip: it is the
// path's round trip with queues, and the interval of reports. The timer waits for one more interval, because a single
// report may be lost. An age of seconds does not lengthen the wait: such packets were in the queue of a path that had
// failed. The wait ends limit after the least age.
//
// If no packet leaves for leavingTime, no report is expected any more, and the next packet begins another wait.
type reportTimer struct {
	limit               time.Duration
	least               minimum // age of the last 15 to 30 s
	known               bool
	smoothed, variation time.Duration
	interval            time.Duration // mean time between reports
	reportedAt          time.Duration // time of the last report
	waiting             bool          // a report is expected
	overdue             bool          // the wait has ended without a report
	oldest              time.Duration // departure of the first packet that the report should cover
	latest              time.Duration // departure of the last packet
	settled             time.Duration // no report is expected about packets that left until then
	departures          departures
}

func newReportTimer(limit time.Duration) reportTimer {
	return reportTimer{limit: limit, least: minimum{length: baseEpoch}}
}

// sent records a packet.
func (t *reportTimer) sent(now time.Duration) {
	t.step(now)
	if !t.overdue && now-t.latest > leavingTime {
		t.settle()
	}
	t.departures.add(now)
	t.latest = now
	if !t.waiting {
		t.waiting, t.oldest = true, now
	}
}

// reported records a report that covers packets that left from oldest to newest.
func (t *reportTimer) reported(now, oldest, newest time.Duration) {
	t.settled = max(t.settled, newest)
	t.oldest, t.waiting = t.departures.after(t.settled)
	t.overdue = false
	age := now - oldest
	t.least.add(now, age)
	if !t.known {
		// The age includes an interval.
		t.known, t.smoothed, t.variation, t.interval = true, age, age/2, min(age, maxReportInterval)
	} else {
		t.variation += ((t.smoothed - age).Abs() - t.variation) / variationPart
		t.smoothed += (age - t.smoothed) / agePart
		t.interval += (min(now-t.reportedAt, maxReportInterval) - t.interval) / agePart
	}
	t.reportedAt = now
	t.step(now)
}

// settle ends the wait: no report is expected about the packets that have left.
func (t *reportTimer) settle() {
	t.waiting, t.overdue, t.settled = false, false, max(t.settled, t.latest)
}

// due returns the time at which a report is overdue, and false if none is expected.
func (t *reportTimer) due() (time.Duration, bool) {
	wait := t.smoothed + waitVariations*max(t.variation, leastAgeVariation) + t.interval
	return t.oldest + min(wait, t.limit+t.least.value()), t.waiting && t.known
}

// step ends the wait if a report is due.
func (t *reportTimer) step(now time.Duration) {
	due, expected := t.due()
	switch {
	case !expected || t.overdue || now < due:
	case t.latest < due-leavingTime:
		t.settle()
	default:
		t.overdue = true
	}
}

// sentBetween returns the departures of the oldest and of the newest packet of a report. Packets whose results are
// corrected do not count: they left before. ok is false if there are no others.
func (g *gcc) sentBetween(results []feedback.PacketResult) (oldest, newest time.Duration, ok bool) {
	for i := range results {
		if results[i].Late {
			continue
		}
		sent := results[i].Sent.Sub(g.epoch)
		if !ok {
			oldest, newest, ok = sent, sent, true
		}
		oldest, newest = min(oldest, sent), max(newest, sent)
	}
	return oldest, newest, ok
}

// departures are the recent bins in which packets left: a ring of one bit for each bin.
type departures struct {
	bins   [departureBins / 64]uint64
	newest int64
}

func (d *departures) add(now time.Duration) {
	bin := max(int64(now/departureBin), d.newest)
	if bin-d.newest >= departureBins {
		*d = departures{newest: bin}
	}
	for d.newest < bin {
		d.newest++
		d.bins[d.newest%departureBins/64] &^= 1 << (d.newest % 64)
	}
	d.bins[bin%departureBins/64] |= 1 << (bin % 64)
}

// after returns the first bin after the bin of a time in which a packet left, or false if there is none.
func (d *departures) after(at time.Duration) (time.Duration, bool) {
	for bin := max(int64(at/departureBin)+1, d.newest-departureBins+1, 0); bin <= d.newest; bin++ {
		if d.bins[bin%departureBins/64]&(1<<(bin%64)) != 0 {
			return time.Duration(bin) * departureBin, true
		}
	}
	return 0, false
}
