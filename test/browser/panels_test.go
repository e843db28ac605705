package browser

import (
	"math"
	"testing"
)

// beside has the places of faces and the right edges of the panels at the left, in pixels.
type beside struct {
	Faces, Panels []float64
	Width         float64
}

// TestPanels opens the panels at the edge of the picture: the people are beside the panels, all in the picture.
func TestPanels(t *testing.T) {
	tools(t)
	s := start(t, nil)
	v := begin(t, "panels.mjs", pageURL(s))
	var placed struct{ Free, Chat, Closed, Self beside }
	v.expect("placed", &placed)
	v.expect("done", nil)
	for name, at := range map[string]beside{"chat": placed.Chat, "show yourself": placed.Self} {
		if len(at.Faces) != 3 || len(at.Panels) != 1 {
			t.Fatalf("%s: %+v, expected three faces and a panel", name, at)
		}
		for _, face := range at.Faces {
			if face < at.Panels[0]+20 || face > at.Width-20 {
				t.Errorf("%s: a face is at %.0f, expected between the panel's edge at %.0f and %.0f", name, face,
					at.Panels[0], at.Width)
			}
		}
	}
	for i, face := range placed.Closed.Faces {
		if math.Abs(face-placed.Free.Faces[i]) > 2 {
			t.Errorf("a face is at %.0f after the panel was closed, expected at %.0f as before", face,
				placed.Free.Faces[i])
		}
	}
}
