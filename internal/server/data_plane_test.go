package server

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/metrics"
)

// fixed is a data plane with one snapshot.
type fixed metrics.Snapshot

func (f fixed) Snapshot() metrics.Snapshot { return metrics.Snapshot(f) }

// TestL4SMetrics compares the labels and values of the metrics of L4S with the states and reasons of the estimator.
func TestL4SMetrics(t *testing.T) {
	// A path with state n is present n+1 times. Paths to which nothing is sent do not count.
	var paths []egress.Path
	for state := congestion.L4SOff; state < congestion.L4SStates; state++ {
		for range state + 1 {
			paths = append(paths, egress.Path{L4S: state, Sent: 1})
		}
		paths = append(paths, egress.Path{L4S: state})
	}
	var counts [congestion.Fallbacks]uint64
	for reason := range counts {
		counts[reason] = uint64(reason + 10)
	}
	registry := prometheus.NewRegistry()
	if err := metrics.RegisterDataPlane(registry, fixed{L4SHops: l4sHops(paths),
		ECNFallbacks: ecnFallbacks(counts)}); err != nil {
		t.Fatal(err)
	}
	gathered, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]map[string]float64{}
	for _, family := range gathered {
		byLabel := map[string]float64{}
		for _, metric := range family.GetMetric() {
			if len(metric.GetLabel()) == 1 {
				byLabel[metric.GetLabel()[0].GetValue()] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
			}
		}
		values[family.GetName()] = byLabel
	}
	states, reasons := values["volsfu_l4s_hops"], values["volsfu_ecn_fallbacks_total"]
	for state := congestion.L4SOff; state < congestion.L4SStates; state++ {
		if got := states[state.String()]; got != float64(state+1) {
			t.Errorf("%v hops are %v, expected %d", got, state, state+1)
		}
	}
	for reason := range congestion.Fallbacks {
		if got := reasons[reason.String()]; got != float64(reason+10) {
			t.Errorf("%v fallbacks are %v, expected %d", got, reason, reason+10)
		}
	}
	if len(states) != int(congestion.L4SStates) || len(reasons) != int(congestion.Fallbacks) {
		t.Errorf("the labels are %v and %v", states, reasons)
	}
}
