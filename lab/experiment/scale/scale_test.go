package scale

import (
	"testing"

	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/testbed"
)

func TestFiles(t *testing.T) {
	l, err := experiment.NewLibrary(Collection())
	if err != nil {
		t.Fatal(err)
	}
	e, err := l.Find("scale")
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Cells()) != 10 {
		t.Errorf("expected 5 sizes of room in 4 and in 1 tile, got %d cells", len(e.Cells()))
	}
}

func TestRoomErrors(t *testing.T) {
	for name, p := range map[string]room{
		"alone":    {Participants: 1, Tiles: 1, Mbps: 1, FPS: 1},
		"no tile":  {Participants: 2, Tiles: 0, Mbps: 1, FPS: 1},
		"no rate":  {Participants: 2, Tiles: 1, Mbps: 0, FPS: 1},
		"no frame": {Participants: 2, Tiles: 1, Mbps: 1, FPS: 0},
	} {
		if p.Validate() == nil {
			t.Errorf("%s: expected an error", name)
		}
	}
}

// TestWholeShare: three participants publish two frames each in the window, in one tile, and each frame arrives twice.
// Frames from before and after do not count.
func TestWholeShare(t *testing.T) {
	m := measured{frames: map[string]numbers{"a": {10, 12}, "b": {0, 2}, "c": {5, 7}}}
	arrival := func(participant string, number int64) testbed.Arrival {
		var a testbed.Arrival
		a.Track.TileRef = volumetric.TileRef{PublicationRef: volumetric.PublicationRef{Participant: participant}}
		a.Number = number
		return a
	}
	arrivals := []testbed.Arrival{
		arrival("a", 9), arrival("a", 10), arrival("a", 10), arrival("a", 11), arrival("a", 11), arrival("a", 12),
		arrival("b", 0), arrival("b", 0), arrival("b", 1), arrival("b", 1), arrival("c", 5),
	}
	if whole, known := m.whole(arrivals, 3, 1); !known || whole != 75 {
		t.Errorf("%g %%, %v; expected 9 of 12 frames", whole, known)
	}
	if _, known := new(measured).whole(nil, 3, 1); known {
		t.Error("a share of no frames is reported")
	}
}
