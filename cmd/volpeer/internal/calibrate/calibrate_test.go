package calibrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/capture/board"
	"github.com/volsfu/volsfu/pkg/capture/board/boardtest"
	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/capture/extrinsics"
)

const intrinsics = `{"width": 400, "height": 300, "fx": 330, "fy": 330, "cx": 200.5, "cy": 150.5,
	"depth_unit_m": 0.001}`

// record writes recordings of two cameras, right 0.8 rad around the board from left, into a folder, and returns the
// motion from left to right, both with y down.
func record(t *testing.T, dir string) depth.Pose {
	t.Helper()
	b, err := board.New(9, 6, 0.06)
	if err != nil {
		t.Fatal(err)
	}
	// Intrinsics count from the corner of the first pixel, cameras from its middle.
	camera := depth.Camera{Width: 400, Height: 300, FX: 330, FY: 330, CX: 200, CY: 150, Unit: 0.001}
	toRight := boardtest.Turned([3]float64{}, 0.8, 0.05, 0)
	at := toRight.Apply([3]float64{0, 0, 1.1})
	toRight.Translation = [3]float64{-at[0], -at[1], 1.1 - at[2]}
	for name, motion := range map[string]depth.Pose{"left": {}, "right": toRight} {
		folder := filepath.Join(dir, name)
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "intrinsics.json"), []byte(intrinsics), 0o600); err != nil {
			t.Fatal(err)
		}
		for i, place := range []depth.Pose{
			boardtest.Turned([3]float64{0, 0, 1.1}, -0.4, 0, 0),
			boardtest.Turned([3]float64{0.08, 0.05, 1.05}, -0.2, 0.4, 0.2),
			boardtest.Turned([3]float64{-0.08, 0.02, 1.15}, -0.6, -0.3, -0.2),
			boardtest.Turned([3]float64{0, -0.06, 1}, -0.3, 0.1, 0.7),
		} {
			shot := boardtest.Shot{Board: b, Camera: camera, Place: motion.After(place), Blur: 0.6, Noise: 2,
				Seed: uint64(i)}
			picture := shot.Picture()
			colors, depths := image.NewGray(image.Rect(0, 0, 400, 300)), image.NewGray16(image.Rect(0, 0, 400, 300))
			for p, value := range picture.Pixels {
				colors.Pix[p] = uint8(value)
				z, ok := shot.Depth(float64(p%400), float64(p/400))
				if !ok {
					z = 2
				}
				depths.SetGray16(p%400, p/400, color.Gray16{Y: uint16(1000 * z)})
			}
			for kind, m := range map[string]image.Image{"color": colors, "depth": depths} {
				var out bytes.Buffer
				if err := png.Encode(&out, m); err != nil {
					t.Fatal(err)
				}
				name := filepath.Join(folder, fmt.Sprintf("%s_%d.png", kind, i))
				if err := os.WriteFile(name, out.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return toRight
}

// run runs volpeer calibrate.
func run(t *testing.T, arguments ...string) (out, console string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := Command()
	cmd.SetArgs(arguments)
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SilenceUsage = true
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

// TestCalibrate calibrates two recordings and reads the file as --calibration does.
func TestCalibrate(t *testing.T) {
	dir := t.TempDir()
	toRight := record(t, dir)
	source := "rgbd:" + filepath.Join(dir, "left") + ",rgbd:" + filepath.Join(dir, "right")
	file := filepath.Join(dir, "rig.yaml")
	out, console, err := run(t, "--source", source, "--square", "0.06", "--moving", "--output", file, "--json")
	if err != nil {
		t.Fatalf("%v\n%s", err, console)
	}
	var result Result
	if err := json.Unmarshal([]byte(out), &result); err != nil {
		t.Fatal(err)
	}
	if len(result.Cameras) != 2 || result.Shots != 4 || result.Cameras[1].Name != "right" ||
		result.Cameras[1].Pixels > 0.2 {
		t.Errorf("got %+v", result)
	}
	if !strings.Contains(console, "shot 4: left") || !strings.Contains(console, "camera right: 4 shots (0 dropped)") {
		t.Errorf("printed %s", console)
	}
	c, err := depth.ReadCalibration(file)
	if err != nil {
		t.Fatal(err)
	}
	left, err := c.Pose("left")
	if err != nil {
		t.Fatal(err)
	}
	right, err := c.Pose("right")
	if err != nil {
		t.Fatal(err)
	}
	got := left.Inverse().After(right)
	want := depth.FromVision(toRight.Inverse())
	off := got.After(want.Inverse())
	q := off.Quaternion()
	degrees := 2 * math.Acos(min(math.Abs(q[3]), 1)) * 180 / math.Pi
	millimetres := 0.0
	for axis, v := range got.Translation {
		millimetres = math.Hypot(millimetres, 1000*(v-want.Translation[axis]))
	}
	t.Logf("%.2f mm and %.3f° off", millimetres, degrees)
	if millimetres > 2 || degrees > 0.1 {
		t.Errorf("%.2f mm and %.3f° off, expected at most 2 mm and 0.1°", millimetres, degrees)
	}
	t.Run("wrong size of squares", func(t *testing.T) {
		_, _, err := run(t, "--source", source, "--square", "0.06", "--moving", "--board", "10x6")
		if !errors.Is(err, errNothing) {
			t.Errorf("got %v, expected %v", err, errNothing)
		}
	})
	t.Run("pictures that differ", func(t *testing.T) {
		if _, _, err := run(t, "--source", source, "--square", "0.06"); !errors.Is(err, errNothing) {
			t.Errorf("got %v, expected %v", err, errNothing)
		}
	})
	t.Run("one camera", func(t *testing.T) {
		one := "rgbd:" + filepath.Join(dir, "left")
		if _, _, err := run(t, "--source", one, "--square", "0.06", "--moving"); !errors.Is(err, errSource) {
			t.Errorf("got %v, expected %v", err, errSource)
		}
		out, _, err := run(t, "--source", one, "--square", "0.06", "--moving", "--origin", "board")
		if err != nil || !strings.Contains(out, `"left":`) {
			t.Errorf("got %v and %s", err, out)
		}
	})
}

func TestFlags(t *testing.T) {
	for _, test := range []struct {
		arguments []string
		says      string
	}{
		{nil, "--square: expected the edge of a square in metres"},
		{[]string{"--square", "30"}, "squares of 30 m, expected 0.005 to 1 m"},
		{[]string{"--square", "0.03", "--board", "9"}, `--board: expected COLUMNSxROWS, got "9"`},
		{[]string{"--square", "0.03", "--board", "3x9"}, "3 × 9 squares, expected 5 to 20"},
		{[]string{"--square", "0.03", "--origin", "sun"}, "--origin: expected camera or board"},
		{[]string{"--square", "0.03", "--shots", "2"}, "--shots: expected at least 3, got 2"},
		{[]string{"--square", "0.03", "--json"}, "--json: expected --output"},
		{[]string{"--square", "0.03", "--source", "synthetic"}, "expected depth cameras"},
		{[]string{"--square", "0.03", "--source", "rgbd:/nowhere"}, "/nowhere"},
	} {
		if _, _, err := run(t, test.arguments...); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%q: got %v, expected %q", test.arguments, err, test.says)
		}
	}
	file := filepath.Join(t.TempDir(), "board.svg")
	if _, _, err := run(t, "--square", "0.03", "--print", file); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(file); err != nil || !bytes.Contains(data, []byte(`width="300mm"`)) {
		t.Errorf("printed %.100s, %v", data, err)
	}
}

// TestAlbum offers a board that moves, rests, rests on, and rests elsewhere.
func TestAlbum(t *testing.T) {
	a := newAlbum([]depth.Camera{{Name: "one", Width: 640, Height: 480}, {Name: "two", Width: 640, Height: 480}}, false)
	at := func(u float64, corners int) []extrinsics.View {
		views := []extrinsics.View{{Camera: 0}, {Camera: 1}}
		for i := range corners {
			sight := extrinsics.Sight{Board: [3]float64{float64(i)}, U: u, V: float64(i)}
			views[0].Sights = append(views[0].Sights, sight)
		}
		return views
	}
	for i, test := range []struct {
		views []extrinsics.View
		taken bool
	}{
		{at(100, 20), false}, // the first frame: it may be moving
		{at(110, 20), false}, {at(110.5, 20), true}, {at(110.6, 20), false}, {at(150, 20), false}, {at(150, 20), true},
		{at(110, 20), false}, {at(110, 20), false}, {at(300, 5), false}, {at(300, 5), false},
	} {
		if taken := a.offer(test.views); taken != test.taken {
			t.Errorf("frame %d: taken is %v", i, taken)
		}
	}
	if a.shots != 2 || len(a.views) != 2 || a.views[1].Shot != 1 {
		t.Errorf("%d shots, %+v", a.shots, a.views)
	}
}
