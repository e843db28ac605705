package testbed

import (
	"testing"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestNumberOfRepairedFrames receives a frame after the frames that follow it.
func TestNumberOfRepairedFrames(t *testing.T) {
	load := Load{Name: "body", Tiles: 1, Qualities: 1, FrameBytes: 500, Rate: 30}
	factory := newFrameFactory(load, 1)
	ref := volumetric.TileRef{PublicationRef: volumetric.PublicationRef{Participant: "alice", Publication: load.Name}}
	p := &Peer{tiles: map[volumetric.TileRef]*Reception{}}
	for _, number := range []uint32{5, 7, 6} {
		p.take(client.Frame{Track: volumetric.TrackRef{TileRef: ref}, Number: int64(number),
			Data: factory.frame(number, 0, 0)})
	}
	if r := p.Tile(ref); r.Frames != 3 || r.Corrupt != 0 || r.Number != 7 {
		t.Errorf("%d frames, %d of them differ, and the number is %d, expected 3, 0 and 7",
			r.Frames, r.Corrupt, r.Number)
	}
}
