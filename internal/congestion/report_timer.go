package congestion

import (
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
)

const (
	// The weights of a new report in the mean age of reports and in its variation, and the number of variations that
	// the timer waits beyond the mean (RFC 6298 section 2).
	ageShare       = 8
	variationPart  = 4
	waitVariations = 4
	// leastAgeVariation: frames leave at intervals of 33 ms, and reports at intervals of their own.
	leastAgeVariation = 10 * time.Millisecond
	// heldWindow is the window in bytes while a report is overdue. No frame fits before all packets are reported.
	heldWindow = 1
	// Departures are remembered for 2.56 s, in bins of 10 ms.
	departureBin  = 10 * time.Millisecond
	departureBins = 256
)

// reportTimer detects that a report is overdue, long before a silence: the path may carry nothing at present. A frame
// that begins then is probably lost, or late, and its packets fill the queue with which the path resumes.
//
// The timer is that of RFC 6298. The age of the oldest packet of a report stands for the round trip: it is the path's
// round trip with queues, and the interval of reports. An age of seconds, that of packets that were in the queue of a
// path that has failed, does not lengthen the wait: the wait ends limit after the least age.
type reportTimer struct {
	limit               time.Duration
	least               minimum // age of the last 15 to 30 s
	known               bool
	smoothed, variation time.Duration
	waiting             bool          // packets were sent that no report covers
	oldest              time.Duration // departure of the first of them
	newest              time.Duration // departure of the newest reported packet
	departures          departures
}

func newReportTimer(limit time.Duration) reportTimer {
	return reportTimer{limit: limit, least: minimum{length: baseEpoch}}
}

// sent records a packet.
func (t *reportTimer) sent(now time.Duration) {
	t.departures.add(now)
	if !t.waiting {
		t.waiting, t.oldest = true, now
	}
}

// reported records a report that covers packets that left from oldest to newest.
func (t *reportTimer) reported(now, oldest, newest time.Duration) {
	t.newest = max(t.newest, newest)
	t.oldest, t.waiting = t.departures.after(t.newest)
	age := now - oldest
	t.least.add(now, age)
	if !t.known {
		t.known, t.smoothed, t.variation = true, age, age/2
		return
	}
	t.variation += ((t.smoothed - age).Abs() - t.variation) / variationPart
	t.smoothed += (age - t.smoothed) / ageShare
}

// due returns the time at which a report is overdue, and false if none is expected.
func (t *reportTimer) due() (time.Duration, bool) {
	wait := t.smoothed + waitVariations*max(t.variation, leastAgeVariation)
	return t.oldest + min(wait, t.limit+t.least.value()), t.waiting && t.known
}

// overdue reports whether a report is overdue.
func (t *reportTimer) overdue(now time.Duration) bool {
	due, expected := t.due()
	return expected && now >= due
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
