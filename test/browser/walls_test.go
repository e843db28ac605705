package browser

import (
	"math"
	"testing"
)

// TestWalls draws rasters of walls as the viewer does. Between neighbouring tiles of different qualities there is no
// gap, from any side, with full and with less detail. Between two frames the picture changes within the interval of
// frames, and at once to another surface.
func TestWalls(t *testing.T) {
	tools(t)
	s := start(t, nil)
	v := begin(t, "walls.mjs", pageURL(s))
	var seams struct {
		Views []struct {
			Light         bool
			Degrees       float64
			Pixels, Other int
		}
	}
	v.expect("seams", &seams)
	if len(seams.Views) == 0 {
		t.Error("nothing was drawn")
	}
	for _, view := range seams.Views {
		if view.Other > 0 || view.Pixels < 100_000 {
			t.Errorf("from %g°, light %v: %d of %d pixels have another colour than the wall", view.Degrees, view.Light,
				view.Other, view.Pixels)
		}
	}
	var frames struct{ Colors []float64 }
	v.expect("frames", &frames)
	want := []float64{200, 200, 150, 100, 40}
	for i, color := range frames.Colors {
		if i >= len(want) || math.Abs(color-want[i]) > 4 {
			t.Fatalf("the red of the wall is %v, expected %v", frames.Colors, want)
		}
	}
	v.expect("done", nil)
}
