package scale

import (
	"testing"

	"github.com/volsfu/volsfu/internal/lab/experiment"
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
