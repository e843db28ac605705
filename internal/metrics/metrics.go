package metrics

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/volsfu/volsfu/pkg/signal"
)

// The values of the label direction, from the view of the server.
const (
	in  = "in"
	out = "out"
)

// other replaces every label value that comes from outside and is unknown.
const other = "other"

// joinBounds: a join on one machine takes some tens of milliseconds, a join within the target less than a second, and a
// join that exceeds the default connect timeout of 30 s fails.
var joinBounds = []float64{0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30}

// Metrics counts events of the control plane. The methods are safe for concurrent use.
type Metrics struct {
	rooms        prometheus.Gauge
	participants prometheus.Gauge
	join         prometheus.Histogram
	received     bounded[signal.Type]
	sent         bounded[signal.Type]
	errors       bounded[signal.Code]
	adaptation   adaptation
}

// New returns and registers the metrics of the control plane, together with the metrics of the Go runtime, of the
// process, and of the build.
func New(registerer prometheus.Registerer, version string) (*Metrics, error) {
	messages := newCounterVec(signallingMessages)
	errors := newCounterVec(signallingErrors)
	m := &Metrics{
		rooms:        prometheus.NewGauge(prometheus.GaugeOpts{Name: rooms, Help: familyOf(rooms).help}),
		participants: prometheus.NewGauge(prometheus.GaugeOpts{Name: participants, Help: familyOf(participants).help}),
		join: prometheus.NewHistogram(
			prometheus.HistogramOpts{Name: joinSeconds, Help: familyOf(joinSeconds).help, Buckets: joinBounds}),
		received: newBounded(messages.MustCurryWith(prometheus.Labels{"direction": in}), signal.TypesFromClient()),
		sent:     newBounded(messages.MustCurryWith(prometheus.Labels{"direction": out}), signal.TypesFromServer()),
		errors:   newBounded(errors, signal.Codes()),
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: buildInfo, Help: familyOf(buildInfo).help},
		familyOf(buildInfo).labels)
	build.WithLabelValues(version).Set(1)
	adaptation, its := newAdaptation()
	m.adaptation = adaptation
	for _, collector := range append(its,
		m.rooms, m.participants, m.join, messages, errors, build,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	) {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}

// Rooms sets the number of rooms with participants.
func (m *Metrics) Rooms(n int) { m.rooms.Set(float64(n)) }

// Participants sets the number of participants.
func (m *Metrics) Participants(n int) { m.participants.Set(float64(n)) }

// ParticipantConnected counts a participant with a connected peer connection, with the time since the websocket was
// opened.
func (m *Metrics) ParticipantConnected(after time.Duration) { m.join.Observe(after.Seconds()) }

// SignallingMessage counts a message by direction: "in" from a client, "out" to a client.
func (m *Metrics) SignallingMessage(direction string, t signal.Type) {
	if direction == in {
		m.received.inc(t)
		return
	}
	m.sent.inc(t)
}

// SignallingError counts an error message to a client.
func (m *Metrics) SignallingError(code signal.Code) { m.errors.inc(code) }

// bounded has a counter per known value of one label, and a counter for all others. bounded is read-only after
// creation, and all series exist from the start, so that a rate over the first event is correct.
type bounded[V ~string] struct {
	known map[V]prometheus.Counter
	other prometheus.Counter
}

func newBounded[V ~string](vec *prometheus.CounterVec, values []V) bounded[V] {
	b := bounded[V]{known: make(map[V]prometheus.Counter, len(values)), other: vec.WithLabelValues(other)}
	for _, value := range values {
		b.known[value] = vec.WithLabelValues(string(value))
	}
	return b
}

func (b *bounded[V]) inc(value V) {
	if counter, ok := b.known[value]; ok {
		counter.Inc()
		return
	}
	b.other.Inc()
}

func newCounterVec(name string) *prometheus.CounterVec {
	f := familyOf(name)
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: f.name, Help: f.help}, f.labels)
}
