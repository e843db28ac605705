package inference

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/combin"
	"gonum.org/v1/gonum/stat/distuv"
)

// Equivalence is the result of a test whether two means differ by less than a bound.
type Equivalence struct {
	// Difference is the mean of the first minus the mean of the second values.
	Difference float64 `json:"difference"`
	Within     float64 `json:"within"`
	// P is the probability of values as observed or clearer if the means differ by the bound.
	P float64 `json:"p"`
}

// Shown reports whether the values show the equivalence at the level of 5 %.
func (e Equivalence) Shown() bool { return e.P < 1-Confidence }

// String returns the result in words.
func (e Equivalence) String() string {
	not := ""
	if !e.Shown() {
		not = "not "
	}
	return fmt.Sprintf("difference %.3g, %sshown to be within ±%g (p = %.3f)", e.Difference, not, e.Within, e.P)
}

// Equivalent tests whether the means of a and b differ by less than a bound: two one-sided tests (Schuirmann 1987) with
// Welch's t. Two means that do not differ significantly are not thereby equal: the test fails if the values are too few
// or vary too much. P is 1 if a or b has fewer than two values.
func Equivalent(a, b []float64, within float64) Equivalence {
	if len(a) < 2 || len(b) < 2 {
		return Equivalence{Within: within, P: 1}
	}
	of, to := momentsOf(a), momentsOf(b)
	e := Equivalence{Difference: of.mean - to.mean, Within: within}
	distance, deviation := within-math.Abs(e.Difference), math.Sqrt(of.variance+to.variance)
	switch {
	case deviation > 0:
		// The nearer bound has the larger p.
		e.P = distuv.StudentsT{Sigma: 1, Nu: satterthwaite(of, to)}.CDF(-distance / deviation)
	case distance <= 0:
		e.P = 1
	}
	return e
}

// Differ returns the probability of a difference as observed or larger if the means of a and b are equal (Welch 1947),
// 1 if a or b has fewer than two values.
func Differ(a, b []float64) float64 {
	if len(a) < 2 || len(b) < 2 {
		return 1
	}
	of, to := momentsOf(a), momentsOf(b)
	difference, deviation := math.Abs(of.mean-to.mean), math.Sqrt(of.variance+to.variance)
	switch {
	case difference == 0:
		return 1
	case deviation == 0:
		return 0
	}
	return 2 * distuv.StudentsT{Sigma: 1, Nu: satterthwaite(of, to)}.CDF(-difference/deviation)
}

// Holm returns the p-values of a family of tests, corrected so that the probability of any false result is at most the
// level of a single test (Holm 1979). The order is that of the tests.
func Holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, k int) int { return cmp.Compare(p[i], p[k]) })
	corrected, least := make([]float64, len(p)), 0.0
	for rank, i := range order {
		least = max(least, min(1, p[i]*float64(len(p)-rank)))
		corrected[i] = least
	}
	return corrected
}

// Fisher returns the probability of a table as observed or less probable if two shares are equal (Fisher's exact test,
// two-sided): hits of tries in the first sample, and in the second. Hits are at most tries.
func Fisher(hits, tries, otherHits, otherTries int) float64 {
	all, sum := tries+otherTries, hits+otherHits
	probability := func(k int) float64 {
		return math.Exp(combin.LogGeneralizedBinomial(float64(tries), float64(k)) +
			combin.LogGeneralizedBinomial(float64(otherTries), float64(sum-k)) -
			combin.LogGeneralizedBinomial(float64(all), float64(sum)))
	}
	// Equal probabilities may differ by rounding.
	limit, p := probability(hits)*(1+1e-9), 0.0
	for k := max(0, sum-otherTries); k <= min(tries, sum); k++ {
		if one := probability(k); one <= limit {
			p += one
		}
	}
	return min(1, p)
}
