package timing

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/volsfu/volsfu/pkg/frametimes"
)

// layerSeconds is the metric of layers.
const layerSeconds = "volpeer_frame_layer_seconds"

// layerBounds are from 10 µs, what a kernel takes, to 5 s, in four steps per decade.
var layerBounds = prometheus.ExponentialBucketsRange(10e-6, 5, 24)

// metrics are histograms of layers. The label's values are the layers' names, which are fixed.
type metrics struct {
	layers [frametimes.LayerCount]prometheus.Observer
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	vector := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: layerSeconds, Buckets: layerBounds,
		Help: "Time that tile frames took in each layer of their latency, as docs/latency.md defines them.",
	}, []string{"layer"})
	if err := registerer.Register(vector); err != nil {
		return nil, fmt.Errorf("register metrics of layers: %w", err)
	}
	m := &metrics{}
	for l := range frametimes.Layer(frametimes.LayerCount) {
		m.layers[l] = vector.WithLabelValues(l.String())
	}
	return m, nil
}

func (m *metrics) observe(layers *frametimes.Layers) {
	for l, observer := range m.layers {
		if d, known := layers.Get(frametimes.Layer(l)); known {
			observer.Observe(d.Seconds())
		}
	}
}
