package virtual

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"go.yaml.in/yaml/v3"

	"github.com/volsfu/volsfu/pkg/capture/depth"
)

// Limits on virtual cameras.
const (
	maxFileBytes = 1 << 20
	// MaxPixels is the maximum number of pixels of one camera, the limit of the codec rgbd. All cameras together have
	// at most depth.MaxPixels.
	MaxPixels = 1 << 22
	// maxFar is the maximum range in metres.
	maxFar = 100
	// maxNoise is the maximum standard deviation of depths in millimetres.
	maxNoise = 100
)

// Defaults of a camera. The unit of a tenth of a millimetre is finer than the noise of any depth camera, so that the
// noise determines the error; it reaches 6.5 m.
const (
	defaultUnit = 0.0001
	defaultNear = 0.25
	defaultFar  = 5
)

// Rig is a set of virtual cameras.
type Rig struct {
	// Seed selects the noise.
	Seed    uint64
	Cameras []Camera
}

// Camera is a virtual depth camera without distortion.
type Camera struct {
	depth.Camera
	// Near and Far are the range in metres. Nearer and farther surfaces have no depth.
	Near, Far float64
	Noise     Noise
}

// rigFile is the file format of a Rig.
type rigFile struct {
	Seed    uint64       `yaml:"seed"`
	Cameras []cameraFile `yaml:"cameras"`
}

// cameraFile is one camera of a file. A nil value is absent.
type cameraFile struct {
	Name              string `yaml:"name"`
	Width             int    `yaml:"width"`
	Height            int    `yaml:"height"`
	depth.WrittenPose `yaml:",inline"`
	LookAt            []float64 `yaml:"look_at"`
	FieldOfView       *float64  `yaml:"field_of_view"`
	FX                *float64  `yaml:"fx"`
	FY                *float64  `yaml:"fy"`
	CX                *float64  `yaml:"cx"`
	CY                *float64  `yaml:"cy"`
	Near              *float64  `yaml:"near_m"`
	Far               *float64  `yaml:"far_m"`
	Unit              *float64  `yaml:"depth_unit_m"`
	Noise             Noise     `yaml:"noise"`
}

// ReadRig reads a file of virtual cameras (see ParseRig).
func ReadRig(path string) (Rig, error) {
	file, err := os.Open(path)
	if err != nil {
		return Rig{}, fmt.Errorf("%w: %w", ErrRig, err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err != nil {
		return Rig{}, fmt.Errorf("%w: %w", ErrRig, err)
	}
	r, err := ParseRig(data)
	if err != nil {
		return Rig{}, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// ParseRig parses virtual cameras in YAML or JSON. docs/capture.md has the keys. Errors wrap ErrRig and name the
// camera.
func ParseRig(data []byte) (Rig, error) {
	if len(data) > maxFileBytes {
		return Rig{}, fmt.Errorf("%w: more than %d bytes", ErrRig, maxFileBytes)
	}
	var file rigFile
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return Rig{}, fmt.Errorf("%w: %w", ErrRig, err)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return Rig{}, fmt.Errorf("%w: expected one document, got more after it", ErrRig)
	}
	if n := len(file.Cameras); n < 1 || n > depth.MaxCameras {
		return Rig{}, fmt.Errorf("%w: %d cameras, expected 1 to %d", ErrRig, n, depth.MaxCameras)
	}
	r := Rig{Seed: file.Seed}
	names := make(map[string]bool)
	pixels := 0
	for i, written := range file.Cameras {
		if written.Name == "" {
			written.Name = fmt.Sprintf("camera%d", i+1)
		}
		camera, err := written.camera()
		if err != nil {
			return Rig{}, fmt.Errorf("%w: camera %.80q: %w", ErrRig, written.Name, err)
		}
		if names[camera.Name] {
			return Rig{}, fmt.Errorf("%w: two cameras have the name %.80q", ErrRig, camera.Name)
		}
		names[camera.Name] = true
		if pixels += camera.Width * camera.Height; pixels > depth.MaxPixels {
			return Rig{}, fmt.Errorf("%w: the cameras have %d pixels or more, expected at most %d together", ErrRig,
				pixels, depth.MaxPixels)
		}
		r.Cameras = append(r.Cameras, camera)
	}
	return r, nil
}

func (f *cameraFile) camera() (Camera, error) {
	if f.Width < 1 || f.Height < 1 || f.Width > MaxPixels/f.Height {
		return Camera{}, fmt.Errorf("width × height is %d × %d, expected at least 1 × 1 and at most %d pixels", f.Width,
			f.Height, MaxPixels)
	}
	c := Camera{
		Camera: depth.Camera{Name: f.Name, Width: f.Width, Height: f.Height, Unit: valueOr(f.Unit, defaultUnit)},
		Near:   valueOr(f.Near, defaultNear),
		Far:    valueOr(f.Far, defaultFar),
		Noise:  f.Noise,
	}
	if err := f.setLens(&c); err != nil {
		return Camera{}, err
	}
	var err error
	if c.Pose, err = f.pose(); err != nil {
		return Camera{}, err
	}
	if err := c.Validate(); err != nil {
		return Camera{}, err
	}
	reach := min(maxFar, math.MaxUint16*c.Unit)
	if !(c.Near > 0 && c.Near < c.Far && c.Far <= reach) {
		return Camera{}, fmt.Errorf("range is %g to %g m, expected 0 < near_m < far_m <= %.5g m, which is 65535 times "+
			"depth_unit_m and at most %d", c.Near, c.Far, reach, maxFar)
	}
	return c, c.Noise.validate()
}

// setLens sets the intrinsics. The centre of the first pixel is at 0.5, 0.5 in files and at 0, 0 in a depth.Camera.
func (f *cameraFile) setLens(c *Camera) error {
	width, height := float64(f.Width), float64(f.Height)
	c.CX, c.CY = valueOr(f.CX, width/2)-0.5, valueOr(f.CY, height/2)-0.5
	switch {
	case f.FieldOfView != nil && (f.FX != nil || f.FY != nil):
		return errors.New("expected fx and fy, or field_of_view, got both")
	case f.FieldOfView != nil:
		angle := *f.FieldOfView
		if !(angle >= 1 && angle <= 150) {
			return fmt.Errorf("field_of_view is %g, expected 1 to 150 degrees between the left and the right border",
				angle)
		}
		c.FX = width / 2 / math.Tan(angle*math.Pi/360)
		c.FY = c.FX
	case f.FX == nil || f.FY == nil:
		return errors.New("expected fx and fy in pixels, or field_of_view in degrees")
	default:
		c.FX, c.FY = *f.FX, *f.FY
	}
	return nil
}

// pose returns the pose, by default that of a calibration; look_at replaces the rotation.
func (f *cameraFile) pose() (depth.Pose, error) {
	if f.LookAt == nil {
		return f.WrittenPose.Pose()
	}
	if f.Matrix != nil || f.Quaternion != nil || len(f.Position) != 3 || len(f.LookAt) != 3 {
		return depth.Pose{}, errors.New("expected look_at and position of 3 numbers each, without matrix and " +
			"quaternion")
	}
	back := minus([3]float64(f.Position), [3]float64(f.LookAt))
	up := [3]float64{0, 1, 0}
	if math.Hypot(back[0], back[2]) < 1e-3*length(back) {
		up = [3]float64{0, 0, -1} // straight up or down
	}
	right := cross(up, back)
	if !(length(back) > 1e-6 && length(right) < 1e9) {
		return depth.Pose{}, fmt.Errorf("position is %v and look_at %v, expected two places", f.Position, f.LookAt)
	}
	back, right = unit(back), unit(right)
	up = cross(back, right)
	pose := depth.Pose{Translation: [3]float64(f.Position)}
	for row := range 3 {
		pose.Rotation[row] = [3]float64{right[row], up[row], back[row]}
	}
	return pose, nil
}

func valueOr(v *float64, otherwise float64) float64 {
	if v == nil {
		return otherwise
	}
	return *v
}

func minus(a, b [3]float64) [3]float64 { return [3]float64{a[0] - b[0], a[1] - b[1], a[2] - b[2]} }

func dot(a, b [3]float64) float64 { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }

func cross(a, b [3]float64) [3]float64 {
	return [3]float64{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
}

func length(a [3]float64) float64 { return math.Sqrt(dot(a, a)) }

func unit(a [3]float64) [3]float64 {
	l := length(a)
	return [3]float64{a[0] / l, a[1] / l, a[2] / l}
}
