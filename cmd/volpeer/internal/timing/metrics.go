package timing

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/volsfu/volsfu/pkg/frametimes"
)

// layerSeconds is the name of the metric of layers.
const layerSeconds = "volpeer_frame_layer_seconds"

// layerBounds are 24 bucket bounds from 10 µs, a short kernel layer, to 5 s: about four per decade.
var layerBounds = prometheus.ExponentialBucketsRange(10e-6, 5, 24)

// metrics has a histogram for each layer. The values of the label are the names of the layers, which are fixed.
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
