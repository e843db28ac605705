package carriage

import (
	"context"
	"testing"
	"time"
)

// oracle is an end with estimates that was created long before the first capture.
type oracle struct {
	*shelf
	at time.Time
}

// Estimates implements Estimator.
func (o *oracle) Estimates(since time.Time) []Estimate {
	return []Estimate{{At: o.at.Sub(since).Seconds(), Mbps: 10}}
}

// TestEstimatesCountFromTheBeginning: the times of estimates are relative to the publisher's beginning, which the
// summary contains, independently of the creation of the end.
func TestEstimatesCountFromTheBeginning(t *testing.T) {
	before := time.Now()
	o := &oracle{newShelf(), before.Add(-time.Hour)}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s, err := Publish(ctx, newScript(1), o, DefaultPublish(), "a", nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.Begun.Before(before) || s.Begun.After(time.Now()) {
		t.Errorf("the publisher began at %v, expected between %v and now", s.Begun, before)
	}
	if len(s.Estimates) != 1 || s.Estimates[0].At != o.at.Sub(s.Begun).Seconds() {
		t.Errorf("got %+v, expected an estimate one hour before the beginning at %v", s.Estimates, s.Begun)
	}
}

func TestNotEncoded(t *testing.T) {
	if p := (Published{Captures: 100, CapturesMissed: 10, CapturesDropped: 5,
		CapturesEncoded: 85}); p.NotEncoded() != 15 {
		t.Errorf("got %d captures that were not encoded, want 15", p.NotEncoded())
	}
}
