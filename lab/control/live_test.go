package control

import (
	"bytes"
	"context"
	"errors"
	"math"
	"testing"
)

// TestLive: an end-to-end run produces the same kind of ledger as a simulated run. The check judges the figures, on a
// quiet machine.
func TestLive(t *testing.T) {
	o := short(3)
	o.LinkBPS = 5e6
	for text, form := range map[string]Feedback{"fair:2": FeedbackTransport, "loss:2": FeedbackCCFB} {
		o.Feedback = form
		r, err := RunLive(context.Background(), text, o)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if len(r.receivers) != r.scenario.receivers || len(r.receivers[0].samples) < 10 {
			t.Fatalf("%s: %d receivers, %d samples", text, len(r.receivers), len(r.receivers[0].samples))
		}
		for i, l := range r.receivers {
			arrived, counted := 0.0, 0.0
			for _, frame := range l.frames {
				if frame.complete > 0 && frame.complete <= l.samples[len(l.samples)-1].at {
					arrived += float64(frame.bytes) * descriptorFactor
				}
			}
			before := l.samples[0].at - sampleInterval
			for _, x := range l.samples {
				counted += x.goodput * (x.at - before).Seconds() / 8
				before = x.at
				if math.Abs(x.capacity-5e6) > 1 {
					t.Errorf("%s: a capacity of %g", text, x.capacity)
				}
			}
			// Frames that wait between two goroutines at the end of a sample may be counted in the next sample.
			if arrived == 0 || counted < 0.9*arrived || counted > 1.1*arrived {
				t.Errorf("%s: receiver %d got %.0f bytes of frames, samples say %.0f", text, i, arrived, counted)
			}
		}
		result := r.Result()
		if result.FramesSent == 0 || result.Queue.Max <= 0 || result.EstimateShare <= 0 {
			t.Errorf("%s: %+v", text, result)
		}
		if err := r.Plot(&bytes.Buffer{}); err != nil {
			t.Error(err)
		}
	}
}

// TestLiveBesideCubic: a Cubic flow shares the queue. The run ends immediately when its context is cancelled.
func TestLiveBesideCubic(t *testing.T) {
	o := short(14)
	o.Seed, o.LinkBPS = 8, 10e6 // The receiver joins after 10 s.
	r, err := RunLive(context.Background(), "cubic:1", o)
	if err != nil {
		t.Fatal(err)
	}
	result := r.Result()
	if result.Others == nil || result.Others.QueueP95 <= 0 || result.ShareOfFair == nil || *result.ShareOfFair <= 0 {
		t.Errorf("got %+v, want what the transfer met", result)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := RunLive(ctx, "steady:5", short(3)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
	if _, err := RunLive(context.Background(), "steep:5", short(3)); !errors.Is(err, ErrCase) {
		t.Errorf("got %v, want ErrCase", err)
	}
}
