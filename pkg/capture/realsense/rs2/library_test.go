package rs2_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/capture/realsense/rs2"
	"github.com/volsfu/volsfu/pkg/capture/realsense/rstest"
	"github.com/volsfu/volsfu/pkg/foreign"
)

func TestLibraryIsAbsent(t *testing.T) {
	t.Setenv("VOLSFU_REALSENSE_LIBRARY", "")
	t.Setenv("LD_LIBRARY_PATH", "")
	if _, err := rs2.Load(""); err != nil { // the library may be installed
		if !errors.Is(err, rs2.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
		words := []string{"install", "VOLSFU_REALSENSE_LIBRARY"}
		if !foreign.Supported {
			words = []string{"built without support", "cgo"}
		}
		for _, word := range words {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("expected %q in: %v", word, err)
			}
		}
	}
	if !foreign.Supported {
		return
	}
	text := filepath.Join(t.TempDir(), "text.so")
	if err := os.WriteFile(text, []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{text, text + ".none"} {
		if _, err := rs2.Load(path); !errors.Is(err, rs2.ErrUnavailable) || !strings.Contains(err.Error(), path) {
			t.Errorf("got %v, expected %v that names %s", err, rs2.ErrUnavailable, path)
		}
		t.Setenv("VOLSFU_REALSENSE_LIBRARY", path)
		if _, err := rs2.Load(""); !errors.Is(err, rs2.ErrUnavailable) || !strings.Contains(err.Error(), path) {
			t.Errorf("got %v, expected %v that names %s", err, rs2.ErrUnavailable, path)
		}
	}
}

func TestLibraryOfAnotherVersion(t *testing.T) {
	tests := []struct {
		name string
		fake rstest.Fake
		says string // "" means success
	}{
		{"newer", rstest.Fake{Version: 29905}, ""},
		{"oldest", rstest.Fake{Version: 21600}, ""},
		{
			"too old",
			rstest.Fake{Version: 21302, Without: []string{"rs2_try_wait_for_frame"}},
			"2.13.2 and lacks rs2_try_wait_for_frame",
		},
		{"next major", rstest.Fake{Version: 30001}, "3.0.1, expected 2.16"},
		{
			"other numbers",
			rstest.Fake{Version: 26500, Shift: 1},
			`2.65.0 and has "UNKNOWN" where "Depth Units" is expected`,
		},
		{"another library", rstest.Fake{Without: rs2.Functions()}, "has no version"},
		{
			"no errors",
			rstest.Fake{Version: 25901, Without: []string{"rs2_free_error", "rs2_get_error_message"}},
			"lacks rs2_get_error_message, rs2_free_error",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			library, err := rs2.Load(test.fake.Build(t))
			if test.says != "" {
				if !errors.Is(err, rs2.ErrVersion) || !strings.Contains(err.Error(), test.says) {
					t.Errorf("got %v, expected %v that says %q", err, rs2.ErrVersion, test.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			context, err := library.NewContext()
			if err != nil {
				t.Fatal(err)
			}
			defer context.Close()
			if devices, err := context.Devices(); err != nil || len(devices) != 0 {
				t.Errorf("got devices %v, error %v", devices, err)
			}
		})
	}
}

func TestTheLibraryItself(t *testing.T) {
	library := rstest.Library(t)
	if v := library.Version(); v.Major != 2 || library.Path() == "" {
		t.Errorf("got version %v of %s", v, library.Path())
	}
	context, err := library.NewContext()
	if err != nil {
		t.Fatal(err)
	}
	defer context.Close()
	if _, err := context.Play(
		filepath.Join(t.TempDir(), "none.db3"),
	); !errors.Is(err, rs2.ErrCall) ||
		!strings.Contains(err.Error(), "none.db3") {
		t.Errorf("got %v, expected the library's own words in %v", err, rs2.ErrCall)
	}
}

// TestAlignment has a colour camera 50 mm to the right of the depth camera: a wall at 1.5 m moves
// to the left by 60 · 50 / 1500 = 2 pixels.
func TestAlignment(t *testing.T) {
	library := rstest.Library(t)
	lens := rs2.Intrinsics{Width: 64, Height: 48, PPX: 31.5, PPY: 23.5, FX: 60, FY: 60}
	camera, err := library.NewSoftwareCamera(rs2.SoftwareSettings{
		Serial: "1", FPS: 30, Depth: lens, Color: lens, DepthUnit: 0.001,
		ToColor: rs2.Extrinsics{Rotation: [9]float32{1, 0, 0, 0, 1, 0, 0, 0, 1}, Translation: [3]float32{-0.05, 0, 0}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer camera.Close()
	device, err := camera.Device()
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	if name, serial := device.Info(rs2.Name), device.Info(rs2.SerialNumber); name == "" || serial != "1" {
		t.Errorf("got name %q and serial number %q", name, serial)
	}
	set := rstest.Set(t, library, device, func(number int) error {
		depth, color := make([]uint16, 64*48), make([][3]uint8, 64*48)
		for i := range depth {
			if i%64 >= 32 { // a wall in the right half of the picture
				depth[i] = 1500
			}
		}
		return camera.Show(number, float64(number)*33, rs2.SystemTime, depth, color)
	})
	align, err := library.NewAlign(rs2.Color)
	if err != nil {
		t.Fatal(err)
	}
	defer align.Close()
	if err := align.Process(set); err != nil {
		t.Fatal(err)
	}
	aligned, err := align.Result()
	if err != nil || !aligned.Valid() {
		t.Fatalf("no aligned images, error %v", err)
	}
	defer aligned.Release()
	for i := range 2 {
		image, err := aligned.At(i)
		if err != nil {
			t.Fatal(err)
		}
		profile, err := image.Profile()
		if err != nil {
			t.Fatal(err)
		}
		picture, err := image.Picture()
		if err != nil {
			t.Fatal(err)
		}
		if profile.Stream == rs2.Depth {
			row := picture.Pixels[24*picture.Stride:]
			first := 0
			for first < 64 && row[2*first] == 0 && row[2*first+1] == 0 {
				first++
			}
			// the library maps pixels by their corners; rounding may move them by one
			if first != 29 && first != 30 {
				t.Errorf("the wall begins at pixel %d, expected 30", first)
			}
		}
		image.Release()
	}
}
