package depth

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// BackgroundGrammar describes the syntax of a background.
const BackgroundGrammar = "range=NEAR:FAR in metres, box=X,Y,Z:X,Y,Z in metres of the world, static, static:PNG or mask"

// Background specifies the pixels of a camera's image that are not the object. All given conditions
// apply together.
type Background struct {
	// Near and Far are the limits of the object's depth in metres; 0 means no limit.
	Near, Far float64
	// Box contains the object, in metres of the world, after the camera's pose. The zero box means
	// no limit.
	Box volumetric.BoundingBox
	// Static removes pixels that are no nearer than the scene without the object; Scene determines
	// the source of the scene.
	Static bool
	// Scene is a 16-bit grey PNG of the depth image without the object, in the camera's units, or a
	// folder with one file NAME.png per camera. If Scene is empty, the first LearnImages images are
	// assumed to show no object.
	Scene string
	// Mask removes pixels with label 0.
	Mask bool
}

// ParseBackground parses a background from parts such as "range=0.5:2.5" (see BackgroundGrammar).
func ParseBackground(parts []string) (Background, error) {
	var b Background
	for _, part := range parts {
		if err := b.add(part); err != nil {
			return Background{}, fmt.Errorf("%w %.80q: %w", ErrBackground, part, err)
		}
	}
	return b, nil
}

func (b *Background) add(part string) error {
	kind, value, _ := strings.Cut(part, "=")
	switch {
	case kind == "range":
		return b.addRange(value)
	case kind == "box":
		return b.addBox(value)
	case part == "mask":
		b.Mask = true
	case part == "static":
		b.Static = true
	case strings.HasPrefix(part, "static:") && len(part) > len("static:"):
		b.Static, b.Scene = true, strings.TrimPrefix(part, "static:")
	default:
		return fmt.Errorf("expected %s", BackgroundGrammar)
	}
	return nil
}

func (b *Background) addRange(value string) error {
	near, far, ok := strings.Cut(value, ":")
	if !ok {
		return fmt.Errorf("expected NEAR:FAR, got %q", value)
	}
	for _, limit := range []struct {
		text string
		to   *float64
	}{{near, &b.Near}, {far, &b.Far}} {
		if limit.text == "" {
			*limit.to = 0
			continue
		}
		metres, err := strconv.ParseFloat(limit.text, 64)
		if err != nil {
			return fmt.Errorf("expected metres, got %q", limit.text)
		}
		*limit.to = metres
	}
	return b.validate()
}

func (b *Background) addBox(value string) error {
	low, high, _ := strings.Cut(value, ":")
	corners := [2]*[3]float32{&b.Box.Min, &b.Box.Max}
	for i, text := range []string{low, high} {
		numbers := strings.Split(text, ",")
		if len(numbers) != 3 {
			return fmt.Errorf("expected two corners X,Y,Z:X,Y,Z, got %q", value)
		}
		for axis, number := range numbers {
			metres, err := strconv.ParseFloat(strings.TrimSpace(number), 32)
			if err != nil {
				return fmt.Errorf("expected metres, got %q", number)
			}
			corners[i][axis] = float32(metres)
		}
	}
	if b.Box == (volumetric.BoundingBox{}) {
		return fmt.Errorf("expected a box that is not empty, got %q", value)
	}
	return b.validate()
}

func (b *Background) validate() error {
	if !(b.Near >= 0 && b.Near <= maxPlace) || !(b.Far >= 0 && b.Far <= maxPlace) || b.Far > 0 && b.Far <= b.Near {
		return fmt.Errorf("%w: depth range is %g to %g m, expected 0 <= near < far", ErrBackground, b.Near, b.Far)
	}
	if b.Box == (volumetric.BoundingBox{}) {
		return nil
	}
	for axis := range 3 {
		if low, high := b.Box.Min[axis], b.Box.Max[axis]; !(low >= -maxPlace && high <= maxPlace && low < high) {
			return fmt.Errorf(
				"%w: box is %v to %v, expected the lower corner first, in metres of at most %g",
				ErrBackground,
				b.Box.Min,
				b.Box.Max,
				float64(maxPlace),
			)
		}
	}
	return nil
}

// interval contains the depths of one pixel that belong to the object, in units; the interval is empty if hi < lo. It
// never contains 0.
type interval struct{ lo, hi uint16 }

func (i interval) has(depth uint16) bool { return depth >= i.lo && depth <= i.hi }

var nothing = interval{1, 0}

// reach converts a range in metres to units, rounded inwards. A thousandth of a unit compensates
// the rounding of the division, so that a depth exactly at the limit is kept.
func reach(near, far, unit float64) interval {
	lo, hi := math.Ceil(near/unit-1e-3), math.Floor(far/unit+1e-3)
	if !(hi >= 1) || lo > math.MaxUint16 || lo > hi {
		return nothing
	}
	return interval{uint16(max(lo, 1)), uint16(min(hi, math.MaxUint16))}
}

// within returns the depths in metres at which a ray is inside the box. The ray starts at origin
// and advances by ray per metre of depth.
func within(box volumetric.BoundingBox, origin [3]float64, ray [3]float64) (near, far float64) {
	near, far = 0, math.Inf(1)
	for axis := range 3 {
		low, high := float64(box.Min[axis])-origin[axis], float64(box.Max[axis])-origin[axis]
		if math.Abs(ray[axis]) < 1e-12 {
			if low > 0 || high < 0 {
				return 1, 0
			}
			continue
		}
		a, b := low/ray[axis], high/ray[axis]
		near, far = max(near, min(a, b)), min(far, max(a, b))
	}
	return near, far
}
