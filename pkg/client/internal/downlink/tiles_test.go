package downlink

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestALoopGoesOn plays a recording again and again, with the numbers and capture times of the first time. Its frames
// are delivered again. Only the first frames after an assignment may be taken for frames that came before.
func TestALoopGoesOn(t *testing.T) {
	t.Parallel()
	var ts tiles
	start := time.Unix(1_795_188_600, 0)
	for assignment := range 2 {
		loop := ts.assign(volumetric.TrackRef{}, nil)
		repeats := 0
		for i := range 300 {
			number := int64(1 + i%30)
			if loop.complete(number, start.Add(time.Duration(number)*time.Second/30), false) {
				repeats++
			}
		}
		if most := assignment * lateFrames; repeats > most {
			t.Errorf("assignment %d: %d frames are not delivered, expected at most %d", assignment, repeats, most)
		}
	}
}
