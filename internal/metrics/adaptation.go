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

// adaptationFamilies are the metrics of allocation for receivers and of uplink suppression.
var adaptationFamilies = []family{
	{tracksPaused, "Tracks that publishers were asked to stop sending because no receiver takes them.", nil},
	{suppressedBytes, "Bytes that publishers did not send because of paused tracks, from measured or declared " +
		"rates.", nil},
	{allocationSeconds, "Time to allocate the qualities of one receiver; the count is the number of allocations.", nil},
	{allocationBudget, "Media budget of a receiver at each allocation.", nil},
	{decisions, "Allocation decisions that changed the assignment or the reason of a slot, by reason: choice, auto, " +
		"budget, unseen.", []string{"reason"}},
}

var (
	// A room of 20 objects with 15 tiles each takes a millisecond, a small room some microseconds.
	allocationBounds = prometheus.ExponentialBuckets(10e-6, 2.5, 10)
	// 1 Mbit/s to 1 Gbit/s, in bytes, in three steps per decade.
	budgetBounds = prometheus.ExponentialBucketsRange(1e6/8, 1e9/8, 10)
)

// adaptation counts allocations for receivers and uplink suppression.
type adaptation struct {
	paused      prometheus.Gauge
	suppressed  prometheus.Counter
	allocations prometheus.Histogram
	budgets     prometheus.Histogram
	decisions   bounded[signal.Reason]
}

// newAdaptation returns the metrics and the collectors to register.
func newAdaptation() (adaptation, []prometheus.Collector) {
	vec := newCounterVec(decisions)
	reasons := []signal.Reason{signal.ReasonChoice, signal.ReasonAuto, signal.ReasonBudget, signal.ReasonUnseen}
	a := adaptation{
		paused: prometheus.NewGauge(prometheus.GaugeOpts{Name: tracksPaused, Help: familyOf(tracksPaused).help}),
		suppressed: prometheus.NewCounter(prometheus.CounterOpts{Name: suppressedBytes,
			Help: familyOf(suppressedBytes).help}),
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

// TracksPaused changes the number of tracks that publishers were asked to stop sending.
func (m *Metrics) TracksPaused(difference int) { m.adaptation.paused.Add(float64(difference)) }

// Suppressed counts bits that publishers did not send.
func (m *Metrics) Suppressed(bits float64) { m.adaptation.suppressed.Add(bits / 8) }

// Allocated counts an allocation of all qualities of one receiver, with the duration and the budget.
func (m *Metrics) Allocated(took time.Duration, budget volumetric.Bitrate) {
	m.adaptation.allocations.Observe(took.Seconds())
	m.adaptation.budgets.Observe(float64(budget) / 8)
}

// Decided counts a decision that changed the assignment or the reason of a slot.
func (m *Metrics) Decided(reason signal.Reason) { m.adaptation.decisions.inc(reason) }
