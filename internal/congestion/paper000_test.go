package congestion

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/netem"
)

func newPaperSender(t *testing.T) (*bottleneck, *frameSender) {
	b := newBottleneck(t, 200, netem.NewL4SPriority(200e6, l4sQueue))
	cfg := DefaultConfig()
	cfg.Profile, cfg.Controller = "paper000", ControllerPaper000
	s := b.add(New(cfg.Algorithm(true), cfg, start), 7)
	s.span, s.share = paperSpread, 1
	return b, s
}

// TestPaper000Ramp starts alone in the queue of paper 000: figure 7a has 90 Mbit/s after 10 s, and a linear ramp.
func TestPaper000Ramp(t *testing.T) {
	b, s := newPaperSender(t)
	b.run(15*time.Second, nil)
	half, ok := s.reaches(0, (12.5+90)/2*mbit)
	if !ok {
		t.Fatal("the estimate never reached the middle")
	}
	full, ok := s.reaches(0, 0.99*90*mbit)
	if !ok {
		t.Fatal("the estimate never reached 90 Mbit/s")
	}
	t.Logf("half of the way after %v, all after %v", half, full)
	atLeast(t, "time to 90 Mbit/s", full, 8*time.Second)
	atMost(t, "time to 90 Mbit/s", full, 13*time.Second)
	atLeast(t, "half of the way, of this time", half.Seconds()/full.Seconds(), 0.4)
	atMost(t, "half of the way, of this time", half.Seconds()/full.Seconds(), 0.6)
	atMost(t, "frames dropped", float64(s.dropped), 0)
}

// TestPaper000Starves joins three flows of Prague: the paper's sender meets the meter at 1.67 times its rate and falls
// to its minimum (section 4.4: 12.5 Mbit/s).
func TestPaper000Starves(t *testing.T) {
	b, _ := newPaperSender(t)
	for i := range 3 {
		b.others = append(b.others,
			netem.NewPragueFlow(uint64(i+2), 10*time.Millisecond, start.Add(5*time.Second)))
	}
	b.run(15*time.Second, nil)
	atMost(t, "rate", b.rate(1, 25*time.Second), 17*mbit)
}

// TestPaper000Loss loses two packets of a report, and one that left before the first losses were known: the estimate is
// halved once.
func TestPaper000Loss(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Start = 40e6
	e := newPaper000(cfg, start)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	lose := func(now int, sent ...int) {
		results := []feedback.PacketResult{{Size: 1000, Sent: at(now - 20), Received: true}}
		for _, s := range sent {
			results = append(results, feedback.PacketResult{Size: 1000, Sent: at(s)})
		}
		e.Report(at(now), results)
	}
	lose(20, 0, 1)
	lose(30, 15)
	if got := e.Estimate(); got < 20e6 || got > 20.5e6 {
		t.Errorf("%v after the losses of a round trip, expected 20 Mbit/s and the growth of a step", got)
	}
	lose(60, 31)
	if got := e.Estimate(); got < 10e6 || got > 10.5e6 {
		t.Errorf("%v after a later loss, expected 10 Mbit/s and the growth of a step", got)
	}
	if stats := e.Stats(); stats.Window != windowOf(e.rate, stats.RTT+paperFrames) {
		t.Errorf("the window is %d, the round trip %v", stats.Window, stats.RTT)
	}
}
