package subscriber

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// start is when virtual time begins.
var start = time.Unix(1_795_188_600, 0)

// playedMeter measures what the test says.
type playedMeter volumetric.Bitrate

// Rate implements Meter.
func (m *playedMeter) Rate() (volumetric.Bitrate, bool) { return volumetric.Bitrate(*m), *m > 0 }

// TestStartRatesKeepTheServersOwn: where the server takes nobody's word for much, who names a rate begins no lower
// than who names none.
func TestStartRatesKeepTheServersOwn(t *testing.T) {
	s := &Subscriber{}
	s.SetLimits(signal.BitrateLimits{Start: 10e6}, 500e3, 2e6)
	if got := s.limits.Start; got != 2e6 {
		t.Errorf("the start rate became %d, expected the server's 2000000", got)
	}
}

// TestAnOlderAcknowledgementIsPassedOver: a newer assignment is on its way to the client.
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
