package hotpath

import (
	"context"
	"errors"
	"testing"
)

func TestRuns(t *testing.T) {
	hold := func(p50, p99, p999 float64) *Result {
		return &Result{Figures: Figures{CPU: p50, PacerHold: &Quantiles{p50, p99, p999}}}
	}
	script := &scripted{results: []*Result{hold(1, 30, 200), hold(3, 10, 300), hold(2, 20, 100)}}
	b := script.bench()
	runs, err := b.repeat(context.Background(), "three", 3, Options{Load: DefaultLoad()})
	if err != nil {
		t.Fatal(err)
	}
	if got := runs.Median(func(r *Result) float64 { return r.CPU }); got != 2 || runs.Valid() != 3 {
		t.Errorf("median %g of %d valid runs, want 2 of 3", got, runs.Valid())
	}
	if got := runs.Quantiles(func(r *Result) *Quantiles { return r.PacerHold }); got == nil ||
		*got != (Quantiles{2, 20, 200}) {
		t.Errorf("got %v, want the median of each quantile", got)
	}
	// Every run has the machine's limit of 1.1 µs. No run reports packets per send, and some runs report hold.
	if got := runs.Figure(func(r *Result) *float64 { return r.Ceiling }); got == nil || *got != 1.1 {
		t.Errorf("got %v, want 1.1", got)
	}
	if got := runs.Figure(func(r *Result) *float64 { return r.SegmentsPerSend }); got != nil {
		t.Errorf("got %g, which no run reports", *got)
	}
	runs[2].PacerHold = nil
	if got := runs.Quantiles(func(r *Result) *Quantiles { return r.PacerHold }); got != nil {
		t.Errorf("got %v, which one run does not report", got)
	}
	if _, err := b.repeat(context.Background(), "paced", 3, Options{Load: DefaultLoad(),
		Pacing: PacingOn}); !errors.Is(err, ErrPacing) {
		t.Errorf("got %v, want ErrPacing", err)
	}
}
