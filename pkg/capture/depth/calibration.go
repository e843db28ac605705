package depth

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Limits on a calibration.
const (
	maxCalibrationBytes = 1 << 20
	// MaxCameras is the maximum number of cameras, limited by the bits of pointcloud.Cloud.Sources.
	MaxCameras = 16
)

// Calibration contains the poses of cameras in a common world, by name.
type Calibration struct {
	poses map[string]Pose
}

// calibrationFile is the file format of a calibration.
type calibrationFile struct {
	// Axes is the axis convention of the poses.
	Axes    string                 `yaml:"axes"`
	Cameras map[string]WrittenPose `yaml:"cameras"`
}

// WrittenPose is a pose in a file: a matrix, or position and quaternion (see ParseCalibration).
type WrittenPose struct {
	Matrix     [][]float64 `yaml:"matrix"`
	Position   []float64   `yaml:"position"`
	Quaternion []float64   `yaml:"quaternion"`
}

// ReadCalibration reads a calibration file (see ParseCalibration).
func ReadCalibration(path string) (Calibration, error) {
	file, err := os.Open(path)
	if err != nil {
		return Calibration{}, fmt.Errorf("%w: %w", ErrCalibration, err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxCalibrationBytes+1))
	if err != nil {
		return Calibration{}, fmt.Errorf("%w: %w", ErrCalibration, err)
	}
	c, err := ParseCalibration(data)
	if err != nil {
		return Calibration{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// ParseCalibration parses a calibration in YAML or JSON. The key cameras contains for each name
// either matrix (4 rows of 4, or 3 of 4, from the camera's coordinates to the world's) or position
// (x, y, z in metres) and quaternion (x, y, z, w; no rotation if absent). The key axes is
// "graphics" (x right, y up, z back; the default) or "vision" (x right, y down, z forward, as in
// calibrations by OpenCV and librealsense), for cameras and world alike.
func ParseCalibration(data []byte) (Calibration, error) {
	if len(data) > maxCalibrationBytes {
		return Calibration{}, fmt.Errorf("%w: more than %d bytes", ErrCalibration, maxCalibrationBytes)
	}
	var file calibrationFile
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		return Calibration{}, fmt.Errorf("%w: %w", ErrCalibration, err)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return Calibration{}, fmt.Errorf("%w: expected one document, got more after it", ErrCalibration)
	}
	if file.Axes != "" && file.Axes != "graphics" && file.Axes != "vision" {
		return Calibration{}, fmt.Errorf("%w: axes are %.40q, expected graphics or vision", ErrCalibration, file.Axes)
	}
	if len(file.Cameras) == 0 {
		return Calibration{}, fmt.Errorf("%w: no cameras", ErrCalibration)
	}
	c := Calibration{poses: make(map[string]Pose)}
	for name, written := range file.Cameras {
		pose, err := written.Pose()
		if err != nil {
			return Calibration{}, fmt.Errorf("%w: camera %.80q: %w", ErrCalibration, name, err)
		}
		if file.Axes == "vision" {
			pose = FromVision(pose)
		}
		c.poses[name] = pose
	}
	return c, nil
}

// Pose returns the pose. An error states what was expected.
func (w WrittenPose) Pose() (Pose, error) {
	var pose Pose
	switch {
	case w.Matrix != nil && (w.Position != nil || w.Quaternion != nil):
		return Pose{}, errors.New("expected a matrix, or position and quaternion, got both")
	case w.Matrix != nil:
		if err := pose.setMatrix(w.Matrix); err != nil {
			return Pose{}, err
		}
	case len(w.Position) != 3:
		return Pose{}, fmt.Errorf("expected a matrix, or a position of 3 numbers, got %d", len(w.Position))
	default:
		copy(pose.Translation[:], w.Position)
		pose.Rotation = identity
		if w.Quaternion != nil {
			if len(w.Quaternion) != 4 {
				return Pose{}, fmt.Errorf("expected a quaternion x, y, z, w, got %d numbers", len(w.Quaternion))
			}
			var ok bool
			if pose.Rotation, ok = Rotation([4]float64(w.Quaternion)); !ok {
				return Pose{}, fmt.Errorf("expected a quaternion of length 1, got %v", w.Quaternion)
			}
		}
	}
	if err := pose.Validate(); err != nil {
		return Pose{}, err
	}
	pose.Rotation, _ = orthonormal(pose.Rotation)
	return pose, nil
}

func (p *Pose) setMatrix(rows [][]float64) error {
	if len(rows) != 4 && len(rows) != 3 {
		return fmt.Errorf("expected a matrix of 4 rows, got %d", len(rows))
	}
	for i, row := range rows {
		if len(row) != 4 {
			return fmt.Errorf("expected rows of 4 numbers, row %d has %d", i+1, len(row))
		}
		if i < 3 {
			copy(p.Rotation[i][:], row)
			p.Translation[i] = row[3]
		} else if !slices.Equal(row, []float64{0, 0, 0, 1}) {
			return fmt.Errorf("expected 0 0 0 1 as row 4, got %v", row)
		}
	}
	if p.Rotation == ([3][3]float64{}) {
		return errors.New("expected a rotation, got zeros")
	}
	return nil
}

// Pose returns the pose of a camera. If the calibration does not contain the camera, the error
// wraps ErrCalibration and names it. In the zero Calibration every camera is at the origin.
func (c Calibration) Pose(name string) (Pose, error) {
	if c.poses == nil {
		return Pose{}, nil
	}
	pose, ok := c.poses[name]
	if !ok {
		known := make([]string, 0, len(c.poses))
		for name := range c.poses {
			known = append(known, name)
		}
		slices.Sort(known)
		return Pose{}, fmt.Errorf("%w: no camera %q in the file, only %q", ErrCalibration, name, known)
	}
	return pose, nil
}

// FormatCalibration returns the file of a calibration, which ParseCalibration reads, with cameras in the order of
// names.
func FormatCalibration(names []string, poses []Pose) []byte {
	var out bytes.Buffer
	fmt.Fprintln(&out, "axes: graphics\ncameras:")
	for i, name := range names {
		p, q := poses[i].Translation, poses[i].Quaternion()
		// YAML reads names in double quotes with the escapes of Go.
		fmt.Fprintf(&out, "  %s:\n    position: [%.6f, %.6f, %.6f]\n    quaternion: [%.8f, %.8f, %.8f, %.8f]\n",
			strconv.QuoteToASCII(name), p[0], p[1], p[2], q[0], q[1], q[2], q[3])
	}
	return out.Bytes()
}
