package virtual

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseRig(t *testing.T) {
	r, err := ParseRig([]byte(`
seed: 7
cameras:
  - {name: a, width: 640, height: 576, fx: 500, fy: 510, cx: 320, cy: 288, position: [1, 2, 3]}
  - width: 320
    height: 240
    field_of_view: 90
    position: [0, 1, 2]
    look_at: [0, 1, 0]
    near_m: 0.5
    far_m: 6
    depth_unit_m: 0.001
    noise: {white_mm: 1, growing_mm: 2, dropped_edges: 0.25, flying_pixels: 0.5}
`))
	if err != nil {
		t.Fatal(err)
	}
	a, b := r.Cameras[0], r.Cameras[1]
	if r.Seed != 7 || a.Name != "a" || a.FX != 500 || a.FY != 510 || a.CX != 319.5 || a.CY != 287.5 ||
		a.Unit != defaultUnit || a.Near != defaultNear || a.Far != defaultFar || a.Noise != (Noise{}) ||
		a.Pose.Translation != [3]float64{1, 2, 3} {
		t.Errorf("first camera %+v", a)
	}
	if b.Name != "camera2" || math.Abs(b.FX-160) > 1e-9 || b.FY != b.FX || b.CX != 159.5 || b.Unit != 0.001 ||
		b.Near != 0.5 || b.Far != 6 || b.Noise != (Noise{1, 2, 0.25, 0.5}) {
		t.Errorf("second camera %+v", b)
	}
	if ahead := b.Pose.Apply([3]float64{0, 0, -2}); ahead != [3]float64{0, 1, 0} {
		t.Errorf("the second camera looks at %v", ahead)
	}
}

// TestLookAt checks that cameras look at the place with the top up.
func TestLookAt(t *testing.T) {
	for _, position := range [][3]float64{{2, 1, 0}, {-1, 0.5, -1}, {0, 3, 0}, {0, -3, 0}, {0.1, 2, 1.9}} {
		r, err := ParseRig(fmt.Appendf(nil, "cameras: [{width: 4, height: 4, field_of_view: 60, position: "+
			"[%g, %g, %g], look_at: [0, 0.5, 0]}]", position[0], position[1], position[2]))
		if err != nil {
			t.Fatal(err)
		}
		pose := r.Cameras[0].Pose
		away := length(minus(position, [3]float64{0, 0.5, 0}))
		if at := pose.Apply([3]float64{0, 0, -away}); length(minus(at, [3]float64{0, 0.5, 0})) > 1e-9 {
			t.Errorf("from %v: the middle of the image is at %v", position, at)
		}
		if up := minus(pose.Apply([3]float64{0, 1, 0}), position); up[1] < -1e-9 {
			t.Errorf("from %v: up is %v", position, up)
		}
	}
}

func TestParseRigErrors(t *testing.T) {
	const lens = "width: 640, height: 576, field_of_view: 60, position: [0, 0, 0]"
	many := strings.Repeat("{"+lens+"},", 17)
	tests := []struct{ text, says string }{
		{"", "0 cameras, expected 1 to 16"},
		{"cameras: []", "0 cameras, expected 1 to 16"},
		{"cameras: [" + many + "]", "17 cameras, expected 1 to 16"},
		{"camera: []", "field camera not found"},
		{"cameras: [{" + lens + ", fov: 60}]", "field fov not found"},
		{"cameras: [{" + lens + ", noise: {white: 1}}]", "field white not found"},
		{"cameras: [{" + lens + "}]\n---\n", "expected one document"},
		{"cameras: 5", "cannot unmarshal"},
		{"cameras: [{name: a, " + lens + "}, {name: a, " + lens + "}]", `two cameras have the name "a"`},
		{"cameras: [{width: 0, height: 5, field_of_view: 60, position: [0, 0, 0]}]",
			`"camera1": width × height is 0 × 5`},
		{"cameras: [{width: 4096, height: 4096, field_of_view: 60, position: [0, 0, 0]}]", "at most 4194304 pixels"},
		{"cameras: [{width: 9223372036854775807, height: 2, field_of_view: 60, position: [0, 0, 0]}]",
			"at most 4194304"},
		{"cameras: [" + strings.Repeat("{width: 2048, height: 2048, field_of_view: 60, position: [0, 0, 0]},", 5) + "]",
			"at most 16777216 together"},
		{"cameras: [{width: 64, height: 48, position: [0, 0, 0]}]", "expected fx and fy in pixels, or field_of_view"},
		{"cameras: [{width: 64, height: 48, fx: 1, position: [0, 0, 0]}]", "expected fx and fy in pixels"},
		{"cameras: [{width: 64, height: 48, fx: .nan, fy: 5, position: [0, 0, 0]}]", "focal lengths are NaN"},
		{"cameras: [{width: 64, height: 48, fx: 5, fy: 5, cx: .inf, position: [0, 0, 0]}]", "principal point"},
		{"cameras: [{" + lens + ", fx: 5}]", "got both"},
		{"cameras: [{width: 64, height: 48, field_of_view: .nan, position: [0, 0, 0]}]", "field_of_view is NaN"},
		{"cameras: [{width: 64, height: 48, field_of_view: 60}]", "expected a matrix, or a position of 3 numbers"},
		{"cameras: [{width: 64, height: 48, field_of_view: 60, position: [0, .inf, 0]}]", "position is"},
		{"cameras: [{" + lens + ", quaternion: [0, 0, 0, 0]}]", "expected a quaternion of length 1"},
		{"cameras: [{" + lens + ", look_at: [0, 0, 0]}]", "expected two places"},
		{"cameras: [{" + lens + ", look_at: [0, .nan, 0]}]", "expected two places"},
		{"cameras: [{" + lens + ", look_at: [0, 1]}]", "expected look_at and position of 3 numbers"},
		{"cameras: [{" + lens + ", look_at: [0, 0, 1], quaternion: [0, 0, 0, 1]}]", "without matrix and quaternion"},
		{"cameras: [{" + lens + ", near_m: 2, far_m: 1}]", "range is 2 to 1 m"},
		{"cameras: [{" + lens + ", far_m: 7}]", "far_m <= 6.5535 m"},
		{"cameras: [{" + lens + ", depth_unit_m: 0}]", "unit of depth is 0"},
		{"cameras: [{" + lens + ", near_m: .nan}]", "range is NaN"},
		{"cameras: [{" + lens + ", noise: {white_mm: -1}}]", "white_mm is -1"},
		{"cameras: [{" + lens + ", noise: {growing_mm: .inf}}]", "growing_mm is +Inf"},
		{"cameras: [{" + lens + ", noise: {dropped_edges: 0.6, flying_pixels: 0.6}}]", "at most 1 together"},
		{strings.Repeat("#", maxFileBytes+1), "more than 1048576 bytes"},
	}
	for _, test := range tests {
		if _, err := ParseRig([]byte(test.text)); !errors.Is(err, ErrRig) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%.100s: %v, expected an error around ErrRig that says %q", test.text, err, test.says)
		}
	}
	if _, err := ReadRig(filepath.Join(t.TempDir(), "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent file: %v", err)
	}
}

// TestSamples parses the files that docs/capture.md names.
func TestSamples(t *testing.T) {
	files, err := filepath.Glob("../../../docs/cameras/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("sample files: %v, %v", files, err)
	}
	for _, file := range files {
		if _, err := ReadRig(file); err != nil {
			t.Error(err)
		}
	}
}

func FuzzParseRig(f *testing.F) {
	f.Add("cameras: [{width: 64, height: 48, field_of_view: 60, position: [0, 0, 1], look_at: [0, 0, 0]}]")
	f.Add(`{"cameras": [{"width": 64, "height": 48, "fx": 60, "fy": 60, "matrix": [[1,0,0,0],[0,1,0,0],[0,0,1,0]]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRig([]byte(text))
		if err != nil {
			if !errors.Is(err, ErrRig) {
				t.Errorf("%v, expected an error around ErrRig", err)
			}
			return
		}
		for _, c := range r.Cameras {
			if err := c.Validate(); err != nil {
				t.Error(err)
			}
		}
	})
}
