package inference

import (
	"math/rand/v2"
	"testing"
)

func TestEquivalent(t *testing.T) {
	close, far := []float64{10, 10.1, 9.9, 10, 10.1}, []float64{12, 12.1, 11.9, 12, 12.1}
	few, constant := []float64{10, 14}, []float64{10, 10}
	tests := map[string]struct {
		a, b   []float64
		within float64
		shown  bool
	}{
		"equal means":                     {close, close, 1, true},
		"means at a distance of 2":        {close, far, 1, false},
		"within a bound beyond that":      {close, far, 3, true},
		"too few values that vary":        {close, few, 1, false},
		"constant values":                 {constant, constant, 0.1, true},
		"constant values, a bound of 0":   {constant, constant, 0, false},
		"one value":                       {close, few[:1], 100, false},
		"the first mean above the second": {far, close, 1, false},
	}
	for name, test := range tests {
		if got := Equivalent(test.a, test.b, test.within); got.Shown() != test.shown {
			t.Errorf("%s: expected %v, got %v", name, test.shown, got)
		}
	}
}

// TestErrors draws samples whose means differ by exactly the bound, or not at all. A test must claim the contrary in at
// most 5 % of the cases, here with a margin of three standard errors of 4,000 draws: 200 + 3·13.8.
func TestErrors(t *testing.T) {
	const draws, most = 4000, 241
	random := rand.New(rand.NewPCG(3, 4))
	equivalent, different := 0, 0
	for range draws {
		a, b := normal.values(random, 5), normal.values(random, 5)
		if Differ(a, b) < 0.05 {
			different++
		}
		for i := range b {
			b[i] += 2
		}
		if Equivalent(a, b, 2).Shown() {
			equivalent++
		}
	}
	t.Logf("equivalent %d, different %d of %d", equivalent, different, draws)
	if equivalent > most || different > most {
		t.Errorf("claimed equivalence %d times and difference %d times of %d, expected at most %d", equivalent,
			different, draws, most)
	}
}

func TestDiffer(t *testing.T) {
	// t = -3 / √2.5 with 5.88 degrees of freedom.
	if p := Differ([]float64{1, 2, 3, 4, 5}, []float64{2, 4, 6, 8, 10}); !near(p, 0.107, 2e-3) {
		t.Errorf("expected 0.107, got %.4f", p)
	}
	for name, test := range map[string]struct {
		a, b []float64
		p    float64
	}{
		"one value":           {[]float64{1}, []float64{2, 3}, 1},
		"the same":            {[]float64{1, 2}, []float64{1, 2}, 1},
		"different constants": {[]float64{1, 1}, []float64{2, 2}, 0},
	} {
		if p := Differ(test.a, test.b); p != test.p {
			t.Errorf("%s: expected %g, got %g", name, test.p, p)
		}
	}
}

func TestHolm(t *testing.T) {
	// 0.01 × 4, 0.02 × 3, then 0.03 × 2 and 0.04 × 1, which are not below their predecessors.
	got := Holm([]float64{0.04, 0.01, 0.03, 0.02})
	for i, want := range []float64{0.06, 0.04, 0.06, 0.06} {
		if !near(got[i], want, 1e-12) {
			t.Errorf("test %d: expected %g, got %g", i, want, got[i])
		}
	}
	if got := Holm([]float64{0.9, 0.8}); got[0] != 1 || got[1] != 1 {
		t.Errorf("expected at most 1, got %v", got)
	}
	if len(Holm(nil)) != 0 {
		t.Error("expected no values of no tests")
	}
}

// TestFisher compares with the lady tasting tea (Fisher 1935: 3 of 4 cups, p = 34/70 two-sided) and R's fisher.test.
func TestFisher(t *testing.T) {
	for name, test := range map[string]struct {
		hits, tries, otherHits, otherTries int
		p                                  float64
	}{
		"tea":          {3, 4, 1, 4, 34.0 / 70},
		"no hits":      {0, 100, 0, 100, 1},
		"equal shares": {5, 50, 5, 50, 1},
		"all of one":   {10, 10, 0, 10, 2.0 / 184756},
	} {
		if p := Fisher(test.hits, test.tries, test.otherHits, test.otherTries); !near(p, test.p, 1e-9) {
			t.Errorf("%s: expected %.9f, got %.9f", name, test.p, p)
		}
	}
}
