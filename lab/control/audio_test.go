package control

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
)

// TestAudio: audio beside media and Prague waits in the low-latency queue with them. Without audio there is no figure.
func TestAudio(t *testing.T) {
	o := short(8)
	o.Audio, o.LinkBPS, o.Estimator.Controller = true, 20e6, congestion.ControllerAuto
	s := run(t, "prague:1", o)
	a := s.flows[0].audio
	if want := int((o.Duration - besideBegin) / audioInterval); a.waited.Count() != want {
		t.Errorf("%d packets of audio left the queue, expected %d", a.waited.Count(), want)
	}
	r := s.Record().Result()
	if r.AudioQueue == nil || r.LowLatency == nil || *r.AudioQueue <= 0 || *r.AudioQueue > r.LowLatency.Max {
		t.Errorf("audio waited %v, the class has %+v", r.AudioQueue, r.LowLatency)
	}
	// All packets of the receiver and of the competitor are still theirs.
	checkFlow(t, s.flows[0])
	if r := run(t, "steady:5", short(2)).Record().Result(); r.AudioQueue != nil {
		t.Errorf("audio waited %v, which is not sent", *r.AudioQueue)
	}
	o.Duration = 14 * time.Second
	if _, err := RunLive(context.Background(), "steady:5", o); !errors.Is(err, ErrCase) {
		t.Errorf("got %v, want that audio is refused end to end", err)
	}
}
