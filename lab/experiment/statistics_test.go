package experiment

import (
	"math"
	"slices"
	"testing"
)

func near(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance }

func TestStudent(t *testing.T) {
	tests := []struct {
		values []float64
		want   float64 // t(0.975, n-1) · s / √n, with t from tables: 12.706, 2.776, 2.262
	}{
		{[]float64{1, 2}, 12.7062 * math.Sqrt(0.5) / math.Sqrt2},
		{[]float64{1, 2, 3, 4, 5}, 2.77645 * math.Sqrt(2.5) / math.Sqrt(5)},
		{[]float64{2, 4, 4, 4, 5, 5, 7, 9, 5, 5}, 2.26216 * 1.8856 / math.Sqrt(10)},
	}
	for _, test := range tests {
		if got, ok := Student(test.values); !ok || !near(got, test.want, 1e-3) {
			t.Errorf("%v: expected %.4f, got %.4f, %v", test.values, test.want, got, ok)
		}
	}
	if _, ok := Student([]float64{3}); ok {
		t.Error("expected no interval of one value")
	}
}

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

func TestBootstrap(t *testing.T) {
	ratio := func(a, b float64) float64 { return a / b }
	if Bootstrap([]float64{1}, []float64{1, 2}, ratio) != nil {
		t.Error("expected no interval of one value")
	}
	got := Bootstrap([]float64{4, 4, 4}, []float64{2, 2}, ratio)
	if got == nil || got.Low != 2 || got.High != 2 {
		t.Errorf("expected exactly 2 if nothing varies, got %+v", got)
	}
	a, b := []float64{9, 10, 11, 10, 9.5, 10.5}, []float64{4.8, 5, 5.2, 5.1, 4.9, 5}
	got = Bootstrap(a, b, ratio)
	// The standard error of the ratio is 2·√((0.0288)² + (0.0115)²) = 0.062: an interval of about 1.88 to 2.12.
	if got == nil || got.Low > 1.95 || got.Low < 1.8 || got.High < 2.05 || got.High > 2.2 {
		t.Errorf("expected about 1.9 to 2.1, got %+v", got)
	}
	if again := Bootstrap(a, b, ratio); *again != *got {
		t.Errorf("expected the same interval for the same values, got %+v and %+v", got, again)
	}
}

// TestBootstrapOfZeros: three draws from {0, 0, 1} are all 0 in 8 of 27 cases, and a ratio to their mean is infinite or
// undefined.
func TestBootstrapOfZeros(t *testing.T) {
	ratio := func(a, b float64) float64 { return a / b }
	less := func(a, b float64) float64 { return 100 * (1 - a/b) }
	for name, of := range map[string][]float64{"infinite": {4, 5, 6}, "no number": {0, 0, 0}, "either": {0, 0, 1}} {
		for as, relate := range map[string]func(a, b float64) float64{"ratio": ratio, "less": less} {
			if got := Bootstrap(of, []float64{0, 0, 1}, relate); got != nil {
				t.Errorf("%s, %s: expected no interval, got %+v", name, as, got)
			}
		}
	}
	if got := Bootstrap([]float64{0, 0, 1}, []float64{4, 5, 6}, ratio); got == nil || got.Low != 0 {
		t.Errorf("expected an interval from 0 if nothing is divided by 0, got %+v", got)
	}
}
