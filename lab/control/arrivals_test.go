package control

import (
	"context"
	"errors"
	"testing"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/feedback"
)

// TestFeedback: with either feedback format the sender uses the link with a short queue, and knows the result of all
// packets except the last ones, which no later packet has confirmed as lost.
func TestFeedback(t *testing.T) {
	for _, form := range []Feedback{FeedbackTransport, FeedbackCCFB} {
		for _, text := range []string{"steady:20", "loss:2"} {
			t.Run(string(form)+", "+text, func(t *testing.T) {
				o := short(14)
				o.Feedback, o.LinkBPS = form, 20e6
				s := run(t, text, o)
				r := s.Record().Result()
				if r.Utilisation < 0.85 || r.EstimateShare < 0.85 || r.EstimateShare > 1.15 || r.Queue.P95 > 30 {
					t.Errorf("utilisation %.3f, an estimate of %.3f of the link, queues %+v", r.Utilisation,
						r.EstimateShare, r.Queue)
				}
				if r.PaddingOverhead <= 0 || r.PaddingOverhead > 0.02 {
					t.Errorf("padding takes %.4f of media", r.PaddingOverhead)
				}
				stats, link := s.flows[0].server.history.Stats(), s.hops[0].link.Stats()
				// Reports are lost on the way back as well: 2 %.
				if unknown := stats.Sent - stats.Received - stats.Lost + stats.Late; unknown > 100+stats.Sent/33 {
					t.Errorf("nothing is known of %d packets of %d: %+v", unknown, stats.Sent, stats)
				}
				if stats.Received > link.Delivered || stats.Reports == 0 || stats.Malformed > 0 || stats.Unmatched > 0 {
					t.Errorf("the link has delivered %d packets, reports say %+v", link.Delivered, stats)
				}
			})
		}
	}
}

// TestWithoutRTX: a receiver without RTX is sent neither retransmissions nor padding. Queued media serves as the probe,
// so the rate still rises, but later. The controller is GCC: with L4S frames leave smoothly at first, and too little
// media is queued for a probe.
func TestWithoutRTX(t *testing.T) {
	o := short(4)
	o.Estimator.Controller = congestion.ControllerGCC
	with := run(t, "ramp", o).Record().Result()
	o.NoRTX = true
	s := run(t, "ramp", o)
	r, l := s.Record().Result(), s.flows[0].ledger
	if l.sentBytes[feedback.Retransmission] > 0 || l.sentBytes[feedback.Probe] > 0 ||
		s.flows[0].server.Stats().Probes == 0 {
		t.Errorf("sent %v bytes by kind, with %d probes", l.sentBytes, s.flows[0].server.Stats().Probes)
	}
	if *r.SecondsToTarget < *with.SecondsToTarget || *r.SecondsToTarget > 3 {
		t.Errorf("%g s to the target, with retransmissions %g", *r.SecondsToTarget, *with.SecondsToTarget)
	}
	o.LinkBPS = 20e6
	if s := run(t, "loss:2", o); s.flows[0].ledger.sentBytes[feedback.Retransmission] > 0 ||
		s.Record().Result().FramesUndecodable == 0 {
		t.Error("expected that what is lost stays lost")
	}
	if _, err := RunLive(context.Background(), "ramp", o); !errors.Is(err, ErrCase) {
		t.Errorf("got %v, want that clients of a live run take retransmissions", err)
	}
}
