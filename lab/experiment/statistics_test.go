package experiment

import (
	"math"
	"slices"
	"testing"
)

func near(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance }

func TestQuantiles(t *testing.T) {
	values := []float64{5, 1, 4, 2, 3}
	for share, want := range map[float64]float64{0: 1, 0.2: 1, 0.5: 3, 0.95: 5, 1: 5} {
		if got := Quantile(values, share); got != want {
			t.Errorf("share %g: expected %g, got %g", share, want, got)
		}
	}
	if Mean(nil) != 0 || Quantile(nil, 0.5) != 0 {
		t.Error("expected 0 without values")
	}
	if !slices.Equal(values, []float64{5, 1, 4, 2, 3}) {
		t.Error("expected unchanged values")
	}
}

func TestSummaryOfIterations(t *testing.T) {
	s := Summarise([]Figure{{Value: 1}, {Value: 2}, {Value: 3}, {Value: 4}, {Value: 5}})
	if s.Count != 5 || s.Mean != 3 || s.Median != 3 || s.Min != 1 || s.Max != 5 || !near(s.Deviation, 1.5811, 1e-4) {
		t.Errorf("unexpected statistics %+v", s)
	}
	if i := s.Interval; i == nil || i.Method != MethodIterations || !near(i.Low, 3-1.9632, 1e-3) ||
		!near(i.High, 3+1.9632, 1e-3) {
		t.Errorf("expected 3 ± 1.963 over iterations, got %+v", s.Interval)
	}
}

// TestSummaryOfOneIteration: neighbouring frames are correlated. Batches of equal means have no spread, for any spread
// of the single frames.
func TestSummaryOfOneIteration(t *testing.T) {
	samples := make([]float64, 100)
	for i := range samples {
		samples[i] = float64(i % 10)
	}
	s := Summarise([]Figure{{Value: 4.5, Samples: samples}})
	if s.Interval == nil || s.Interval.Method != MethodBatches || s.Interval.Low != 4.5 || s.Interval.High != 4.5 {
		t.Errorf("expected 4.5 ± 0 over parts, got %+v", s.Interval)
	}
	for i := range samples {
		samples[i] = float64(i / 10)
	}
	// Parts have the means 0 to 9: t(0.975, 9) · 3.0277 / √10.
	s = Summarise([]Figure{{Value: 4.5, Samples: samples}})
	if half := s.Interval.High - 4.5; !near(half, 2.26216*3.02765/math.Sqrt(10), 1e-3) {
		t.Errorf("expected half an interval of 2.166, got %g", half)
	}
	if s := Summarise([]Figure{{Value: 7}}); s.Interval != nil || s.Mean != 7 {
		t.Errorf("expected 7 without interval, got %+v", s)
	}
	if s := Summarise(nil); s.Count != 0 || s.Interval != nil {
		t.Errorf("expected no statistics, got %+v", s)
	}
}

func TestBatchMeans(t *testing.T) {
	if got := BatchMeans([]float64{1, 3, 5, 7}, 2); !slices.Equal(got, []float64{2, 6}) {
		t.Errorf("expected 2 and 6, got %v", got)
	}
	if got := BatchMeans([]float64{1, 2, 3}, 2); got != nil {
		t.Errorf("expected no means of parts with one sample, got %v", got)
	}
}

// TestIntervalsOfRelations checks that the interval of a relation contains the relation and has the right order.
func TestIntervalsOfRelations(t *testing.T) {
	of, to := []float64{4, 5, 6}, []float64{9, 10, 11}
	for as, want := range map[string]float64{asRatio: 0.5, asMore: -50, asLess: 50} {
		c := &Comparison{As: as}
		if got := c.interval(of, to); got == nil || got.Low >= want || got.High <= want {
			t.Errorf("%s: expected an interval around %g, got %+v", as, want, got)
		}
		if got := c.interval(of, []float64{0, 0, 1}); got != nil {
			t.Errorf("%s: expected no interval of a ratio to values that do not differ from 0, got %+v", as, got)
		}
	}
}
