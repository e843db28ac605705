package paper000

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/lab/carriage"
	"github.com/volsfu/volsfu/pkg/frametimes"
)

// ladderFlights joins what both peers noted of each frame. Frames captured before a time do not count: they warm everything up.
func ladderFlights(sent, received []frametimes.Record, began time.Time) (list []flight) {
	arrived := make(map[int64]*frametimes.Record, len(received))
	for i := range received {
		// What came again, late, is not what was shown.
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
		// A server may have sent another quality of the same frame than the publisher's first one.
		if r := arrived[s.Frame]; r != nil {
			f.Whole, f.Shown, f.Bytes = r.Has(frametimes.LastReceived), r.Has(frametimes.Decoded), r.Bytes
			f.Transport = between(s, r, sentStamp(s), frametimes.LastReceived)
			f.Latency = between(s, r, frametimes.Captured, frametimes.Decoded)
			delete(arrived, s.Frame)
		} else if alreadyCounted(list, f.At) {
			continue
		}
		list = append(list, f)
	}
	return list
}

// sentStamp is when a frame began to leave: with its first packet, or where its transport does not tell when that was, when it was handed over.
func sentStamp(s *frametimes.Record) frametimes.Stamp {
	if s.Has(frametimes.FirstSent) {
		return frametimes.FirstSent
	}
	return frametimes.Encoded
}

// before is how long before a time the first frame was captured, in seconds.
func before(sent []frametimes.Record, began time.Time) float64 {
	longest := 0.0
	for i := range sent {
		if sent[i].Has(frametimes.Captured) {
			longest = max(longest, began.Sub(sent[i].Time(frametimes.Captured)).Seconds())
		}
	}
	return longest
}

// alreadyCounted tells whether the last flight is of the same capture: a publisher sends several qualities of one where the server asks for them.
func alreadyCounted(list []flight, at float64) bool {
	return len(list) > 0 && list[len(list)-1].At == at
}

// between is the milliseconds from a stamp of the sender's to one of the receiver's, no number where one is missing.
func between(s, r *frametimes.Record, from, until frametimes.Stamp) float64 {
	if !s.Has(from) || !r.Has(until) {
		return math.NaN()
	}
	return float64(r.Times[until]-s.Times[from]) / 1e6
}

// estimatesFrom are a publisher's estimates from a time on and for as long as is measured, in Mbit/s over seconds. Those before are left out: it estimates as soon as it is
// connected.
func estimatesFrom(sent *carriage.Published, began time.Time, length time.Duration) (points [][2]float64) {
	for _, e := range sent.Estimates {
		if at := e.At + sent.Begun.Sub(began).Seconds(); at >= 0 && at < length.Seconds() {
			points = append(points, [2]float64{at, e.Mbps})
		}
	}
	return points
}
