package depth

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

const calibrationText = `
cameras:
  left:
    position: [1, 2, 3]
    quaternion: [0, 0.7071067811865476, 0, 0.7071067811865476] # a quarter to the left
  "048522074864": # a serial number
    matrix: [[0, 0, 1, 1], [0, 1, 0, 2], [-1, 0, 0, 3], [0, 0, 0, 1]]
  still: {position: [0, 0, 0.5]}
`

func TestParseCalibration(t *testing.T) {
	c, err := ParseCalibration([]byte(calibrationText))
	if err != nil {
		t.Fatal(err)
	}
	// A point one metre in front of the camera, at (0, 0, -1), is one metre to the left of the
	// camera in the world.
	for name, expected := range map[string][3]float64{"left": {0, 2, 3}, "048522074864": {0, 2, 3},
		"still": {0, 0, -0.5}} {
		pose, err := c.Pose(name)
		if err != nil {
			t.Fatal(err)
		}
		got := pose.Apply([3]float64{0, 0, -1})
		if math.Abs(got[0]-expected[0])+math.Abs(got[1]-expected[1])+math.Abs(got[2]-expected[2]) > 1e-9 {
			t.Errorf("%s: got %v, expected %v", name, got, expected)
		}
	}
	if _, err := c.Pose("right"); !errors.Is(err, ErrCalibration) || !strings.Contains(err.Error(), `"still"`) {
		t.Errorf("an unknown camera: %v", err)
	}
	if pose, err := (Calibration{}).Pose("right"); err != nil || pose != (Pose{}) {
		t.Errorf("no calibration: %v, %v", pose, err)
	}
	path := filepath.Join(t.TempDir(), "cameras.json")
	text := `{"axes": "vision", "cameras": {"right": {"matrix": [[1, 0, 0, 1], [0, 1, 0, 2], [0, 0, 1, 3]]}}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err = ReadCalibration(path); err != nil {
		t.Fatal(err)
	}
	pose, err := c.Pose("right")
	if got := pose.Apply([3]float64{0.5, 0, 0}); err != nil || got != [3]float64{1.5, -2, -3} {
		t.Errorf("axes of vision: got %v, %v", got, err)
	}
}

func TestParseCalibrationErrors(t *testing.T) {
	tests := map[string]string{
		"":            "EOF",
		"cameras: {}": "no cameras",
		"camera: {}":  "field camera not found",
		"axes: up\ncameras: {a: {position: [0,0,0]}}":                       `"up"`,
		"cameras: {a: {}}":                                                  `"a": expected a matrix`,
		"cameras: {a: {position: [0, 0]}}":                                  "3 numbers, got 2",
		"cameras: {a: {position: [0, 0, 0], quaternion: [1]}}":              "x, y, z, w, got 1",
		"cameras: {a: {position: [0,0,0], quaternion: [0,0,0,0]}}":          "length 1",
		"cameras: {a: {position: [0,0,.nan]}}":                              "position",
		"cameras: {a: {position: [0,0,1e6]}}":                               "position",
		"cameras: {a: {position: [0,0,0], matrix: [[1]]}}":                  "got both",
		"cameras: {a: {matrix: [[1]]}}":                                     "4 rows, got 1",
		"cameras: {a: {matrix: [[1],[2],[3]]}}":                             "row 1 has 1",
		"cameras: {a: {matrix: [[0,0,0,0],[0,0,0,0],[0,0,0,0]]}}":           "got zeros",
		"cameras: {a: {matrix: [[1,0,0,0],[0,1,0,0],[0,0,-1,0]]}}":          "orthogonal", // a mirror
		"cameras: {a: {matrix: [[2,0,0,0],[0,2,0,0],[0,0,2,0]]}}":           "orthogonal",
		"cameras: {a: {matrix: [[1,0,0,0],[1,0,0,0],[0,0,1,0]]}}":           "orthogonal",
		"cameras: {a: {matrix: [[1,0,0,0],[0,1,0,0],[0,0,1,0],[0,0,1,1]]}}": "row 4",
		"cameras: {a: {position: [0,0,0]}}\n---\ncameras: {}":               "one document",
		strings.Repeat(" ", maxCalibrationBytes+1):                          "bytes",
	}
	for text, says := range tests {
		if _, err := ParseCalibration(
			[]byte(text),
		); !errors.Is(err, ErrCalibration) ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%.80q: got %v, expected an error that says %q", text, err, says)
		}
	}
	if _, err := ReadCalibration("nowhere.yaml"); !errors.Is(err, ErrCalibration) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func FuzzParseCalibration(f *testing.F) {
	f.Add([]byte(calibrationText))
	f.Add([]byte(`{"axes": "vision", "cameras": {"right": {"matrix": [[1, 0, 0, 1], [0, 1, 0, 2], [0, 0, 1, 3]]}}}`))
	f.Add([]byte("cameras: &a {b: *a}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseCalibration(data)
		if err != nil {
			if !errors.Is(err, ErrCalibration) {
				t.Errorf("error without kind: %v", err)
			}
			return
		}
		for name, pose := range c.poses {
			if err := pose.Validate(); err != nil {
				t.Errorf("accepted %q: %v", name, err)
			}
			back := pose.Inverse().Apply(pose.Apply([3]float64{1, 2, 3}))
			if math.Abs(back[0]-1)+math.Abs(back[1]-2)+math.Abs(back[2]-3) > 1e-6 {
				t.Errorf("%q is not undone by its inverse: %v", name, back)
			}
		}
	})
}

func TestPoses(t *testing.T) {
	turn, _ := Rotation([4]float64{0.3, -0.2, 0.5, 0.9})
	a := Pose{Rotation: turn, Translation: [3]float64{1, -2, 3}}
	b := Pose{Translation: [3]float64{0.5, 0.25, 0}}
	v := [3]float64{0.1, 0.2, 0.3}
	for name, pair := range map[string][2][3]float64{
		"after":   {a.After(b).Apply(v), a.Apply(b.Apply(v))},
		"inverse": {a.Inverse().Apply(a.Apply(v)), v},
		"zero":    {Pose{}.Apply(v), v},
		"vision":  {FromVision(FromVision(a)).Apply(v), a.Apply(v)},
	} {
		for axis := range 3 {
			if math.Abs(pair[0][axis]-pair[1][axis]) > 1e-12 {
				t.Errorf("%s: %v, expected %v", name, pair[0], pair[1])
			}
		}
	}
}

func TestParseBackground(t *testing.T) {
	got, err := ParseBackground([]string{"range=0.5:2.5", "box=-1,0,-2:1,2,0.5", "static:a:b.png", "mask"})
	expected := Background{
		Near: 0.5, Far: 2.5, Box: volumetric.BoundingBox{Min: [3]float32{-1, 0, -2}, Max: [3]float32{1, 2, 0.5}},
		Static: true, Scene: "a:b.png", Mask: true,
	}
	if err != nil || got != expected {
		t.Errorf("got %+v, %v, expected %+v", got, err, expected)
	}
	if got, err := ParseBackground(
		[]string{"range=:2", "static"},
	); err != nil ||
		got != (Background{Far: 2, Static: true}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := ParseBackground(nil); err != nil || got != (Background{}) {
		t.Errorf("got %+v, %v", got, err)
	}
	for text, says := range map[string]string{
		"": "expected range", "green": "expected range", "range": "NEAR:FAR", "range=1": "NEAR:FAR",
		"range=a:2": `"a"`, "range=2:1": "near < far", "range=NaN:1": "near < far",
		"range=-1:1": "near < far", "box=1,2:3,4": "two corners", "box=0,0,0:0,0,0": "not empty",
		"box=1,1,1:0,2,2": "lower corner", "box=a,1,1:2,2,2": `"a"`, "static:": "expected range",
		"box=1,1,1:inf,2,2": "lower corner", "mask=1": "expected range",
	} {
		if _, err := ParseBackground(
			[]string{"range=0.1:9", text},
		); !errors.Is(err, ErrBackground) ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %v, expected an error that says %q", text, err, says)
		}
	}
}

func FuzzParseBackground(f *testing.F) {
	for _, text := range []string{"range=0.5:2.5", "box=-1,0,-2:1,2,0.5", "static:a", "mask", "range=1e-9:1e9"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, err := ParseBackground([]string{text})
		if err == nil {
			err = b.validate()
		}
		if err != nil && !errors.Is(err, ErrBackground) {
			t.Errorf("error without kind: %v", err)
		}
	})
}

func TestFormatCalibration(t *testing.T) {
	turn, _ := Rotation([4]float64{0.1, -0.4, 0.2, 0.9})
	poses := []Pose{{}, {Rotation: turn, Translation: [3]float64{1.25, -0.5, 2}}}
	names := []string{"left: \"1\"", "größe"}
	c, err := ParseCalibration(FormatCalibration(names, poses))
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		got, err := c.Pose(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range [][3]float64{{}, {1, 2, 3}} {
			a, b := got.Apply(at), poses[i].Apply(at)
			if math.Abs(a[0]-b[0])+math.Abs(a[1]-b[1])+math.Abs(a[2]-b[2]) > 1e-5 {
				t.Errorf("%s moves %v to %v, expected %v", name, at, a, b)
			}
		}
	}
}
