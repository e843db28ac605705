package carriage

import (
	"context"
	"testing"
	"time"
)

// oracle is an end with estimates, created long before the first capture.
type oracle struct {
	*shelf
	at time.Time
}

// Estimates implements Estimator.
func (o *oracle) Estimates(since time.Time) []Estimate {
	return []Estimate{{At: o.at.Sub(since).Seconds(), Mbps: 10}}
}

// TestEstimatesCountFromTheBeginning: the summary has the publisher's beginning, and its estimates count from then,
// independently of the creation of their end.
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
		t.Errorf("it began at %v, expected between %v and now", s.Begun, before)
	}
	if len(s.Estimates) != 1 || s.Estimates[0].At != o.at.Sub(s.Begun).Seconds() {
		t.Errorf("got %+v, expected one an hour before the beginning at %v", s.Estimates, s.Begun)
	}
}

func TestNotEncoded(t *testing.T) {
	if p := (Published{Captures: 100, CapturesMissed: 10, CapturesDropped: 5,
		CapturesEncoded: 85}); p.NotEncoded() != 15 {
		t.Errorf("got %d captures that were not encoded, want 15", p.NotEncoded())
	}
}
