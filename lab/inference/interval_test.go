package inference

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/volsfu/volsfu/test/race"
)

func near(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance }

func TestMean(t *testing.T) {
	tests := []struct {
		values []float64
		half   float64 // t(0.975, n-1) · s / √n, with t from tables: 12.706, 2.776, 2.262
	}{
		{[]float64{1, 2}, 12.7062 * math.Sqrt(0.5) / math.Sqrt2},
		{[]float64{1, 2, 3, 4, 5}, 2.77645 * math.Sqrt(2.5) / math.Sqrt(5)},
		{[]float64{2, 4, 4, 4, 5, 5, 7, 9, 5, 5}, 2.26216 * 1.8856 / math.Sqrt(10)},
	}
	for _, test := range tests {
		if got := Mean(test.values); got == nil || !near((got.High-got.Low)/2, test.half, 1e-3) {
			t.Errorf("%v: expected ± %.4f, got %+v", test.values, test.half, got)
		}
	}
	if got := Mean([]float64{3}); got != nil {
		t.Errorf("expected no interval of one value, got %+v", got)
	}
}

// TestDifference compares with an example computed by hand: variances of the means 0.5 and 2, 5.88 degrees of freedom,
// t(0.975, 5.88) = 2.459.
func TestDifference(t *testing.T) {
	a, b := []float64{1, 2, 3, 4, 5}, []float64{2, 4, 6, 8, 10}
	got := Difference(a, b)
	if half := 2.459 * math.Sqrt(2.5); got == nil || !near(got.Low, -3-half, 5e-3) || !near(got.High, -3+half, 5e-3) {
		t.Errorf("expected -3 ± %.3f, got %+v", half, got)
	}
	if got := Difference([]float64{2, 2}, []float64{1, 1}); got == nil || got.Low != 1 || got.High != 1 {
		t.Errorf("expected exactly 1 if nothing varies, got %+v", got)
	}
	if Difference(a, b[:1]) != nil {
		t.Error("expected no interval of one value")
	}
}

func TestRatio(t *testing.T) {
	if got := Ratio([]float64{4, 4, 4}, []float64{2, 2}); got == nil || got.Low != 2 || got.High != 2 {
		t.Errorf("expected exactly 2 if nothing varies, got %+v", got)
	}
	a, b := []float64{9, 10, 11, 10, 9.5, 10.5}, []float64{4.8, 5, 5.2, 5.1, 4.9, 5}
	// The standard error of the ratio is 2·√(0.0289² + 0.0115²) = 0.062, with 6.5 degrees of freedom: t = 2.40.
	if got := Ratio(a, b); got == nil || !near(got.Low, 1.85, 0.01) || !near(got.High, 2.15, 0.01) {
		t.Errorf("expected about 1.85 to 2.15, got %+v", got)
	}
	for name, test := range map[string]struct{ a, b []float64 }{
		"a mean that does not differ from 0": {[]float64{4, 5, 6}, []float64{-1, 0, 2}},
		"0":                                  {[]float64{4, 5, 6}, []float64{0, 0}},
		"one value":                          {[]float64{4, 5, 6}, []float64{1}},
	} {
		if got := Ratio(test.a, test.b); got != nil {
			t.Errorf("divided by %s: expected no interval, got %+v", name, got)
		}
	}
	if got := Ratio([]float64{0, 0, 1}, []float64{4, 5, 6}); got == nil || got.Low > 0 || got.High < 0.06 {
		t.Errorf("expected an interval that contains 0 and 1/15, got %+v", got)
	}
	if got := Ratio([]float64{0, 0}, []float64{4, 5}); got == nil || got.Low != 0 || got.High != 0 {
		t.Errorf("expected exactly 0 of constant values, got %+v", got)
	}
}

func median(values []float64) float64 {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

func TestStatistic(t *testing.T) {
	values := make([]float64, 40)
	for i := range values {
		values[i] = float64(i)
	}
	got := Statistic(values, median)
	if got == nil || got.Low < 10 || got.Low > 15 || got.High < 24 || got.High > 29 {
		t.Errorf("expected about 13 to 26 around 19.5, got %+v", got)
	}
	if again := Statistic(values, median); *again != *got {
		t.Errorf("expected the same interval for the same values, got %+v and %+v", got, again)
	}
	for i := range values {
		values[i] = 7
	}
	if got := Statistic(values, median); got == nil || got.Low != 7 || got.High != 7 {
		t.Errorf("expected exactly 7 if nothing varies, got %+v", got)
	}
	if got := Statistic(values[:19], median); got != nil {
		t.Errorf("expected no interval of 19 values, got %+v", got)
	}
}

// distribution draws values with a known mean and median.
type distribution struct {
	draw         func(*rand.Rand) float64
	mean, median float64
}

// normal has a deviation of a tenth of the mean. skewed is lognormal with σ = 0.3, as latencies are.
var (
	normal = distribution{func(r *rand.Rand) float64 { return 10 + r.NormFloat64() }, 10, 10}
	skewed = distribution{func(r *rand.Rand) float64 { return 10 * math.Exp(0.3*r.NormFloat64()) },
		10 * math.Exp(0.045), 10}
)

func (d distribution) values(random *rand.Rand, n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = d.draw(random)
	}
	return values
}

// TestCoverage draws samples from known distributions: 93 to 97 % of the intervals contain the true value.
func TestCoverage(t *testing.T) {
	race.SkipSequential(t)
	type method func(*rand.Rand, int) (*Interval, float64)
	mean := func(d distribution) method {
		return func(r *rand.Rand, n int) (*Interval, float64) { return Mean(d.values(r, n)), d.mean }
	}
	difference := func(a, b distribution) method {
		return func(r *rand.Rand, n int) (*Interval, float64) {
			return Difference(a.values(r, n), b.values(r, n)), a.mean - b.mean
		}
	}
	ratio := func(a, b distribution) method {
		return func(r *rand.Rand, n int) (*Interval, float64) {
			return Ratio(a.values(r, n), b.values(r, n)), a.mean / b.mean
		}
	}
	middle := func(d distribution) method {
		return func(r *rand.Rand, n int) (*Interval, float64) { return Statistic(d.values(r, n), median), d.median }
	}
	tests := map[string]struct {
		method method
		sizes  []int
		draws  int
	}{
		"mean of normal values":                {mean(normal), []int{3, 5, 10}, 20_000},
		"mean of skewed values":                {mean(skewed), []int{3, 5, 10}, 20_000},
		"difference of normal values":          {difference(normal, normal), []int{3, 5, 10}, 20_000},
		"difference of normal, skewed":         {difference(normal, skewed), []int{3, 5, 10}, 20_000},
		"ratio of normal values":               {ratio(normal, normal), []int{3, 5, 10}, 20_000},
		"ratio of skewed, normal":              {ratio(skewed, normal), []int{3, 5, 10}, 20_000},
		"median of normal values by bootstrap": {middle(normal), []int{20}, 600},
		"median of skewed values by bootstrap": {middle(skewed), []int{20}, 600},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, n := range test.sizes {
				random := rand.New(rand.NewPCG(7, uint64(n)))
				contained := 0
				for range test.draws {
					i, truth := test.method(random, n)
					if i == nil {
						t.Fatalf("%d values: no interval", n)
					}
					if i.Low <= truth && truth <= i.High {
						contained++
					}
				}
				share := float64(contained) / float64(test.draws)
				t.Logf("%d values: %.1f %%", n, 100*share)
				if share < 0.93 || share > 0.97 {
					t.Errorf("%d values: %.1f %% of %d intervals contain the true value, expected 93 to 97 %%", n,
						100*share, test.draws)
				}
			}
		})
	}
}
