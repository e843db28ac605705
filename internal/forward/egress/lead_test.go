package egress

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
)

// toldEstimator reports the state that the test sets, and does not probe.
type toldEstimator struct {
	congestion.Estimator
	stats congestion.Stats
}

func (e *toldEstimator) Estimate() congestion.Bitrate { return e.stats.Estimate }
func (e *toldEstimator) Stats() congestion.Stats      { return e.stats }

func (e *toldEstimator) Probe(time.Time) (c congestion.ProbeCluster, ok bool) { return c, false }

// TestFramesLeadWhereLittleIsUsed changes an estimator's state of use of its estimate, and of competing traffic at the
// bottleneck, while the estimate stays the same.
func TestFramesLeadWhereLittleIsUsed(t *testing.T) {
	c := newConference(t, 200e6, nil)
	c.frames(time.Second, 2e6, nil)
	e := &toldEstimator{stats: congestion.Stats{Estimate: 60e6, DelayBased: 60e6}}
	e.Estimator = congestion.New(congestion.GCC, c.engine.cfg.Congestion, c.now)
	c.receiver.path.sender.Start(c.receiver.path.departures.history, e, c.now)
	for _, test := range []struct {
		when            string
		limited, evenly bool
		leads           bool
	}{
		{"the estimate is used", false, false, false},
		{"little of it is used", true, false, true},
		{"and they had better leave evenly", true, true, false},
		{"and need not any more", true, false, true},
		{"the estimate is used again", false, false, false},
	} {
		e.stats.ApplicationLimited, e.stats.Evenly = test.limited, test.evenly
		// The change takes effect with a report.
		c.frames(150*time.Millisecond, 2e6, nil)
		before := len(c.link.departed)
		c.publisher.Next()
		c.publisher.Send(c.now, c.publisher.Packets(42*1144)...)
		c.link.pass(frameInterval)
		left := c.link.departed[before:]
		if len(left) != 42 {
			t.Fatalf("%s: %d packets left, expected 42", test.when, len(left))
		}
		// 42 packets take 6.9 ms at 60 Mbit/s, and 13.3 ms less the last tick by their schedule.
		if took := left[41].at.Sub(left[0].at); (took < 8*time.Millisecond) != test.leads ||
			took > 14*time.Millisecond {
			t.Errorf("%s: a frame left within %v, expected it to lead: %v", test.when, took, test.leads)
		}
	}
}
