package realsense

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/capture/realsense/rs2"
)

func TestParseSize(t *testing.T) {
	if w, h, err := ParseSize("848x480"); w != 848 || h != 480 || err != nil {
		t.Errorf("got %d, %d, %v", w, h, err)
	}
	for _, text := range []string{"", "848", "848x", "x480", "848x-1", "0x0", "848x480x3", "848 x 480"} {
		if _, _, err := ParseSize(text); !errors.Is(err, ErrConfig) {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

func TestParseFilters(t *testing.T) {
	f, err := ParseFilters([]string{"temporal=alpha:0.4/holes:3", "holes"})
	want := Filters{
		Temporal: Filter{true, []Setting{{rs2.FilterSmoothAlpha, 0.4}, {rs2.HolesFill, 3}}},
		Holes:    Filter{On: true},
	}
	if err != nil || !reflect.DeepEqual(f, want) {
		t.Errorf("got %+v, %v", f, err)
	}
	tests := []struct{ part, says string }{
		{"", "expected one of decimation"},
		{"median", "expected one of decimation"},
		{"spatial=", `no setting ""`},
		{"spatial=holes:1", `no setting "holes"`},
		{"decimation=magnitude:9", "expected 2 to 8"},
		{"decimation=magnitude:NaN", "expected 2 to 8"},
		{"decimation=magnitude", "expected 2 to 8"},
	}
	for _, test := range tests {
		if _, err := ParseFilters(
			[]string{test.part},
		); !errors.Is(err, ErrConfig) ||
			!strings.Contains(err.Error(), test.says) {
			t.Errorf("%q: got %v, expected it to say %q", test.part, err, test.says)
		}
	}
	if _, err := ParseFilters([]string{"holes", "holes"}); !errors.Is(err, ErrConfig) {
		t.Errorf("a filter twice: got %v", err)
	}
}

func FuzzParseFilters(f *testing.F) {
	f.Add("spatial=alpha:0.5/delta:20")
	f.Add("decimation=magnitude:2,holes")
	f.Fuzz(func(t *testing.T, text string) {
		filters, err := ParseFilters(strings.Split(text, ","))
		if err != nil {
			return
		}
		for _, filter := range []Filter{filters.Decimation, filters.Spatial, filters.Temporal, filters.Holes} {
			for _, setting := range filter.Settings {
				if !filter.On || !(setting.Value >= 0 && setting.Value <= 100) {
					t.Errorf("%q became %+v", text, filters)
				}
			}
		}
	})
}

func TestConfigErrors(t *testing.T) {
	tests := []func(*Config){
		func(c *Config) { c.Width = 0 },
		func(c *Config) { c.Height = 1 << 30 },
		func(c *Config) { c.FPS = 0 },
		func(c *Config) { c.Serials = []string{"1", "1"} },
		func(c *Config) { c.Serials = []string{""} },
		func(c *Config) { c.Serials = make([]string, depth.MaxCameras+1) },
	}
	for i, change := range tests {
		c := DefaultConfig()
		change(&c)
		if _, err := OpenCameras(c); !errors.Is(err, ErrConfig) {
			t.Errorf("test %d: got %v", i, err)
		}
	}
}

func TestRecordName(t *testing.T) {
	tests := []struct {
		name    string
		several bool
		times   int
		want    string
	}{
		{"a/take.db3", false, 0, "a/take.db3"},
		{"a/take.db3", true, 0, "a/take-123.db3"},
		{"a/take.db3", true, 1, "a/take-123-2.db3"},
		{"take.bag", false, 2, "take-3.bag"},
	}
	for _, test := range tests {
		if got := recordName(test.name, "123", test.several, test.times); got != test.want {
			t.Errorf("got %q, expected %q", got, test.want)
		}
	}
}

// TestCameraOf covers the lens of a D455's colour camera and an unsupported one.
func TestCameraOf(t *testing.T) {
	lens := rs2.Intrinsics{
		Width:  848,
		Height: 480,
		PPX:    420.5,
		PPY:    240.25,
		FX:     425,
		FY:     424,
		Model:  rs2.InverseBrownConrady,
		Coeffs: [5]float32{-0.05, 0.06, 0.001, 0.002, -0.02},
	}
	camera, err := cameraOf("1", lens, 0.001)
	if err != nil || camera.Distortion.Model != depth.InverseBrownConrady || camera.CX != 420.5 || camera.FY != 424 ||
		camera.Unit != 0.001 ||
		float32(camera.Distortion.Coefficients[4]) != -0.02 {
		t.Errorf("got %+v, %v", camera, err)
	}
	lens.Coeffs = [5]float32{}
	if camera, err = cameraOf("1", lens, 0.001); err != nil || camera.Distortion.Model != depth.None {
		t.Errorf("without coefficients: got %v, %v", camera.Distortion.Model, err)
	}
	lens.Model = rs2.FTheta
	if _, err = cameraOf("1", lens, 0.001); !errors.Is(err, ErrStreams) {
		t.Errorf("unknown model: got %v", err)
	}
}

func TestChoose(t *testing.T) {
	profile := func(stream rs2.Stream, format rs2.Format, width, height, fps int) rs2.Profile {
		return rs2.Profile{Stream: stream, Format: format, Width: width, Height: height, FPS: fps}
	}
	const yuyv, y16 rs2.Format = 3, 10
	all := []rs2.Profile{
		profile(
			rs2.Depth,
			rs2.Z16,
			1280,
			720,
			30,
		), profile(rs2.Depth, rs2.Z16, 848, 480, 60), profile(rs2.Depth, rs2.Z16, 848, 480, 30),
		profile(rs2.Depth, y16, 848, 480, 30),
		profile(
			rs2.Color,
			yuyv,
			848,
			480,
			30,
		), profile(rs2.Color, rs2.BGR8, 848, 480, 30), profile(rs2.Color, rs2.RGB8, 848, 480, 30),
		profile(rs2.Color, rs2.RGB8, 848, 480, 60),
	}
	d, c, err := choose(all, wanted{848, 480, 30})
	if err != nil || d != all[2] || c != all[6] {
		t.Errorf("got %+v and %+v, %v", d, c, err)
	}
	if d, c, err = choose(all, wanted{}); err != nil || d != all[0] || c.FPS != 30 {
		t.Errorf("any: got %+v and %+v, %v", d, c, err)
	}
	tests := []struct {
		profiles []rs2.Profile
		w        wanted
		says     string
	}{
		{nil, wanted{}, "no depth"},
		{all[:4], wanted{}, "no colour"},
		{all[:5], wanted{}, "in a readable format"},
		{
			all,
			wanted{848, 480, 90},
			"no depth of 848x480 at 90 fps; available: 1280x720 at 30, 848x480 at 30, 848x480 at 60",
		},
		{all, wanted{1280, 720, 30}, "no colour of 1280x720 at 30 fps; available: 848x480 at 30, 848x480 at 60"},
	}
	for i, test := range tests {
		if _, _, err := choose(
			test.profiles,
			test.w,
		); !errors.Is(err, ErrStreams) ||
			!strings.Contains(err.Error(), test.says) {
			t.Errorf("test %d: got %v, expected it to say %q", i, err, test.says)
		}
	}
}

func TestCopyColor(t *testing.T) {
	// There are two rows of two pixels, with a gap after each row.
	pixels := map[rs2.Format][]byte{
		rs2.RGB8:  {1, 2, 3, 4, 5, 6, 0, 7, 8, 9, 10, 11, 12, 0},
		rs2.BGR8:  {3, 2, 1, 6, 5, 4, 0, 9, 8, 7, 12, 11, 10, 0},
		rs2.RGBA8: {1, 2, 3, 255, 4, 5, 6, 255, 0, 7, 8, 9, 255, 10, 11, 12, 255, 0},
		rs2.BGRA8: {3, 2, 1, 255, 6, 5, 4, 255, 0, 9, 8, 7, 255, 12, 11, 10, 255, 0},
	}
	want := [][3]uint8{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {10, 11, 12}}
	for format, bytes := range pixels {
		var p picture
		from := rs2.Picture{Width: 2, Height: 2, Stride: len(bytes) / 2, Pixels: bytes}
		if err := p.copyColor(from, format, 2, 2); err != nil || !reflect.DeepEqual(p.image.Colors, want) {
			t.Errorf("format %d: got %v, %v", format, p.image.Colors, err)
		}
		from.Pixels = bytes[:len(bytes)-1]
		if err := p.copyColor(from, format, 2, 2); !errors.Is(err, ErrStreams) {
			t.Errorf("format %d cut short: got %v", format, err)
		}
	}
}
