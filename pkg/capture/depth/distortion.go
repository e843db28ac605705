package depth

import (
	"fmt"
	"math"
)

// Model is how a lens bends the picture. The names and formulas are those of librealsense's rs2_distortion (rsutil.h), but for Rational.
type Model uint8

// The models. Coefficients stand in OpenCV's order: k1, k2, p1, p2, k3, and for Rational k4, k5, k6.
const (
	// None is a pinhole.
	None Model = iota
	// BrownConrady is OpenCV's model with five coefficients.
	BrownConrady
	// ModifiedBrownConrady has its tangential part computed from what the radial part made.
	ModifiedBrownConrady
	// InverseBrownConrady is what librealsense calls the distortion of its cameras' colour images; it projects as ModifiedBrownConrady does.
	InverseBrownConrady
	// KannalaBrandt4 is the model of fisheye lenses; its coefficients are k1 to k4.
	KannalaBrandt4
	// Rational is OpenCV's model with eight coefficients, which Azure Kinect uses.
	Rational
)

var modelNames = [...]string{"none", "brown-conrady", "modified-brown-conrady", "inverse-brown-conrady", "kannala-brandt4", "rational"}

// String is the model's name, such as "brown-conrady".
func (m Model) String() string {
	if int(m) < len(modelNames) {
		return modelNames[m]
	}
	return fmt.Sprintf("model %d", uint8(m))
}

// ParseModel finds a model by its name.
func ParseModel(name string) (Model, error) {
	for i, known := range modelNames {
		if known == name {
			return Model(i), nil
		}
	}
	return None, fmt.Errorf("%w: distortion model %.40q, expected one of %v", ErrCamera, name, modelNames)
}

// MarshalText implements encoding.TextMarshaler: the name.
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
	// Radius is how far from the axis the model holds, as a distance in the image plane at depth 1; 0 is as far as it is unambiguous.
	Radius float64 `json:"radius"`
}

func (d *Distortion) validate() error {
	if int(d.Model) >= len(modelNames) {
		return fmt.Errorf("%w: distortion %v is unknown", ErrCamera, d.Model)
	}
	for i, k := range d.Coefficients {
		if !finite(k) {
			return fmt.Errorf("%w: distortion coefficient %d is %g, expected a number of at most 1e6", ErrCamera, i+1, k)
		}
	}
	if !(d.Radius >= 0 && d.Radius <= 1e6) {
		return fmt.Errorf("%w: distortion radius is %g, expected 0 or more", ErrCamera, d.Radius)
	}
	return nil
}

// apply gives where a point of the image plane appears.
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

// Removing a distortion is solving apply(x, y) = (u, v) by Newton's method, beginning where the lens would not bend. 20 steps are Azure Kinect's own
// limit; lenses of real cameras take 3 to 5. A residue of 1e-6 is less than a thousandth of a pixel at a focal length of 1,000.
const (
	newtonSteps   = 20
	newtonStep    = 1e-6 // the step of the numeric derivative
	newtonTarget  = 1e-9
	newtonAllowed = 1e-6
)

// remove gives the point of the image plane that appears at (u, v); false where there is none, or where the model folds back on itself.
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
		if !(determinant > 1e-9) { // the picture would be mirrored: beyond the fold
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

// guess is where to begin. A fisheye's picture is of angles, whose tangents are far from them towards the rim.
func (d *Distortion) guess(u, v float64) (float64, float64) {
	if d.Model != KannalaBrandt4 {
		return u, v
	}
	theta := math.Hypot(u, v)
	if theta < 1e-12 || theta > 1.5 { // 1.5 rad are 86°: farther out the image plane ends
		return u, v
	}
	scale := math.Tan(theta) / theta
	return u * scale, v * scale
}
