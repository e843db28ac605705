package rtc

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab/carriage"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestEstimatesSince: the times of estimates are relative to the given instant, not to the time at which the publisher
// listened.
func TestEstimatesSince(t *testing.T) {
	listened := time.Unix(1000, 0)
	p := &Publisher{begun: listened, estimates: []estimate{{listened.Add(5 * time.Second), 12.5},
		{listened.Add(7 * time.Second), 20}}}
	got := p.Estimates(listened.Add(6 * time.Second))
	if len(got) != 2 || got[0].At != -1 || got[0].Mbps != 12.5 || got[1].At != 1 || got[1].Mbps != 20 {
		t.Errorf("got %+v, expected 12.5 Mbit/s at -1 s and 20 at 1 s", got)
	}
}

// sink discards arrivals.
type sink struct{}

func (sink) Take(*carriage.Arrival) {}

// TestEstimateMoves: the watcher's reports reach Pion's congestion control. On a path that carries all packets, the
// estimate does not stay at its initial value.
func TestEstimateMoves(t *testing.T) {
	for name, estimator := range map[string]Estimator{"pion": PionEstimator, "pion-patched": PatchedEstimator} {
		t.Run(name, func(t *testing.T) { estimateMoves(t, estimator) })
	}
}

func estimateMoves(t *testing.T, estimator Estimator) {
	const least = 1_000_000
	publication := volumetric.Publication{Tiles: make([]volumetric.Tile, 1),
		Qualities: []volumetric.QualityLevel{{Name: "only", Bitrate: least}}}
	p, err := Listen("127.0.0.1:0", publication, estimator, least, 90*least, false)
	if err != nil {
		t.Fatal(err)
	}
	w, err := Connect(p.Address(), 1, 0)
	if err != nil {
		t.Fatal(errors.Join(err, p.Close()))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	var running sync.WaitGroup
	for _, end := range []carriage.End{p, w} {
		running.Go(func() {
			if err := end.Run(ctx, sink{}); err != nil && ctx.Err() == nil && !errors.Is(err, carriage.ErrEnded) {
				t.Error(err)
			}
		})
	}
	defer func() {
		cancel()
		running.Wait()
		if err := errors.Join(w.Close(), p.Close()); err != nil {
			t.Error(err)
		}
	}()
	if err := p.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	ticker := time.NewTicker(time.Second / 30)
	defer ticker.Stop()
	moved := func(e carriage.Estimate) bool { return e.Mbps > least/1e6 }
	for number := uint32(0); !slices.ContainsFunc(p.Estimates(time.Now()), moved); number++ {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("%d frames were sent, and the estimate still has its initial value", number)
		}
		if _, err := p.Send(ctx, &carriage.Frame{Number: number, Capture: time.Now(),
			Bytes: make([]byte, 5000)}); err != nil {
			t.Fatal(err)
		}
	}
}
