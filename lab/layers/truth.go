package layers

import (
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/frametimes"
)

// comparison compares the layers of frames with their true latency. On one machine, all hosts have the same clock with
// known offsets. The times of capture and display are known exactly from the records of sender and receiver by their
// own clocks.
type comparison struct {
	// frames counts the receiver's records with an end. complete counts those with every stage, and unknown those
	// without a record of the sender.
	frames, complete, unknown int
	// others counts frames whose number the sender also used for another capture. Their stamps differ by the sender's
	// own clock and cannot be compared.
	others int
	// outside counts frames whose layers deviate by more than the reported bound, and uncertain frames whose layers
	// deviate by more than the uncertainty.
	outside, uncertain int
	// shares has the deviations of the layers as shares of the latency, misses as times. bounds and uncertainties
	// belong to the latencies, clocks has the uncertainties of the hosts' clocks.
	shares                              []float64
	misses, bounds, uncertainties, real lab.Distribution
	clocks                              map[frametimes.Host]*lab.Distribution
}

// ends returns the last stamp of a frame's latency.
func ends(r *frametimes.Record) frametimes.Stamp {
	if r.Has(frametimes.Shown) {
		return frametimes.Shown
	}
	return frametimes.Decoded
}

// compare compares records with captures, the sender's records of the same frames. sender and receiver are the offsets
// of the hosts' clocks.
func compare(records []frametimes.Record, captures map[frametimes.Key]frametimes.Record, sender,
	receiver time.Duration) *comparison {
	c := &comparison{clocks: map[frametimes.Host]*lab.Distribution{frametimes.Sender: {}, frametimes.Receiver: {}}}
	for i := range records {
		r := &records[i]
		if !r.Has(ends(r)) {
			continue
		}
		c.frames++
		own, known := captures[frametimes.Key{Track: r.Track, Frame: uint32(r.Frame)}]
		if !known || !own.Has(frametimes.Captured) {
			c.unknown++
			continue
		}
		if r.Has(frametimes.Captured) &&
			r.Local(frametimes.Captured).Sub(own.Local(frametimes.Captured)).Abs() > rounding {
			c.others++
			continue
		}
		layers := r.Layers()
		sum, complete := layers.Sum()
		if !complete {
			continue
		}
		c.complete++
		captured, shown := own.Local(frametimes.Captured).Add(-sender), r.Local(ends(r)).Add(-receiver)
		latency := shown.Sub(captured)
		miss := (sum - latency).Abs()
		c.real.Add(latency)
		c.misses.Add(miss)
		c.shares = append(c.shares, float64(miss)/float64(latency))
		bound, uncertainty := layers.Bound(frametimes.Service), layers.Uncertainty(frametimes.Service)
		c.bounds.Add(bound)
		c.uncertainties.Add(uncertainty)
		for host, d := range c.clocks {
			d.Add(r.Clocks[host].Uncertainty)
		}
		// Stamps are sent in microseconds, followed by nanoseconds.
		if miss > bound+rounding {
			c.outside++
		}
		if miss > uncertainty+rounding {
			c.uncertain++
		}
	}
	return c
}

// rounding bounds the loss of precision of times in records.
const rounding = 2 * time.Microsecond
