package glb

import (
	"fmt"
	"math"
	"sort"

	"github.com/qmuntal/gltf"
	"github.com/qmuntal/gltf/modeler"
)

// affine contains the upper three rows of a matrix.
type affine [3][4]float64

var unmoved = affine{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}}

func (a *affine) after(b *affine) affine {
	var c affine
	for i := range 3 {
		for j := range 4 {
			c[i][j] = a[i][0]*b[0][j] + a[i][1]*b[1][j] + a[i][2]*b[2][j]
		}
		c[i][3] += a[i][3]
	}
	return c
}

func (a *affine) apply(v [3]float64) [3]float64 {
	var moved [3]float64
	for i := range 3 {
		moved[i] = a[i][0]*v[0] + a[i][1]*v[1] + a[i][2]*v[2] + a[i][3]
	}
	return moved
}

// joint is a node of the scene with its state in the animation.
type joint struct {
	parent      int // -1 for none; parents precede their children in scene.order
	fixed       *affine
	translation [3]float64
	rotation    [4]float64
	scale       [3]float64
	weights     []float64
}

func (j *joint) local() affine {
	if j.fixed != nil {
		return *j.fixed
	}
	x, y, z, w := j.rotation[0], j.rotation[1], j.rotation[2], j.rotation[3]
	r := affine{
		{1 - 2*(y*y+z*z), 2 * (x*y - z*w), 2 * (x*z + y*w)},
		{2 * (x*y + z*w), 1 - 2*(x*x+z*z), 2 * (y*z - x*w)},
		{2 * (x*z - y*w), 2 * (y*z + x*w), 1 - 2*(x*x+y*y)},
	}
	for i := range 3 {
		for k := range 3 {
			r[i][k] *= j.scale[k]
		}
		r[i][3] = j.translation[i]
	}
	return r
}

// channel animates one property of one node.
type channel struct {
	node          int
	path          gltf.TRSProperty
	interpolation gltf.Interpolation
	times         []float64
	// width values for each time, or three times as many for cubic splines: in-tangent, value,
	// out-tangent
	values []float64
	width  int
}

// maxTime is the maximum duration of an animation: one hour, in seconds.
const maxTime = 3600

// newChannels reads the channels of an animation and returns the duration in seconds.
func newChannels(doc *gltf.Document, animation *gltf.Animation, joints []joint) ([]channel, float64, error) {
	var channels []channel
	duration := 0.0
	for _, c := range animation.Channels {
		if c.Target.Node == nil {
			continue
		}
		node := *c.Target.Node
		if _, err := at(joints, node, "node"); err != nil {
			return nil, 0, err
		}
		sampler, err := at(animation.Samplers, c.Sampler, "animation sampler")
		if err != nil {
			return nil, 0, err
		}
		made := channel{node: node, path: c.Target.Path, interpolation: sampler.Interpolation}
		if made.times, err = floats(doc, sampler.Input); err != nil {
			return nil, 0, err
		}
		if made.values, err = floats(doc, sampler.Output); err != nil {
			return nil, 0, err
		}
		if err := made.check(&joints[node]); err != nil {
			return nil, 0, err
		}
		duration = max(duration, made.times[len(made.times)-1])
		channels = append(channels, made)
	}
	return channels, duration, nil
}

func (c *channel) check(j *joint) error {
	switch c.path {
	case gltf.TRSRotation:
		c.width = 4
	case gltf.TRSWeights:
		c.width = len(j.weights)
	default:
		c.width = 3
	}
	each := c.width
	if c.interpolation == gltf.InterpolationCubicSpline {
		each *= 3
	}
	if len(c.values) != each*len(c.times) {
		return fmt.Errorf(
			"%w: %d values at %d times of an animation, expected %d at each",
			ErrFile,
			len(c.values),
			len(c.times),
			each,
		)
	}
	last := -1.0
	for _, t := range c.times {
		if !(t > last && t <= maxTime) {
			return fmt.Errorf(
				"%w: times of an animation are %g after %g s, expected ascending ones up to %d s",
				ErrFile,
				t,
				last,
				maxTime,
			)
		}
		last = t
	}
	return nil
}

// floats reads numbers of an animation. Integers represent -1 to 1 (glTF 2.0 section 3.11).
func floats(doc *gltf.Document, index int) ([]float64, error) {
	only, a, err := accessor(doc, index)
	if err != nil {
		return nil, err
	}
	data, err := modeler.ReadAccessor(only, a, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: accessor %d: %w", ErrFile, index, err)
	}
	var values []float64
	switch data := data.(type) {
	case []float32:
		values = flatten(values, data, 1)
	case [][3]float32:
		for _, v := range data {
			values = flatten(values, v[:], 1)
		}
	case [][4]float32:
		for _, v := range data {
			values = flatten(values, v[:], 1)
		}
	case [][4]int8:
		for _, v := range data {
			values = flatten(values, v[:], math.MaxInt8)
		}
	case [][4]int16:
		for _, v := range data {
			values = flatten(values, v[:], math.MaxInt16)
		}
	default:
		return nil, fmt.Errorf("%w: animation data of type %v %v", ErrUnsupported, a.ComponentType, a.Type)
	}
	for _, v := range values {
		if math.IsNaN(v) || math.Abs(v) > 1e6 {
			return nil, fmt.Errorf("%w: %g in an animation, expected a number of at most a million", ErrFile, v)
		}
	}
	return values, nil
}

func flatten[T float32 | int8 | int16](into []float64, values []T, one float64) []float64 {
	for _, v := range values {
		into = append(into, max(float64(v)/one, -1e9))
	}
	return into
}

// move sets the property to its value at a time.
func (c *channel) move(j *joint, time float64) {
	var buffer [16]float64
	now := buffer[:0]
	next := sort.Search(len(c.times), func(i int) bool { return c.times[i] > time })
	switch {
	case next == 0:
		now = append(now, c.key(0)...)
	case next == len(c.times):
		now = append(now, c.key(next-1)...)
	default:
		begin, end := c.times[next-1], c.times[next]
		now = c.between(now, next-1, (time-begin)/(end-begin), end-begin)
	}
	switch c.path {
	case gltf.TRSTranslation:
		copy(j.translation[:], now)
	case gltf.TRSScale:
		copy(j.scale[:], now)
	case gltf.TRSRotation:
		copy(j.rotation[:], now)
		normalize(&j.rotation)
	case gltf.TRSWeights:
		copy(j.weights, now)
	}
}

// key returns the value at key i.
func (c *channel) key(i int) []float64 {
	if c.interpolation == gltf.InterpolationCubicSpline {
		return c.values[(3*i+1)*c.width:][:c.width]
	}
	return c.values[i*c.width:][:c.width]
}

// between interpolates from key i to the next key, at a fraction of the interval (glTF 2.0 appendix
// C).
func (c *channel) between(into []float64, i int, part, interval float64) []float64 {
	a, b := c.key(i), c.key(i+1)
	switch {
	case c.interpolation == gltf.InterpolationStep:
		return append(into, a...)
	case c.interpolation == gltf.InterpolationCubicSpline:
		out, in := c.values[(3*i+2)*c.width:][:c.width], c.values[(3*i+3)*c.width:][:c.width]
		t2, t3 := part*part, part*part*part
		for k := range a {
			into = append(
				into,
				(2*t3-3*t2+1)*a[k]+interval*(t3-2*t2+part)*out[k]+(3*t2-2*t3)*b[k]+interval*(t3-t2)*in[k],
			)
		}
		return into
	case c.path == gltf.TRSRotation:
		return slerp(into, a, b, part)
	}
	for k := range a {
		into = append(into, a[k]+part*(b[k]-a[k]))
	}
	return into
}

// slerp interpolates on the shorter arc between two rotations.
func slerp(into, a, b []float64, part float64) []float64 {
	cosine := a[0]*b[0] + a[1]*b[1] + a[2]*b[2] + a[3]*b[3]
	sign := 1.0
	if cosine < 0 {
		cosine, sign = -cosine, -1
	}
	from, to := 1-part, part
	if cosine < 0.9995 { // for closer rotations a straight line differs by less than rounding
		angle := math.Acos(cosine)
		from, to = math.Sin((1-part)*angle)/math.Sin(angle), math.Sin(part*angle)/math.Sin(angle)
	}
	for k := range a {
		into = append(into, from*a[k]+sign*to*b[k])
	}
	return into
}

func normalize(q *[4]float64) {
	length := math.Sqrt(q[0]*q[0] + q[1]*q[1] + q[2]*q[2] + q[3]*q[3])
	if !(length > 1e-9) {
		*q = [4]float64{0, 0, 0, 1}
		return
	}
	for k := range q {
		q[k] /= length
	}
}
