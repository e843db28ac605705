package summary

import (
	"time"

	"github.com/volsfu/volsfu/internal/peer/distribution"
	"github.com/volsfu/volsfu/pkg/frametimes"
)

// Layers is the latency of frames by layer.
type Layers struct {
	// Frames is the number of frames with a record, Complete the number of frames with every stage from capture to the
	// end.
	Frames   int64 `json:"frames"`
	Complete int64 `json:"frames_complete"`
	// Layers has the layers that any frame has, in order.
	Layers []Layer `json:"layers"`
	// Clocks has the clocks of the hosts in the newest record.
	Clocks []HostClock `json:"clocks"`
}

// Layer has the statistics of one layer over all frames that have it, in milliseconds.
type Layer struct {
	Name   string  `json:"layer"`
	Frames int64   `json:"frames"`
	Mean   float64 `json:"mean"`
	distribution.Percentiles
	// Bound is the largest error of a single value that the clock synchronisation allows. Uncertainty is the largest
	// error if paths have equal delays in both directions. Both are 0 within one host.
	Bound       float64 `json:"bound"`
	Uncertainty float64 `json:"uncertainty"`
}

// HostClock is the time source of one host. Times are in microseconds.
type HostClock struct {
	Host         string            `json:"host"`
	Source       frametimes.Source `json:"source"`
	Offset       float64           `json:"offset_us"`
	Bound        float64           `json:"bound_us"`
	Uncertainty  float64           `json:"uncertainty_us"`
	Disagreement float64           `json:"disagreement_us"`
}

// LayerBook collects the layers of frames. The zero value is ready for use.
type LayerBook struct {
	frames, complete int64
	layers           [frametimes.LayerCount]layerPage
	clocks           [frametimes.Hosts]frametimes.Clock
}

type layerPage struct {
	sum                time.Duration
	spread             distribution.Distribution
	bound, uncertainty time.Duration
}

// Add adds a frame.
func (b *LayerBook) Add(r *frametimes.Record, layers *frametimes.Layers) {
	b.frames++
	if _, complete := layers.Sum(); complete {
		b.complete++
	}
	for l := range frametimes.Layer(frametimes.LayerCount) {
		if d, known := layers.Get(l); known {
			p := &b.layers[l]
			p.sum += d
			p.spread.Add(d)
			p.bound, p.uncertainty = max(p.bound, layers.Bound(l)), max(p.uncertainty, layers.Uncertainty(l))
		}
	}
	for host, c := range r.Clocks {
		if c.Source != "" {
			b.clocks[host] = c
		}
	}
}

// Sum returns the statistics.
func (b *LayerBook) Sum() *Layers {
	s := &Layers{Frames: b.frames, Complete: b.complete, Layers: []Layer{}, Clocks: []HostClock{}}
	for l := range frametimes.Layer(frametimes.LayerCount) {
		p := &b.layers[l]
		n := int64(p.spread.Count())
		if n == 0 {
			continue
		}
		s.Layers = append(s.Layers, Layer{
			Name: l.String(), Frames: n, Mean: round(float64(p.sum)/float64(n)/1e6, 3),
			Percentiles: p.spread.Percentiles(),
			Bound:       round(float64(p.bound)/1e6, 3), Uncertainty: round(float64(p.uncertainty)/1e6, 3),
		})
	}
	microseconds := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
	for host, c := range b.clocks {
		if c.Source != "" {
			s.Clocks = append(s.Clocks, HostClock{
				Host: frametimes.Host(host).String(), Source: c.Source, Offset: microseconds(c.Offset),
				Bound:       microseconds(c.Bound),
				Uncertainty: microseconds(c.Uncertainty), Disagreement: microseconds(c.Disagreement),
			})
		}
	}
	return s
}
