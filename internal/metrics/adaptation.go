package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// The names of the metrics of adaptation.
const (
	tracksPaused      = "volsfu_tracks_paused"
	suppressedBytes   = "volsfu_suppressed_bytes_total"
	allocationSeconds = "volsfu_allocation_seconds"
	allocationBudget  = "volsfu_allocation_budget_bytes_per_second"
	decisions         = "volsfu_decisions_total"
)

// adaptationFamilies are the metrics of what is decided for receivers, and of publishers.
var adaptationFamilies = []family{
	{tracksPaused, "Tracks that publishers have been told not to send, since nobody takes them.", nil},
	{suppressedBytes, "Bytes that publishers were spared by that, at the rates that the tracks had or were declared with.", nil},
	{allocationSeconds, "Time that it took to decide the qualities of one receiver; the count is that of decisions.", nil},
	{allocationBudget, "What the media of a receiver could take, observed each time that its qualities were decided.", nil},
	{decisions, "Decisions that changed what a slot carries, or why, by reason: choice, auto, budget, unseen.", []string{"reason"}},
}

var (
	// A room of 20 objects with 15 tiles each takes a millisecond, a small one some microseconds.
	allocationBounds = prometheus.ExponentialBuckets(10e-6, 2.5, 10)
	// 1 Mbit/s to 1 Gbit/s, in bytes, in three steps per decade.
	budgetBounds = prometheus.ExponentialBucketsRange(1e6/8, 1e9/8, 10)
)

// adaptation counts what is decided for receivers, and of publishers.
type adaptation struct {
	paused      prometheus.Gauge
	suppressed  prometheus.Counter
	allocations prometheus.Histogram
	budgets     prometheus.Histogram
	decisions   bounded[signal.Reason]
}

// newAdaptation makes the metrics and the collectors to register.
func newAdaptation() (adaptation, []prometheus.Collector) {
	vec := newCounterVec(decisions)
	reasons := []signal.Reason{signal.ReasonChoice, signal.ReasonAuto, signal.ReasonBudget, signal.ReasonUnseen}
	a := adaptation{
		paused:     prometheus.NewGauge(prometheus.GaugeOpts{Name: tracksPaused, Help: familyOf(tracksPaused).help}),
		suppressed: prometheus.NewCounter(prometheus.CounterOpts{Name: suppressedBytes, Help: familyOf(suppressedBytes).help}),
		allocations: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: allocationSeconds, Help: familyOf(allocationSeconds).help, Buckets: allocationBounds,
		}),
		budgets: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: allocationBudget, Help: familyOf(allocationBudget).help, Buckets: budgetBounds,
		}),
		decisions: newBounded(vec, reasons),
	}
	return a, []prometheus.Collector{a.paused, a.suppressed, a.allocations, a.budgets, vec}
}

// TracksPaused adds to the present number of tracks that publishers have been told not to send.
func (m *Metrics) TracksPaused(difference int) { m.adaptation.paused.Add(float64(difference)) }

// Suppressed counts bits that publishers did not send.
func (m *Metrics) Suppressed(bits float64) { m.adaptation.suppressed.Add(bits / 8) }

// Allocated counts a decision about all qualities of one receiver: how long it took, and the budget that it was made with.
func (m *Metrics) Allocated(took time.Duration, budget volumetric.Bitrate) {
	m.adaptation.allocations.Observe(took.Seconds())
	m.adaptation.budgets.Observe(float64(budget) / 8)
}

// Decided counts a decision that changed what a slot carries, or why.
func (m *Metrics) Decided(reason signal.Reason) { m.adaptation.decisions.inc(reason) }
