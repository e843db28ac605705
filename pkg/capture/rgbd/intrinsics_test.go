package rgbd

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/capture/depth"
)

const plainIntrinsics = `{"width": 8, "height": 6, "fx": 4, "fy": 4, "cx": 4, "cy": 3, "depth_unit_m": 0.001}`

func TestParseIntrinsics(t *testing.T) {
	in, err := ParseIntrinsics([]byte(plainIntrinsics))
	if expected := (Intrinsics{Width: 8, Height: 6, FX: 4, FY: 4, CX: 4, CY: 3, DepthUnit: 0.001}); err != nil ||
		!reflect.DeepEqual(in, expected) {
		t.Errorf("got %+v, error %v, expected %+v", in, err, expected)
	}
	full := strings.Replace(
		plainIntrinsics,
		"}",
		`, "near_m": 0.5, "far_m": 2, "fps": 24, "source": "x", "licence": {"a": 1}, "license": 1, "note": [], `+
			`"frames": 48}`,
		1,
	)
	if in, err = ParseIntrinsics([]byte(full)); err != nil || in.Near != 0.5 || in.Far != 2 || in.FPS != 24 {
		t.Errorf("got %+v, error %v", in, err)
	}
}

func TestCameraOfIntrinsics(t *testing.T) {
	text := strings.Replace(
		plainIntrinsics,
		"}",
		`, "distortion_model": "brown-conrady", "distortion_coefficients": [0.1, 0.2, 0.3]}`,
		1,
	)
	in, err := ParseIntrinsics([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	camera, err := in.Camera("left")
	expected := depth.Camera{
		Name: "left", Width: 8, Height: 6, FX: 4, FY: 4, CX: 3.5, CY: 2.5, Unit: 0.001,
		Distortion: depth.Distortion{Model: depth.BrownConrady, Coefficients: [8]float64{0.1, 0.2, 0.3}},
	}
	if err != nil || camera != expected {
		t.Errorf("got %+v, error %v, expected %+v", camera, err, expected)
	}
}

func TestParseIntrinsicsErrors(t *testing.T) {
	tests := []struct{ replace, with, says string }{
		{`"width"`, `"Breite"`, `unknown field "Breite"`},
		{`"fx": 4`, `"fx": 4, "k1": 0.1`, `unknown field "k1"`},
		{`0.001}`, `0.001, "distortion_model": "barrel"}`, `distortion model "barrel"`},
		{`0.001}`, `0.001, "distortion_coefficients": [0.1]}`, "1 distortion_coefficients for model none"},
		{
			`0.001}`,
			`0.001, "distortion_model": "rational", "distortion_coefficients": [1,2,3,4,5,6,7,8,9]}`,
			"at most 8",
		},
		{`0.001}`, `0.001, "distortion_model": "rational", "distortion_coefficients": [1e9]}`, "coefficient 1"},
		{`"width": 8`, `"width": 0`, "0 × 6"},
		{`"width": 8`, `"width": -8`, "-8 × 6"},
		{`"width": 8`, `"width": 8.5`, "8.5"},
		{`"width": 8`, `"width": 4611686018427387904`, "pixels"},
		{`"height": 6`, `"height": 2097153`, "pixels"},
		{`"fx": 4`, `"fx": 0`, "fx and fy"},
		{`"fy": 4`, `"fy": -4`, "fx and fy"},
		{`"fy": 4`, `"fy": 1e-300`, "fx and fy"},
		{`"fy": 4`, `"fy": 1e999`, "1e999"},
		{`"cx": 4`, `"cx": 8.1`, "cx and cy"},
		{`"cy": 3`, `"cy": -1`, "cx and cy"},
		{`"depth_unit_m": 0.001`, `"depth_unit_m": 0`, "depth_unit_m"},
		{`"depth_unit_m": 0.001`, `"depth_unit_m": 1`, "depth_unit_m"},
		{`0.001}`, `0.001, "near_m": 2, "far_m": 1}`, "near_m"},
		{`0.001}`, `0.001, "near_m": -1}`, "near_m"},
		{`0.001}`, `0.001, "near_m": 65.6}`, "16 bits"},
		{`0.001}`, `0.001, "fps": 1001}`, "fps"},
		{`0.001}`, `0.001} {}`, "after it"},
		{`0.001}`, `0.001`, "EOF"},
		{plainIntrinsics, `[]`, "array"},
		{plainIntrinsics, ``, "EOF"},
		{plainIntrinsics, `null`, "0 × 0"},
		{plainIntrinsics, strings.Repeat(" ", MaxIntrinsicsBytes+1), "bytes"},
	}
	for _, test := range tests {
		text := strings.Replace(plainIntrinsics, test.replace, test.with, 1)
		if _, err := ParseIntrinsics(
			[]byte(text),
		); !errors.Is(err, ErrIntrinsics) ||
			!strings.Contains(err.Error(), test.says) {
			t.Errorf("%s for %s: got %v, expected an error that says %q", test.with, test.replace, err, test.says)
		}
	}
}

func FuzzParseIntrinsics(f *testing.F) {
	f.Add([]byte(plainIntrinsics))
	f.Add([]byte(`{"width": 512, "height": 424, "fx": 366.557, "fy": 366.557, "cx": 254.503, "cy": 205.052, ` +
		`"depth_unit_m": 0.0001, "near_m": 0.5207, "far_m": 1.25961, "fps": 24, "note": ""}`))
	f.Add([]byte(`{"width": 1e3, "WIDTH": -1}`))
	if data, err := os.ReadFile(recordingPath(IntrinsicsFile)); err == nil {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		in, err := ParseIntrinsics(data)
		if err != nil {
			if !errors.Is(err, ErrIntrinsics) || !reflect.DeepEqual(in, Intrinsics{}) {
				t.Errorf("got %+v with error %v", in, err)
			}
			return
		}
		if err := in.validate(); err != nil || in.Width*in.Height > depth.MaxPixels {
			t.Errorf("accepted %+v: %v", in, err)
		}
		camera, err := in.Camera("name")
		if err != nil || camera.Validate() != nil {
			t.Errorf("accepted a camera that cannot be used: %v", err)
		}
		if in.Width*in.Height < 1<<12 {
			if _, err := depth.NewProjector(camera, depth.DefaultOptions()); err != nil {
				t.Errorf("accepted a camera that cannot be projected: %v", err)
			}
		}
	})
}
