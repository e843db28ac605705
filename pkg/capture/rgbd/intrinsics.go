package rgbd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/volsfu/volsfu/pkg/capture/depth"
)

// ErrIntrinsics reports an unusable description of a camera.
var ErrIntrinsics = errors.New("invalid camera intrinsics")

// These are limits of a description.
const (
	// MaxIntrinsicsBytes is the maximum size of the file; real files have about 500 bytes.
	MaxIntrinsicsBytes = 64 << 10
	maxFPS             = 1000
	maxDepthUnit       = 0.1 // metres; no depth camera has a full scale of 6.5 km
)

// Intrinsics describes a depth camera with a colour image registered to its depth image.
type Intrinsics struct {
	// Width and Height of both images, in pixels.
	Width  int `json:"width"`
	Height int `json:"height"`
	// FX and FY are the focal lengths, CX and CY the principal point, in pixels from the image's
	// upper left corner: the centre of the first pixel is at (0.5, 0.5).
	FX float64 `json:"fx"`
	FY float64 `json:"fy"`
	CX float64 `json:"cx"`
	CY float64 `json:"cy"`
	// DepthUnit is the length in metres of one unit of a depth image.
	DepthUnit float64 `json:"depth_unit_m"`
	// Near and Far are the depth range of the object in metres; Far 0 = no limit.
	Near float64 `json:"near_m"`
	Far  float64 `json:"far_m"`
	// FPS is the frame rate of the recording, 0 = unknown.
	FPS float64 `json:"fps"`
	// Model is the name of a distortion model of package depth, empty for none. Coefficients are in
	// the order k1, k2, p1, p2, k3, k4, k5, k6; missing coefficients are 0.
	Model        string    `json:"distortion_model"`
	Coefficients []float64 `json:"distortion_coefficients"`
}

// Camera returns the camera in the form of package depth, at the origin. Integer coordinates are
// pixel centres there, and pixel corners in the description.
func (in Intrinsics) Camera(name string) (depth.Camera, error) {
	camera := depth.Camera{
		Name: name, Width: in.Width, Height: in.Height, FX: in.FX, FY: in.FY, CX: in.CX - 0.5, CY: in.CY - 0.5,
		Unit: in.DepthUnit,
	}
	if in.Model != "" {
		model, err := depth.ParseModel(in.Model)
		if err != nil {
			return depth.Camera{}, fmt.Errorf("%w: %w", ErrIntrinsics, err)
		}
		camera.Distortion.Model = model
	}
	if most := len(
		camera.Distortion.Coefficients,
	); len(in.Coefficients) > most ||
		len(in.Coefficients) > 0 && camera.Distortion.Model == depth.None {
		return depth.Camera{}, fmt.Errorf(
			"%w: %d distortion_coefficients for model %v, expected at most %d and a model other than none",
			ErrIntrinsics,
			len(in.Coefficients),
			camera.Distortion.Model,
			most,
		)
	}
	copy(camera.Distortion.Coefficients[:], in.Coefficients)
	if err := camera.Validate(); err != nil {
		return depth.Camera{}, fmt.Errorf("%w: %w", ErrIntrinsics, err)
	}
	return camera, nil
}

// ParseIntrinsics parses the JSON object of an intrinsics.json. The keys of Intrinsics up to
// depth_unit_m are required. Unknown keys are an error, because a misspelt one would silently
// distort the picture. The keys source, licence, license, note and frames are allowed and ignored.
func ParseIntrinsics(data []byte) (Intrinsics, error) {
	if len(data) > MaxIntrinsicsBytes {
		return Intrinsics{}, fmt.Errorf(
			"%w: %d bytes, expected at most %d",
			ErrIntrinsics,
			len(data),
			MaxIntrinsicsBytes,
		)
	}
	var document struct {
		Intrinsics
		Source, Licence, License, Note, Frames json.RawMessage
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&document); err != nil {
		return Intrinsics{}, fmt.Errorf("%w: %w", ErrIntrinsics, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Intrinsics{}, fmt.Errorf("%w: expected one JSON object, got more after it", ErrIntrinsics)
	}
	if err := document.validate(); err != nil {
		return Intrinsics{}, err
	}
	return document.Intrinsics, nil
}

func (in Intrinsics) validate() error {
	switch {
	case in.Width < 1 || in.Height < 1 || in.Width > depth.MaxPixels/in.Height:
		return fmt.Errorf(
			"%w: width × height is %d × %d, expected at least 1 × 1 and at most %d pixels",
			ErrIntrinsics,
			in.Width,
			in.Height,
			depth.MaxPixels,
		)
	case !positive(in.FX) || !positive(in.FY):
		return fmt.Errorf("%w: fx and fy are %g and %g, expected more than 0 pixels", ErrIntrinsics, in.FX, in.FY)
	case !inside(in.CX, in.Width) || !inside(in.CY, in.Height):
		return fmt.Errorf("%w: cx and cy are %g and %g, expected a point of the image", ErrIntrinsics, in.CX, in.CY)
	case !positive(in.DepthUnit) || in.DepthUnit > maxDepthUnit:
		return fmt.Errorf(
			"%w: depth_unit_m is %g, expected more than 0 and at most %g",
			ErrIntrinsics,
			in.DepthUnit,
			maxDepthUnit,
		)
	case in.Near < 0 || in.Far < 0 || in.Far > 0 && in.Far <= in.Near:
		return fmt.Errorf(
			"%w: near_m and far_m are %g and %g, expected 0 <= near_m < far_m",
			ErrIntrinsics,
			in.Near,
			in.Far,
		)
	case in.Near >= math.MaxUint16*in.DepthUnit:
		return fmt.Errorf(
			"%w: near_m is %g, expected less than the %g m that 16 bits reach",
			ErrIntrinsics,
			in.Near,
			math.MaxUint16*in.DepthUnit,
		)
	case in.FPS < 0 || in.FPS > maxFPS:
		return fmt.Errorf("%w: fps is %g, expected 0 to %d", ErrIntrinsics, in.FPS, maxFPS)
	}
	_, err := in.Camera("")
	return err
}

// positive also rejects lengths whose quotients exceed the range of float32 coordinates.
func positive(v float64) bool { return v >= 1e-6 && v <= 1e6 && !math.IsNaN(v) }

func inside(v float64, size int) bool { return v >= 0 && v <= float64(size) }
