package depth

import (
	"fmt"
	"math"
)

// Model is a lens distortion model. Names and formulas are those of librealsense's rs2_distortion
// (rsutil.h), except for Rational.
type Model uint8

// The models. Coefficients are in OpenCV's order: k1, k2, p1, p2, k3, and for Rational k4, k5, k6.
const (
	// None is a pinhole camera.
	None Model = iota
	// BrownConrady is OpenCV's model with five coefficients.
	BrownConrady
	// ModifiedBrownConrady applies the tangential distortion to the result of the radial
	// distortion.
	ModifiedBrownConrady
	// InverseBrownConrady is librealsense's name for the distortion of its cameras' colour images. InverseBrownConrady
	// projects like ModifiedBrownConrady.
	InverseBrownConrady
	// KannalaBrandt4 is a model for fisheye lenses with the coefficients k1 to k4.
	KannalaBrandt4
	// Rational is OpenCV's model with eight coefficients, used by Azure Kinect.
	Rational
)

var modelNames = [...]string{
	"none",
	"brown-conrady",
	"modified-brown-conrady",
	"inverse-brown-conrady",
	"kannala-brandt4",
	"rational",
}

// String returns the model's name, such as "brown-conrady".
func (m Model) String() string {
	if int(m) < len(modelNames) {
		return modelNames[m]
	}
	return fmt.Sprintf("model %d", uint8(m))
}

// ParseModel returns the model with a name.
func ParseModel(name string) (Model, error) {
	for i, known := range modelNames {
		if known == name {
			return Model(i), nil
		}
	}
	return None, fmt.Errorf("%w: distortion model %.40q, expected one of %v", ErrCamera, name, modelNames)
}

// MarshalText implements encoding.TextMarshaler. It returns the name.
func (m Model) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *Model) UnmarshalText(text []byte) (err error) {
	*m, err = ParseModel(string(text))
	return err
}

// Distortion is a model with its coefficients.
type Distortion struct {
	Model        Model      `json:"model"`
	Coefficients [8]float64 `json:"coefficients"`
	// Radius is the distance from the axis, in the image plane at depth 1, up to which the model is
	// valid. 0 means as far as the model is unambiguous.
	Radius float64 `json:"radius"`
}

func (d *Distortion) validate() error {
	if int(d.Model) >= len(modelNames) {
		return fmt.Errorf("%w: distortion %v is unknown", ErrCamera, d.Model)
	}
	for i, k := range d.Coefficients {
		if !finite(k) {
			return fmt.Errorf(
				"%w: distortion coefficient %d is %g, expected a number of at most 1e6",
				ErrCamera,
				i+1,
				k,
			)
		}
	}
	if !(d.Radius >= 0 && d.Radius <= 1e6) {
		return fmt.Errorf("%w: distortion radius is %g, expected 0 or more", ErrCamera, d.Radius)
	}
	return nil
}

// apply returns the position at which a point of the image plane appears.
func (d *Distortion) apply(x, y float64) (float64, float64, bool) {
	r2 := x*x + y*y
	if d.Radius > 0 && r2 > d.Radius*d.Radius {
		return 0, 0, false
	}
	k := &d.Coefficients
	switch d.Model {
	case BrownConrady, Rational:
		f := 1 + r2*(k[0]+r2*(k[1]+r2*k[4]))
		if d.Model == Rational {
			if f /= 1 + r2*(k[5]+r2*(k[6]+r2*k[7])); math.IsInf(f, 0) {
				return 0, 0, false
			}
		}
		return x*f + 2*k[2]*x*y + k[3]*(r2+2*x*x), y*f + 2*k[3]*x*y + k[2]*(r2+2*y*y), true
	case ModifiedBrownConrady, InverseBrownConrady:
		f := 1 + r2*(k[0]+r2*(k[1]+r2*k[4]))
		x, y = x*f, y*f
		return x + 2*k[2]*x*y + k[3]*(r2+2*x*x), y + 2*k[3]*x*y + k[2]*(r2+2*y*y), true
	case KannalaBrandt4:
		r := math.Sqrt(r2)
		if r < 1e-12 {
			return x, y, true
		}
		theta := math.Atan(r)
		t2 := theta * theta
		scale := theta * (1 + t2*(k[0]+t2*(k[1]+t2*(k[2]+t2*k[3])))) / r
		return x * scale, y * scale, true
	}
	return x, y, true
}

// A distortion is removed by solving apply(x, y) = (u, v) with Newton's method, starting without
// distortion. 20 steps are Azure Kinect's own limit; lenses of real cameras need 3 to 5. A residue
// of 1e-6 is less than a thousandth of a pixel at a focal length of 1,000.
const (
	newtonSteps   = 20
	newtonStep    = 1e-6 // step of the numeric derivative
	newtonTarget  = 1e-9
	newtonAllowed = 1e-6
)

// remove returns the point of the image plane that appears at (u, v). The result is false if there
// is no such point, or if the model folds back.
func (d *Distortion) remove(u, v float64) (float64, float64, bool) {
	if d.Model == None {
		return u, v, true
	}
	x, y := d.guess(u, v)
	for range newtonSteps {
		px, py, inside := d.apply(x, y)
		ax, ay, insideX := d.apply(x+newtonStep, y)
		bx, by, insideY := d.apply(x, y+newtonStep)
		if !inside || !insideX || !insideY {
			return 0, 0, false
		}
		j00, j10 := (ax-px)/newtonStep, (ay-py)/newtonStep
		j01, j11 := (bx-px)/newtonStep, (by-py)/newtonStep
		determinant := j00*j11 - j01*j10
		if !(determinant > 1e-9) { // beyond the fold the image would be mirrored
			return 0, 0, false
		}
		ex, ey := u-px, v-py
		if math.Abs(ex)+math.Abs(ey) < newtonTarget {
			return x, y, true
		}
		x += (j11*ex - j01*ey) / determinant
		y += (j00*ey - j10*ex) / determinant
	}
	px, py, inside := d.apply(x, y)
	return x, y, inside && math.Abs(u-px)+math.Abs(v-py) < newtonAllowed
}

// guess returns the start value. The image of a fisheye lens represents angles, which differ much
// from their tangents towards the border.
func (d *Distortion) guess(u, v float64) (float64, float64) {
	if d.Model != KannalaBrandt4 {
		return u, v
	}
	theta := math.Hypot(u, v)
	if theta < 1e-12 || theta > 1.5 { // 1.5 rad are 86°; the image plane ends beyond
		return u, v
	}
	scale := math.Tan(theta) / theta
	return u * scale, v * scale
}
