package kinect

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/volsfu/volsfu/pkg/capture/depth"
)

// calibrationFile contains the parts of calibration.json that are read, as in the sensor SDK's
// src/calibration/calibration.c.
type calibrationFile struct {
	CalibrationInformation struct {
		Cameras []cameraCalibration
	}
}

type cameraCalibration struct {
	Intrinsics struct {
		ModelParameters []float64
		ModelType       string
	}
	Location     string
	MetricRadius float64
	Rt           struct {
		Rotation    []float64
		Translation []float64 // metres
	}
	SensorWidth, SensorHeight float64
}

// Names of cameras and of their model in a calibration.
const (
	locationDepth = "CALIBRATION_CameraLocationD0"
	locationColor = "CALIBRATION_CameraLocationPV0"
	modelBrown    = "CALIBRATION_LensDistortionModelBrownConrady"
)

// defaultRadius is the sensor SDK's value for an unknown radius in a calibration: a view of 120°.
const defaultRadius = 1.7

// mode is a part of the calibrated image: the image is scaled to a size, and a window is cut out.
type mode struct {
	scaled, offset, size [2]float64
}

// The modes of the cameras, by the size of their images (the sensor SDK's
// src/transformation/mode_specific_calibration.c).
var (
	depthModes = []mode{
		{scaled: [2]float64{512, 512}, offset: [2]float64{96, 90}, size: [2]float64{320, 288}},     // NFOV_2X2BINNED
		{scaled: [2]float64{1024, 1024}, offset: [2]float64{192, 180}, size: [2]float64{640, 576}}, // NFOV_UNBINNED
		{scaled: [2]float64{512, 512}, size: [2]float64{512, 512}},                                 // WFOV_2X2BINNED
		{scaled: [2]float64{1024, 1024}, size: [2]float64{1024, 1024}},                             // WFOV_UNBINNED
	}
	colorModes = []mode{
		{scaled: [2]float64{1280, 960}, offset: [2]float64{0, 120}, size: [2]float64{1280, 720}},
		{scaled: [2]float64{1920, 1440}, offset: [2]float64{0, 180}, size: [2]float64{1920, 1080}},
		{scaled: [2]float64{2560, 1920}, offset: [2]float64{0, 240}, size: [2]float64{2560, 1440}},
		{scaled: [2]float64{2048, 1536}, size: [2]float64{2048, 1536}},
		{scaled: [2]float64{3840, 2880}, offset: [2]float64{0, 360}, size: [2]float64{3840, 2160}},
		{scaled: [2]float64{4096, 3072}, size: [2]float64{4096, 3072}},
	}
	// legacy converts calibrations of a 16:9 image to those of a 4:3 image.
	legacy = mode{scaled: [2]float64{4096, 2304}, offset: [2]float64{0, -384}, size: [2]float64{4096, 3072}}
)

// depthUnit is the unit of depth images: one millimetre.
const depthUnit = 0.001

// pair contains the two cameras of a device, and the motion from the depth camera's coordinates to
// the colour camera's.
type pair struct {
	depth, color depth.Camera
	toColor      depth.Pose
}

// parseCalibration parses a calibration for images of these sizes.
func parseCalibration(data []byte, depthSize, colorSize [2]int) (pair, error) {
	var file calibrationFile
	if err := json.Unmarshal(data, &file); err != nil {
		return pair{}, fmt.Errorf("%w: %w", ErrCalibration, err)
	}
	d, err := find(file.CalibrationInformation.Cameras, locationDepth)
	if err != nil {
		return pair{}, err
	}
	c, err := find(file.CalibrationInformation.Cameras, locationColor)
	if err != nil {
		return pair{}, err
	}
	var p pair
	if p.depth, err = d.camera(depthModes, depthSize); err != nil {
		return pair{}, err
	}
	if p.color, err = c.camera(colorModes, colorSize); err != nil {
		return pair{}, err
	}
	inDepth, err := d.pose()
	if err != nil {
		return pair{}, err
	}
	inColor, err := c.pose()
	if err != nil {
		return pair{}, err
	}
	p.toColor = depth.FromVision(inColor.After(inDepth.Inverse()))
	return p, nil
}

func find(cameras []cameraCalibration, location string) (*cameraCalibration, error) {
	for i := range cameras {
		if cameras[i].Location == location {
			return &cameras[i], nil
		}
	}
	return nil, fmt.Errorf("%w: no camera at %s", ErrCalibration, location)
}

// camera returns the camera in the mode with images of this size. Parameters are fractions of the
// calibrated image, whose corner is at (0, 0).
func (c *cameraCalibration) camera(modes []mode, size [2]int) (depth.Camera, error) {
	p := c.Intrinsics.ModelParameters
	if c.Intrinsics.ModelType != modelBrown || len(p) < 14 {
		return depth.Camera{}, fmt.Errorf(
			"%w: %s: model %.60q with %d parameters, expected %s with 14",
			ErrCalibration,
			c.Location,
			c.Intrinsics.ModelType,
			len(p),
			modelBrown,
		)
	}
	if p[10] != 0 || p[11] != 0 {
		return depth.Camera{}, fmt.Errorf(
			"%w: %s: centre of distortion %g, %g, expected 0, 0",
			ErrCalibration,
			c.Location,
			p[10],
			p[11],
		)
	}
	centre, focal := [2]float64{p[0], p[1]}, [2]float64{p[2], p[3]}
	if c.Location == locationColor && math.Floor(c.SensorWidth*9/16) == c.SensorHeight {
		for axis := range 2 {
			centre[axis] = (centre[axis]*legacy.scaled[axis] - legacy.offset[axis]) / legacy.size[axis]
			focal[axis] *= legacy.scaled[axis] / legacy.size[axis]
		}
	}
	for _, m := range modes {
		if m.size != [2]float64{float64(size[0]), float64(size[1])} {
			continue
		}
		radius := c.MetricRadius
		if radius <= 0.0001 {
			radius = defaultRadius
		}
		camera := depth.Camera{
			Width: size[0], Height: size[1], Unit: depthUnit,
			FX: focal[0] * m.scaled[0], FY: focal[1] * m.scaled[1],
			CX: centre[0]*m.scaled[0] - m.offset[0] - 0.5, CY: centre[1]*m.scaled[1] - m.offset[1] - 0.5,
			Distortion: depth.Distortion{
				Model:        depth.Rational,
				Coefficients: [8]float64{p[4], p[5], p[13], p[12], p[6], p[7], p[8], p[9]},
				Radius:       radius,
			},
		}
		if err := camera.Validate(); err != nil {
			return depth.Camera{}, fmt.Errorf("%w: %s: %w", ErrCalibration, c.Location, err)
		}
		return camera, nil
	}
	return depth.Camera{}, fmt.Errorf(
		"%w: images of %d × %d pixels do not match any mode of the camera",
		ErrCalibration,
		size[0],
		size[1],
	)
}

// pose returns the motion from the device's coordinates to the camera's, with x right, y down and z
// forward.
func (c *cameraCalibration) pose() (depth.Pose, error) {
	r, t := c.Rt.Rotation, c.Rt.Translation
	if len(r) != 9 || len(t) != 3 {
		return depth.Pose{}, fmt.Errorf(
			"%w: %s: %d numbers of rotation and %d of translation, expected 9 and 3",
			ErrCalibration,
			c.Location,
			len(r),
			len(t),
		)
	}
	pose := depth.Pose{
		Rotation:    [3][3]float64{[3]float64(r[0:3]), [3]float64(r[3:6]), [3]float64(r[6:9])},
		Translation: [3]float64(t),
	}
	if err := pose.Validate(); err != nil {
		return depth.Pose{}, fmt.Errorf("%w: %s: %w", ErrCalibration, c.Location, err)
	}
	return pose, nil
}
