package paper000

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/volsfu/volsfu/lab/carriage"
	"github.com/volsfu/volsfu/pkg/frametimes"
)

// ladderFlights joins the records of both peers. Frames captured before a time are warm-up and do not count.
func ladderFlights(sent, received []frametimes.Record, began time.Time) (list []flight) {
	arrived := make(map[int64]*frametimes.Record, len(received))
	for i := range received {
		// A second arrival that was late is not the shown frame.
		if arrived[received[i].Frame] == nil || received[i].Has(frametimes.Decoded) {
			arrived[received[i].Frame] = &received[i]
		}
	}
	sent = slices.Clone(sent)
	slices.SortStableFunc(sent, func(a, b frametimes.Record) int {
		return cmp.Compare(a.Times[frametimes.Captured], b.Times[frametimes.Captured])
	})
	for i := range sent {
		s := &sent[i]
		at := s.Time(frametimes.Captured)
		if at.Before(began) {
			continue
		}
		f := flight{At: at.Sub(began).Seconds(), Bytes: s.Bytes, Sent: true, Transport: math.NaN(), Latency: math.NaN()}
		// A server may have sent another quality of the frame than the publisher's first quality.
		if r := arrived[s.Frame]; r != nil {
			f.Whole, f.Shown, f.Bytes = r.Has(frametimes.LastReceived), r.Has(frametimes.Decoded), r.Bytes
			f.Transport = between(s, r, frametimes.Encoded, frametimes.LastReceived)
			f.Latency = between(s, r, frametimes.Captured, frametimes.Decoded)
			delete(arrived, s.Frame)
		} else if alreadyCounted(list, f.At) {
			continue
		}
		list = append(list, f)
	}
	return list
}

// before returns how long before a time the first frame was captured, in seconds.
func before(sent []frametimes.Record, began time.Time) float64 {
	longest := 0.0
	for i := range sent {
		if sent[i].Has(frametimes.Captured) {
			longest = max(longest, began.Sub(sent[i].Time(frametimes.Captured)).Seconds())
		}
	}
	return longest
}

// alreadyCounted reports whether the last flight has the same capture. A publisher sends several qualities of a capture
// if the server requests them.
func alreadyCounted(list []flight, at float64) bool {
	return len(list) > 0 && list[len(list)-1].At == at
}

// between returns the milliseconds from a stamp of the sender to a stamp of the receiver, NaN if a stamp is missing.
func between(s, r *frametimes.Record, from, until frametimes.Stamp) float64 {
	if !s.Has(from) || !r.Has(until) {
		return math.NaN()
	}
	return float64(r.Times[until]-s.Times[from]) / 1e6
}

// estimatesFrom returns the estimates within the run, in Mbit/s over seconds. The times of list are relative to since.
// Earlier estimates are ignored: a publisher has estimates as soon as it is connected.
func estimatesFrom(since time.Time, list []carriage.Estimate, began time.Time,
	length time.Duration) (points [][2]float64) {
	for _, e := range list {
		if at := e.At + since.Sub(began).Seconds(); at >= 0 && at < length.Seconds() {
			points = append(points, [2]float64{at, e.Mbps})
		}
	}
	return points
}

// heldInterval is the sampling interval of an estimate that is reported when it changes. It equals the interval of a
// publisher's records.
const heldInterval = 100 * time.Millisecond

// held returns samples of estimates within the run. The times of told are relative to since, and each estimate is in
// force until the next. The mean of the reported values would be a mean over changes, not over time.
func held(since time.Time, told []carriage.Estimate, began time.Time, length time.Duration) (points [][2]float64) {
	next := 0
	for at := time.Duration(0); at < length; at += heldInterval {
		for next < len(told) && told[next].At+since.Sub(began).Seconds() <= at.Seconds() {
			next++
		}
		if next > 0 {
			points = append(points, [2]float64{at.Seconds(), told[next-1].Mbps})
		}
	}
	return points
}
