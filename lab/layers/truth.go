package layers

import (
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/frametimes"
)

// comparison holds the layers of frames against their true latency. On one machine the clocks of all hosts are one, moved by known offsets: when a frame was captured and when it was
// shown is known exactly, from what sender and receiver each wrote by their own clocks.
type comparison struct {
	// frames are those of the receiver's records that have an end, complete those of them with every stage, and unknown those that the sender has no record of.
	frames, complete, unknown int
	// others counts frames whose number the sender used for another capture, too: its own stamps differ by its own clock, so that there is nothing to compare.
	others int
	// outside counts frames whose layers are further off than the bound that stands beside them, and uncertain those further off than the uncertainty.
	outside, uncertain int
	// shares are by what share of the latency the layers are off, and misses by what time. bounds and uncertainties are those of the latencies, clocks the uncertainties of hosts' clocks.
	shares                              []float64
	misses, bounds, uncertainties, real lab.Distribution
	clocks                              map[frametimes.Host]*lab.Distribution
}

// ends is the stamp that a frame's latency ends with.
func ends(r *frametimes.Record) frametimes.Stamp {
	if r.Has(frametimes.Shown) {
		return frametimes.Shown
	}
	return frametimes.Decoded
}

// compare compares. sender and receiver are how far the hosts' clocks are ahead; captures are the sender's records of the same frames.
func compare(records []frametimes.Record, captures map[frametimes.Key]frametimes.Record, sender, receiver time.Duration) *comparison {
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
		if r.Has(frametimes.Captured) && r.Local(frametimes.Captured).Sub(own.Local(frametimes.Captured)).Abs() > rounding {
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
		// Stamps travel in microseconds and nanoseconds after them.
		if miss > bound+rounding {
			c.outside++
		}
		if miss > uncertainty+rounding {
			c.uncertain++
		}
	}
	return c
}

// rounding is what times lose on the way.
const rounding = 2 * time.Microsecond
