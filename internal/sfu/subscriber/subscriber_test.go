package subscriber

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// start is the beginning of virtual time.
var start = time.Unix(1_795_188_600, 0)

// playedMeter returns the rate set by the test.
type playedMeter volumetric.Bitrate

// Rate implements Meter.
func (m *playedMeter) Rate() (volumetric.Bitrate, bool) { return volumetric.Bitrate(*m), *m > 0 }

// Steady implements Meter.
func (m *playedMeter) Steady() time.Duration { return time.Hour }

// TestStartRatesKeepTheServersOwn checks that a receiver that requests a start rate never begins below the server's own
// start rate because of a low limit.
func TestStartRatesKeepTheServersOwn(t *testing.T) {
	s := &Subscriber{}
	s.SetLimits(signal.BitrateLimits{Start: 10e6}, 500e3, 2e6)
	if got := s.limits.Start; got != 2e6 {
		t.Errorf("the start rate became %d, expected the server's 2000000", got)
	}
}

// TestAnOlderAcknowledgementIsPassedOver checks that an old generation changes nothing.
func TestAnOlderAcknowledgementIsPassedOver(t *testing.T) {
	table := NewSlots()
	table.Want(published("body", 1, volumetric.KindVideo))
	table.Add(idleLines(volumetric.KindVideo, "1"))
	table.Assign()
	slot := table.ByMID("1")
	for _, test := range []struct {
		generation uint32
		known      bool
	}{{slot.Generation, true}, {slot.Generation - 1, true}, {slot.Generation + 1, false}} {
		_, known := table.Acknowledge(signal.SlotGeneration{MID: "1", Generation: test.generation})
		if known != test.known || slot.acknowledged != slot.Generation {
			t.Errorf("generation %d: known is %v and %d counts as acknowledged, expected %v and %d",
				test.generation, known, slot.acknowledged, test.known, slot.Generation)
		}
	}
}
