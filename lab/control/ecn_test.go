package control

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
)

// capable is an estimator whose packets leave as ECT(1), until fallen has returned true. It counts the reported
// codepoints, and the latest packets without interruption that were marked.
type capable struct {
	congestion.Estimator
	reported    [ecn.CE + 1]uint64
	marksInARow int
	latest      time.Time   // of the reports
	fallen      func() bool // nil for never
	gaveUp      bool
}

func (c *capable) Stats() congestion.Stats {
	stats := c.Estimator.Stats()
	if c.fallen != nil && c.fallen() {
		c.gaveUp = true
	}
	if !c.gaveUp {
		stats.ECN = ecn.ECT1
	}
	return stats
}

func (c *capable) Report(now time.Time, results []feedback.PacketResult) {
	c.latest = now
	for _, r := range results {
		if !r.Received {
			continue
		}
		c.reported[r.ECN]++
		if c.marksInARow++; r.ECN != ecn.CE {
			c.marksInARow = 0
		}
	}
	c.Estimator.Report(now, results)
}

// TestECN: packets leave with the codepoint of the estimator, an L4S queue marks some, and a receiver with reports of
// RFC 8888 reports every mark.
func TestECN(t *testing.T) {
	for _, queue := range []string{"dualpi2", "paper000", "codel"} {
		t.Run(queue, func(t *testing.T) {
			o := short(4)
			o.Queue, o.Feedback = queue, FeedbackCCFB
			s, err := NewSimulation("steady:20", o)
			if err != nil {
				t.Fatal(err)
			}
			f, e := s.flows[0], &capable{}
			e.Estimator = congestion.New(congestion.GCC, s.scenario.options.Estimator, epoch)
			f.server.Start(f.server.history, e, epoch)
			if err := s.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			r := s.Record().Result()
			if r.Classic != nil || r.LowLatency == nil {
				t.Fatalf("figures of classes are %+v and %+v, want low-latency packets only", r.LowLatency, r.Classic)
			}
			if e.reported[ecn.NotECT] > 0 || e.reported[ecn.ECT0] > 0 || e.reported[ecn.ECT1] == 0 {
				t.Errorf("reports by codepoint: %v, want ECT(1) and CE only", e.reported)
			}
			// The last packets are never reported if no packet follows.
			if marks := r.LowLatency.Marked; e.reported[ecn.CE] > marks || e.reported[ecn.CE]+10 < marks || marks == 0 {
				t.Errorf("%d packets are reported as CE, %d were marked", e.reported[ecn.CE], marks)
			}
		})
	}
}

// TestClasses: GCC's packets are classic in an L4S queue.
func TestClasses(t *testing.T) {
	o := short(4)
	o.Queue, o.Estimator.Controller = "dualpi2", congestion.ControllerGCC
	s := run(t, "steady:20", o)
	r := s.Record().Result()
	if r.LowLatency != nil || r.Classic == nil {
		t.Fatalf("figures of classes are %+v and %+v, want classic packets only", r.LowLatency, r.Classic)
	}
	if c := r.Classic; c.Packets != s.flows[0].watched.transmitted || c.Max < c.P99 || c.P99 < c.P50 ||
		c.Max != r.Queue.Max {
		t.Errorf("the figures are %+v, want those of the only flow: %+v", c, r.Queue)
	}
}
