package frametimes

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/sfu/presence"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestRate has a publisher send the times of 20,000 frames in one second. A burst and the rate pass. The others are
// counted in the next message that is sent, and messages without a receiver are not sent.
func TestRate(t *testing.T) {
	const messages, frames = 100, 200
	body := subscriber.NewPublication("alice", volumetric.Publication{
		Name: "body", Tiles: make([]volumetric.Tile, 1), Qualities: make([]volumetric.QualityLevel, 1),
	})
	p := &presence.Presence{Identity: "alice", Publications: []*presence.Publication{{Publication: body}}}
	var s State
	passed, dropped := 0, 0
	for i := range messages {
		now := time.Unix(1_795_188_600, 0).Add(time.Duration(i) * time.Second / messages)
		m := s.Limit(now, p, &signal.FrameTimes{Tracks: []signal.TrackTimes{
			{Publication: "body", Frames: make([][]int64, frames)},
		}})
		for _, track := range m.Tracks {
			passed += len(track.Frames)
		}
		if i%2 > 0 {
			s.Sent()
			dropped += m.Dropped
		}
	}
	if passed > burst+maxRate || passed < maxRate || passed+dropped != messages*frames {
		t.Errorf("the times of %d of %d frames passed, %d were dropped; expected %d to %d and the others", passed,
			messages*frames, dropped, maxRate, burst+maxRate)
	}
}
