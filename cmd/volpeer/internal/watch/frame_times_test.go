package watch

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/decode"
	"github.com/volsfu/volsfu/internal/peer/render"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// stopwatch stores the reported times.
type stopwatch struct {
	decoded []int64
	shown   map[volumetric.TrackRef][]int64
}

func (s *stopwatch) FrameDecoded(f *client.Frame, began, done time.Time) {
	if !done.Before(began) {
		s.decoded = append(s.decoded, f.Number)
	}
}

func (s *stopwatch) FrameShown(track volumetric.TrackRef, number int64, began, done time.Time) {
	if !done.Before(began) {
		s.shown[track] = append(s.shown[track], number)
	}
}

// TestShownFramesAreTimed checks that a picture reports the tiles of the shown frame number, and no others.
func TestShownFramesAreTimed(t *testing.T) {
	screen, err := render.NewScreen(render.Config{Now: time.Now, Every: 1})
	if err != nil {
		t.Fatal(err)
	}
	watch := &stopwatch{shown: make(map[volumetric.TrackRef][]int64)}
	v := &viewer{timed: watch, screen: screen}
	ref := volumetric.PublicationRef{Participant: "ada", Publication: "body"}
	track := func(tile int) volumetric.TrackRef {
		return volumetric.TrackRef{TileRef: volumetric.TileRef{PublicationRef: ref, Tile: tile}}
	}
	now := time.Now()
	for number := range int64(4) {
		for tile := range 2 {
			if number == 2 && tile == 1 {
				continue
			}
			v.time(&decode.Result{Frame: client.Frame{Track: track(tile), Number: number}, Began: now, Decoded: now})
		}
	}
	screen.Show(ref.String(), render.Frame{Number: 2, Clouds: []*pointcloud.Cloud{{}}, Decoded: now})
	screen.Close()
	v.takeDrawn()
	if len(watch.decoded) != 7 {
		t.Errorf("%d frames were decoded, expected 7", len(watch.decoded))
	}
	if got := watch.shown[track(0)]; len(got) != 1 || got[0] != 2 || len(watch.shown[track(1)]) != 0 {
		t.Errorf("shown are %v, expected frame 2 of tile 0 alone", watch.shown)
	}
	if left := v.undrawn[ref]; len(left) != 2 || left[0].number != 3 {
		t.Errorf("%v may still be drawn, expected both tiles of frame 3", left)
	}
}
