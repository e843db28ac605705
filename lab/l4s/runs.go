package l4s

import (
	"slices"

	"github.com/volsfu/volsfu/lab/control"
	"github.com/volsfu/volsfu/test/claim"
)

// runs are the results of a trial with several seeds. A target counts for the worst of them, so that no seed hides a
// miss; figures without a target are medians.
type runs []*control.Result

// values returns a figure of all runs.
func (r runs) values(figure func(*control.Result) float64) []float64 {
	values := make([]float64, len(r))
	for i := range r {
		values[i] = figure(r[i])
	}
	return values
}

func (r runs) least(figure func(*control.Result) float64) float64 {
	return slices.Min(r.values(figure))
}

func (r runs) most(figure func(*control.Result) float64) float64 { return slices.Max(r.values(figure)) }

func (r runs) median(figure func(*control.Result) float64) float64 {
	return slices.Sorted(slices.Values(r.values(figure)))[len(r)/2]
}

// between returns the line of a figure that must not leave a range: that of the run nearest to a bound, or farthest
// beyond one.
func (r runs) between(name string, figure func(*control.Result) float64, unit string, least, most float64) claim.Line {
	smallest, largest := r.least(figure), r.most(figure)
	if least-smallest > largest-most {
		return claim.Between(name, smallest, unit, least, most)
	}
	return claim.Between(name, largest, unit, least, most)
}

// lowLatency returns the line of the low-latency queue: the 99th percentile of the waiting times of all its packets,
// those of competitors included.
func (r runs) lowLatency(name string, bound float64) claim.Line {
	if !r.overL4S() {
		return claim.Fail(name+queueName, notECT)
	}
	return claim.AtMost(name+queueName, r.most(queueP99), "ms", bound)
}

// overL4S reports whether packets were ECT(1) in all runs.
func (r runs) overL4S() bool {
	return !slices.ContainsFunc(r, func(r *control.Result) bool { return r.LowLatency == nil })
}

const (
	queueName = "low-latency queue p99"
	// notECT is the reason of a line of that name without a figure.
	notECT = "no packet was ECT(1)"
)

// undecodable returns the line of the undecodable frames of all runs.
func (r runs) undecodable(name string) claim.Line {
	sum := 0
	for _, r := range r {
		sum += r.FramesUndecodable
	}
	return claim.Exactly(name+"frames undecodable", int64(sum), "", 0)
}

// The figures of several claims. Shares are in %.

func queueP99(r *control.Result) float64 { return r.LowLatency.P99 }

func queueMax(r *control.Result) float64 { return r.Queue.Max }

func percent(share float64) float64 { return 100 * share }

func utilisation(r *control.Result) float64 { return percent(r.Utilisation) }

func queueOfCliff(r *control.Result) float64 { return r.Cliff.LongestQueue }

func latencyP95(r *control.Result) float64 { return r.Latency.P95 }

func lost(r *control.Result) float64 { return float64(r.FramesUndecodable) }

func droppedWhole(r *control.Result) float64 { return float64(r.FramesDroppedWhole) }

func ofFair(r *control.Result) float64 { return *r.ShareOfFair }

func othersOfFair(r *control.Result) float64 { return *r.Others.ShareOfFair }
