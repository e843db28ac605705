package extrinsics

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/capture/board"
	"github.com/volsfu/volsfu/pkg/capture/board/boardtest"
	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/test/race"
)

// studio is a rig of cameras around a place, with the true motions from the first camera to each.
type studio struct {
	board   board.Board
	cameras []depth.Camera
	truth   []depth.Pose
	places  []depth.Pose // of the board, in the first camera's coordinates
}

// newStudio returns cameras on a circle of 1.2 m around the place of the board, and places of the board that all see.
func newStudio(t testing.TB, cameras, shots int, apart float64) studio {
	t.Helper()
	b, err := board.New(9, 6, 0.05)
	if err != nil {
		t.Fatal(err)
	}
	s := studio{board: b}
	const away = 1.2
	for i := range cameras {
		s.cameras = append(s.cameras, depth.Camera{Name: fmt.Sprintf("camera%d", i), Width: 640, Height: 480,
			FX: 470 + float64(5*i), FY: 472, CX: 318, CY: 243, Unit: 0.001,
			Distortion: depth.Distortion{Model: depth.BrownConrady,
				Coefficients: [8]float64{0.07, -0.1, 0.001, -0.0005}}})
		turn := boardtest.Turned([3]float64{}, apart*float64(i), 0.03*float64(i), -0.02*float64(i))
		// The middle is at (0, 0, away) for every camera.
		at := turn.Apply([3]float64{0, 0, away})
		turn.Translation = [3]float64{-at[0], -at[1], away - at[2]}
		s.truth = append(s.truth, turn)
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range shots {
		value := func(scale float64) float64 { return scale * (2*random.Float64() - 1) }
		middle := apart * float64(cameras-1) / 2
		s.places = append(s.places, boardtest.Turned([3]float64{value(0.15), value(0.12), away + value(0.15)},
			-middle+value(0.35), value(0.4), value(0.6)))
	}
	return s
}

// views returns exact views, with noise in pixels.
func (s *studio) views(noise float64) []View {
	random := rand.New(rand.NewPCG(5, 6))
	var views []View
	for shot, place := range s.places {
		for i := range s.cameras {
			v := View{Camera: i, Shot: shot}
			for row := range s.board.Rows - 1 {
				for column := range s.board.Columns - 1 {
					on := s.board.At(column, row)
					at := s.truth[i].Apply(place.Apply(on))
					u, w, ok := s.cameras[i].Project(at[0]/at[2], at[1]/at[2])
					if ok && at[2] > 0 && u >= 0 && w >= 0 && u < 640 && w < 480 {
						u, w = u+noise*random.NormFloat64(), w+noise*random.NormFloat64()
						v.Sights = append(v.Sights, Sight{on, u, w})
					}
				}
			}
			views = append(views, v)
		}
	}
	return views
}

// off returns the greatest errors of the cameras' positions in metres and of their rotations in radians, relative to
// the first camera.
func (s *studio) off(result []Camera) (position, turn float64) {
	for i, c := range result {
		// From the camera to the first camera, both with y down.
		got := vision.After(result[0].Pose.Inverse().After(c.Pose)).After(vision)
		want := s.truth[i].Inverse()
		position = max(position, distance(got.Translation, want.Translation))
		turn = max(turn, angle(got.After(want.Inverse())))
	}
	return position, turn
}

func TestSolveExactViews(t *testing.T) {
	s := newStudio(t, 4, 8, 0.5)
	result, err := Solve(s.cameras, s.views(0), DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	if position, turn := s.off(result); position > 1e-6 || turn > 1e-6 {
		t.Errorf("%g m and %g rad off", position, turn)
	}
	if result[0].Pose.Apply([3]float64{1, 2, 3}) != [3]float64{1, 2, 3} {
		t.Errorf("the first camera is at %+v, expected at the origin", result[0].Pose)
	}
}

// TestDeviations compares the stated deviations with the errors for many kinds of noise.
func TestDeviations(t *testing.T) {
	s := newStudio(t, 3, 10, 0.6)
	result, err := Solve(s.cameras, s.views(0.3), DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	position, turn := s.off(result)
	for _, c := range result[1:] {
		if c.Position < 1e-4 || c.Position > 5e-3 || math.Abs(c.Error-0.42) > 0.06 {
			t.Errorf("%s: error %.3f px, expected 0.3 px in two directions; deviation %g m", c.Name, c.Error,
				c.Position)
		}
	}
	if position > 4*result[2].Position || turn > 4*result[2].Angle {
		t.Errorf("%g m and %g rad off, with deviations of %g m and %g rad", position, turn, result[2].Position,
			result[2].Angle)
	}
}

// TestRendered finds the board in rendered pictures, with noise, blur and a person in front, and computes the poses: at
// most 1 mm and 0.1° off.
func TestRendered(t *testing.T) {
	race.SkipSequential(t)
	s := newStudio(t, 2, 6, 0.7)
	detector := board.NewDetector(s.board)
	var views []View
	for shot, place := range s.places {
		for i := range s.cameras {
			picture := boardtest.Shot{Board: s.board, Camera: s.cameras[i], Place: s.truth[i].After(place), Blur: 0.7,
				Noise: 3, Seed: uint64(10*shot + i)}
			if shot%2 == 1 {
				picture.Hidden = func(u, v float64) bool { return math.Hypot(u-300, v-300) < 45 }
			}
			v := View{Camera: i, Shot: shot}
			for _, c := range detector.Find(picture.Picture()) {
				v.Sights = append(v.Sights, Sight{s.board.At(c.Column, c.Row), c.U, c.V})
			}
			views = append(views, v)
		}
	}
	result, err := Solve(s.cameras, views, DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	position, turn := s.off(result)
	t.Logf("%.2f mm and %.3f° off; %+v", 1000*position, turn*180/math.Pi, result[1])
	if position > 1e-3 || turn > 0.1*math.Pi/180 {
		t.Errorf("%.2f mm and %.3f° off, expected at most 1 mm and 0.1°", 1000*position, turn*180/math.Pi)
	}
}

// TestWrongShot moves the board between the pictures of one shot: the shot is dropped.
func TestWrongShot(t *testing.T) {
	s := newStudio(t, 3, 8, 0.5)
	views := s.views(0.05)
	for i := range views {
		if views[i].Shot == 3 && views[i].Camera == 2 {
			for k := range views[i].Sights {
				views[i].Sights[k].U += 6
			}
		}
	}
	result, err := Solve(s.cameras, views, DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	position, turn := s.off(result)
	if result[2].Dropped != 1 || position > 1e-3 || turn > 0.1*math.Pi/180 {
		t.Errorf("%d shots dropped; %g m and %g rad off", result[2].Dropped, position, turn)
	}
}

// TestBoardAsOrigin lays the board of the first shot on the floor.
func TestBoardAsOrigin(t *testing.T) {
	s := newStudio(t, 2, 6, 0.4)
	config := DefaultConfig()
	config.Origin = Board
	result, err := Solve(s.cameras, s.views(0), config)
	if err != nil {
		t.Fatal(err)
	}
	// The point 0.1 m in front of the board's middle is 0.1 m above the floor, its right end is at positive x.
	for _, test := range []struct{ on, want [3]float64 }{
		{[3]float64{0, 0, -0.1}, [3]float64{0, 0.1, 0}}, {[3]float64{0.2, 0, 0}, [3]float64{0.2, 0, 0}},
		{[3]float64{0, 0.2, 0}, [3]float64{0, 0, 0.2}},
	} {
		for i, c := range result {
			seen := vision.Apply(s.truth[i].Apply(s.places[0].Apply(test.on)))
			if got := c.Pose.Apply(seen); distance(got, test.want) > 1e-5 {
				t.Errorf("%s: board point %v is at %v, expected %v", c.Name, test.on, got, test.want)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	s := newStudio(t, 3, 6, 0.5)
	alone := func(keep func(View) bool) []View {
		var kept []View
		for _, v := range s.views(0.05) {
			if keep(v) {
				kept = append(kept, v)
			}
		}
		return kept
	}
	scaled := s.views(0.05)
	for _, v := range scaled {
		for k := range v.Sights { // a board that is not square
			v.Sights[k].Board[0] *= 1.15
		}
	}
	for name, test := range map[string]struct {
		views []View
		err   error
		says  string
	}{
		"nothing": {nil, ErrViews, `camera "camera0" sees the board in 0 shots, expected at least 3`},
		"one blind": {alone(func(v View) bool { return v.Camera != 1 || v.Shot < 2 }), ErrViews,
			`"camera1" sees the board in 2 shots`},
		"never together": {alone(func(v View) bool { return (v.Camera == 2) == (v.Shot >= 3) }), ErrUnrelated,
			`"camera2" and "camera0" never see the board at the same time`},
		"bent board": {scaled, ErrInaccurate, "px off on average, expected at most 1 px"},
		"noise":      {s.views(8), ErrInaccurate, "px off on average"},
	} {
		if _, err := Solve(s.cameras, test.views, DefaultConfig()); !errors.Is(err, test.err) ||
			!strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v, expected %q", name, err, test.says)
		}
	}
	config := DefaultConfig()
	config.MaxPosition = 1e-6
	if _, err := Solve(s.cameras, s.views(0.2), config); !errors.Is(err, ErrInaccurate) ||
		!strings.Contains(err.Error(), "is known to") {
		t.Errorf("uncertain position: %v", err)
	}
}
