package browser

import (
	"math"
	"testing"
)

// viewpoint is the position of the eye that a page reports.
type viewpoint struct {
	Position    [3]float64
	Orientation [4]float64
	FOV, Aspect float64
}

// TestImmersion watches in an emulated headset: the wearer stands at the position of the eye, the person is drawn for
// both eyes, the server receives the head's position and the frustum of both eyes, and the screen is as before once the
// headset is off.
func TestImmersion(t *testing.T) {
	tools(t)
	s := start(t, nil)
	publish(t, s, "ada")
	v := begin(t, "immersion.mjs", pageURL(s))
	var immersed struct {
		Seat, Stood, Moved viewpoint
		Points             int
	}
	v.expect("immersed", &immersed)
	seat, stood, moved := immersed.Seat, immersed.Stood, immersed.Moved
	if math.Hypot(stood.Position[0]-seat.Position[0], stood.Position[2]-seat.Position[2]) > 0.05 {
		t.Errorf("the wearer stands at %v, expected to stand where the eye was: %v", stood.Position, seat.Position)
	}
	if immersed.Points != 12000 {
		t.Errorf("%d points are drawn, expected 6000 for each eye", immersed.Points)
	}
	if off := math.Hypot(moved.Position[0]-stood.Position[0], moved.Position[2]-stood.Position[2]); math.Abs(off-
		0.5) > 0.02 {
		t.Errorf("the head moved by half a metre, the eye by %g", off)
	}
	if stood.FOV < 70 || stood.FOV > 130 || stood.Aspect < 0.5 || stood.Aspect > 2.5 {
		t.Errorf("the frustum of both eyes is said to be %g° high, %g times as wide", stood.FOV, stood.Aspect)
	}
	var back struct{ Seat, Back viewpoint }
	v.expect("back", &back)
	if math.Abs(back.Back.FOV-back.Seat.FOV) > 0.01 || math.Abs(back.Back.Position[2]-back.Seat.Position[2]) > 0.05 {
		t.Errorf("back on the screen the eye is %+v, expected %+v", back.Back, back.Seat)
	}
	v.expect("done", nil)
}
