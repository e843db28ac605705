package board_test

import (
	"encoding/xml"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/capture/board"
	"github.com/volsfu/volsfu/pkg/capture/board/boardtest"
	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/test/race"
)

// camera is a depth camera of 640 × 480 pixels and 67°, with the lens of a real one.
var camera = depth.Camera{Width: 640, Height: 480, FX: 480, FY: 482, CX: 322, CY: 238, Unit: 0.001,
	Distortion: depth.Distortion{Model: depth.BrownConrady,
		Coefficients: [8]float64{0.08, -0.12, 0.001, -0.0007, 0.03}}}

// turned places a board in front of the camera.
func turned(at [3]float64, yaw, pitch, roll float64) depth.Pose {
	return boardtest.Turned(at, yaw, pitch, roll)
}

func usual(t testing.TB) board.Board {
	t.Helper()
	b, err := board.New(9, 6, 0.06)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// errorsOf compares found corners with their true places, and returns the root mean square and the greatest distance in
// pixels.
func errorsOf(t *testing.T, s *boardtest.Shot, corners []board.Corner) (rms, most float64) {
	t.Helper()
	sum := 0.0
	for _, c := range corners {
		at := s.Place.Apply(s.Board.At(c.Column, c.Row))
		u, v, ok := s.Camera.Project(at[0]/at[2], at[1]/at[2])
		off := math.Hypot(c.U-u, c.V-v)
		if !ok {
			t.Fatalf("corner %d, %d is outside of the picture", c.Column, c.Row)
		}
		sum += off * off
		most = max(most, off)
	}
	return math.Sqrt(sum / float64(len(corners))), most
}

func TestFind(t *testing.T) {
	race.SkipSequential(t)
	const degree = math.Pi / 180
	tests := map[string]struct {
		shot  boardtest.Shot
		least int     // corners
		rms   float64 // pixels
	}{
		"facing": {boardtest.Shot{Place: turned([3]float64{0, 0, 1}, 0, 0, 0)}, 40, 0.1},
		"noise":  {boardtest.Shot{Place: turned([3]float64{0.05, 0, 1}, 0.2, 0, 0), Noise: 6}, 40, 0.08},
		"blur": {boardtest.Shot{Place: turned([3]float64{0.05, 0, 0.8}, 0.2, 0, 0), Blur: 2, Noise: 3}, 40,
			0.1},
		"perspective": {boardtest.Shot{Place: turned([3]float64{0, 0, 0.8}, 50*degree, 10*degree, 0), Noise: 3}, 40,
			0.08},
		"turned":      {boardtest.Shot{Place: turned([3]float64{0, 0, 1}, 0.3, 0.3, 130*degree), Noise: 3}, 40, 0.08},
		"upside down": {boardtest.Shot{Place: turned([3]float64{0, 0, 1}, 0.1, 0.2, math.Pi), Noise: 3}, 40, 0.08},
		"far": {boardtest.Shot{Place: turned([3]float64{0.2, 0.1, 2.2}, 0.3, 0.2, 0.4), Noise: 2,
			Blur: 0.5}, 36, 0.12},
		"half hidden": {boardtest.Shot{Place: turned([3]float64{0, 0, 1}, 0.2, 0.2, 0.1), Noise: 3,
			Hidden: func(u, _ float64) bool { return u > 340 }}, 20, 0.08},
		"hand in front": {boardtest.Shot{Place: turned([3]float64{0, 0, 1}, 0.2, 0.2, 0.1), Noise: 3,
			Hidden: func(u, v float64) bool { return math.Hypot(u-330, v-260) < 30 }}, 30, 0.08},
		"partly outside": {boardtest.Shot{Place: turned([3]float64{0.45, 0.1, 0.8}, 0.2, 0.2, 0.1), Noise: 3}, 12,
			0.08},
	}
	for name, test := range tests {
		test.shot.Board, test.shot.Camera, test.shot.Seed = usual(t), camera, 7
		corners := board.NewDetector(test.shot.Board).Find(test.shot.Picture())
		if len(corners) < test.least {
			t.Errorf("%s: %d corners, expected at least %d", name, len(corners), test.least)
			continue
		}
		rms, most := errorsOf(t, &test.shot, corners)
		t.Logf("%s: %d corners, %.3f px, at most %.3f px", name, len(corners), rms, most)
		if rms > test.rms || most > 5*test.rms {
			t.Errorf("%s: corners are %.3f px off, one of them %.3f px, expected %g px", name, rms, most, test.rms)
		}
	}
}

// TestFindNothing searches where there is no board, another board, or a mirror.
func TestFindNothing(t *testing.T) {
	own := usual(t)
	other, err := board.New(10, 7, 0.06)
	if err != nil {
		t.Fatal(err)
	}
	place := boardtest.Turned([3]float64{0, 0, 1.1}, 0.2, 0.1, 0)
	shot := boardtest.Shot{Board: other, Camera: camera, Place: place, Noise: 3}
	mirror := boardtest.Shot{Board: own, Camera: camera, Place: place, Noise: 3}
	reflected := mirror.Picture()
	for v := range reflected.Height {
		row := reflected.Pixels[v*reflected.Width:][:reflected.Width]
		for u := range len(row) / 2 {
			row[u], row[len(row)-1-u] = row[len(row)-1-u], row[u]
		}
	}
	empty := boardtest.Shot{Board: own, Camera: camera, Place: turned([3]float64{0, 0, -1}, 0, 0, 0), Noise: 8}
	detector := board.NewDetector(own)
	for name, picture := range map[string]*board.Gray{
		"another board": shot.Picture(), "mirror": reflected, "empty room": empty.Picture(),
		"tiny": board.NewGray(3, 2), "black": board.NewGray(640, 480),
	} {
		if corners := detector.Find(picture); len(corners) > 0 {
			t.Errorf("%s: found %d corners", name, len(corners))
		}
	}
}

func TestInvalidBoards(t *testing.T) {
	for _, test := range []struct {
		columns, rows int
		square        float64
		says          string
	}{
		{4, 6, 0.06, "4 × 6 squares, expected 5 to 20"}, {9, 21, 0.06, "9 × 21 squares"},
		{9, 6, 0, "squares of 0 m, expected 0.005 to 1 m"}, {9, 6, math.NaN(), "NaN"}, {9, 6, 60, "squares of 60 m"},
	} {
		if _, err := board.New(test.columns, test.rows, test.square); !errors.Is(err, board.ErrBoard) ||
			!strings.Contains(err.Error(), test.says) {
			t.Errorf("%d × %d of %g m: %v, expected %q", test.columns, test.rows, test.square, err, test.says)
		}
	}
}

// FuzzFind searches random pictures: corners are on the board and inside of the picture.
func FuzzFind(f *testing.F) {
	b, err := board.New(5, 5, 0.1)
	if err != nil {
		f.Fatal(err)
	}
	shot := boardtest.Shot{Board: b, Place: boardtest.Turned([3]float64{0, 0, 1}, 0.1, 0, 0), Camera: depth.Camera{
		Width: 128, Height: 104, FX: 150, FY: 150, CX: 64, CY: 52, Unit: 0.001}}
	seed := make([]byte, 0, 128*104)
	for _, p := range shot.Picture().Pixels {
		seed = append(seed, byte(p))
	}
	f.Add(seed)
	f.Add([]byte("chess"))
	f.Fuzz(func(t *testing.T, data []byte) {
		g := board.NewGray(128, 104)
		for i := range g.Pixels {
			if len(data) > 0 {
				g.Pixels[i] = float32(data[i%len(data)])
			}
		}
		for _, c := range board.NewDetector(b).Find(g) {
			if c.Column < 0 || c.Row < 0 || c.Column > 3 || c.Row > 3 ||
				!(c.U >= 0 && c.V >= 0 && c.U < 128 && c.V < 104) {
				t.Errorf("corner %+v", c)
			}
		}
	})
}

func BenchmarkFind(b *testing.B) {
	shot := boardtest.Shot{Board: usual(b), Camera: camera, Place: turned([3]float64{0, 0, 1}, 0.2, 0.2, 0), Noise: 3}
	picture := shot.Picture()
	detector := board.NewDetector(shot.Board)
	for b.Loop() {
		if corners := detector.Find(picture); len(corners) != 40 {
			b.Fatalf("%d corners", len(corners))
		}
	}
}

// TestWriteSVG compares the printed squares and dots with the board.
func TestWriteSVG(t *testing.T) {
	var out strings.Builder
	b := usual(t)
	if err := b.WriteSVG(&out); err != nil {
		t.Fatal(err)
	}
	var image struct {
		Width   string `xml:"width,attr"`
		Squares []struct {
			X float64 `xml:"x,attr"`
			Y float64 `xml:"y,attr"`
		} `xml:"rect"`
		Dots []struct {
			X    float64 `xml:"cx,attr"`
			Y    float64 `xml:"cy,attr"`
			Fill string  `xml:"fill,attr"`
		} `xml:"circle"`
	}
	if err := xml.Unmarshal([]byte(out.String()), &image); err != nil {
		t.Fatal(err)
	}
	if image.Width != "600mm" || len(image.Squares) != 1+9*6/2 {
		t.Errorf("%s wide, %d black squares", image.Width, len(image.Squares)-1)
	}
	place := func(x, y float64) (float64, float64) { return (x - 4.5) * b.Square, (y - 3) * b.Square }
	for _, s := range image.Squares[1:] {
		if white, inside := b.White(place(s.X+0.1, s.Y+0.1)); white || !inside {
			t.Errorf("square at %g, %g is white", s.X, s.Y)
		}
	}
	for _, dot := range image.Dots {
		if white, _ := b.White(place(dot.X, dot.Y)); white != (dot.Fill == "white") {
			t.Errorf("dot at %g, %g is %s", dot.X, dot.Y, dot.Fill)
		}
	}
}
