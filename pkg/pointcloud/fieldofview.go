package pointcloud

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrView says that a field of view is not one.
var ErrView = errors.New("invalid field of view")

// MaxRegions is how many regions a field of view may have.
const MaxRegions = 64

// Viewpoint is where somebody looks from, and where to, in the coordinates of the cloud.
type Viewpoint struct {
	Position [3]float32
	// Forward is the direction of the gaze, of any length but 0.
	Forward [3]float32
}

// FieldOfView says how densely points are worth sending, by where they lie in somebody's view. The view is cut into equal regions around the
// gaze, rings of equal angle from its middle to its edge, each of which has a maximal sampling rate; the paper on L4S for volumetric video
// (section 3.4) proposes that to bound the quality of what is seen from the corner of the eye. It is a value without state.
type FieldOfView struct {
	// Angle is how wide the view is, from edge to edge, in radians: above 0 and up to 2π.
	Angle float64
	// Maxima are the largest parts of the points that are kept, 0 to 1, by region from the middle outwards.
	Maxima []float64
	// Outside is the same for what is not in view.
	Outside float64
}

// DefaultFieldOfView is 110°, as headsets have it, in three regions: the middle one spans 37°, which eyes reach without a turn of the head. What
// is out of view keeps a tenth, since heads turn faster than the next frames come.
func DefaultFieldOfView() FieldOfView {
	return FieldOfView{Angle: 110 * math.Pi / 180, Maxima: []float64{1, 0.6, 0.3}, Outside: 0.1}
}

// Validate reports what is wrong, wrapped around ErrView.
func (f *FieldOfView) Validate() error {
	if !(f.Angle > 0 && f.Angle <= 2*math.Pi) {
		return fmt.Errorf("%w: angle is %g rad, expected above 0 and up to 2π", ErrView, f.Angle)
	}
	if len(f.Maxima) < 1 || len(f.Maxima) > MaxRegions {
		return fmt.Errorf("%w: %d regions, expected 1 to %d", ErrView, len(f.Maxima), MaxRegions)
	}
	for i, rate := range f.Maxima {
		if !(rate >= 0 && rate <= 1) {
			return fmt.Errorf("%w: sampling rate of region %d is %g, expected 0 to 1", ErrView, i, rate)
		}
	}
	if !(f.Outside >= 0 && f.Outside <= 1) {
		return fmt.Errorf("%w: sampling rate outside is %g, expected 0 to 1", ErrView, f.Outside)
	}
	return nil
}

// Region is the region that a place is in as seen from a viewpoint, from 0 in the middle; len(Maxima) is out of view. The eye's own place is in
// the middle.
func (f *FieldOfView) Region(v Viewpoint, place [3]float32) int {
	cosines, forward := f.edges(), unit(v.Forward)
	return int(regionOf(cosines[:len(f.Maxima)], v.Position, forward, place))
}

// Limit is the maximal sampling rate of a whole object, as the paper has it: that of the region in which the middle of its box is.
func (f *FieldOfView) Limit(v Viewpoint, box volumetric.BoundingBox) float64 {
	var middle [3]float32
	for axis := range middle {
		middle[axis] = box.Min[axis]/2 + box.Max[axis]/2
	}
	return f.rate(f.Region(v, middle))
}

func (f *FieldOfView) rate(region int) float64 {
	if region < len(f.Maxima) {
		return f.Maxima[region]
	}
	return f.Outside
}

// edges are the cosines of the angles at which regions end.
func (f *FieldOfView) edges() (cosines [MaxRegions]float32) {
	for i := range f.Maxima {
		cosines[i] = float32(math.Cos(f.Angle / 2 * float64(i+1) / float64(len(f.Maxima))))
	}
	return cosines
}

func unit(v [3]float32) [3]float32 {
	length := float32(math.Sqrt(float64(v[0]*v[0] + v[1]*v[1] + v[2]*v[2])))
	if length == 0 {
		return v
	}
	return [3]float32{v[0] / length, v[1] / length, v[2] / length}
}

// regionOf counts the edges that a place lies beyond, which are fewer than those that it could.
func regionOf(cosines []float32, eye, forward, place [3]float32) uint8 {
	x, y, z := place[0]-eye[0], place[1]-eye[1], place[2]-eye[2]
	ahead := x*forward[0] + y*forward[1] + z*forward[2]
	distance := float32(math.Sqrt(float64(x*x + y*y + z*z)))
	region := uint8(0)
	for _, cosine := range cosines {
		if ahead < cosine*distance {
			region++
		}
	}
	return region
}

// Regions samples clouds by a FieldOfView. It keeps its working memory; one goroutine uses it at a time.
type Regions struct {
	view   FieldOfView
	gaze   gaze
	points partition
}

// gaze tells points into the regions of a view.
type gaze struct {
	cosines      []float32
	eye, forward [3]float32
}

// NewRegions makes a sampler. A field of view that is none gives an error around ErrView.
func NewRegions(view FieldOfView) (*Regions, error) {
	if err := view.Validate(); err != nil {
		return nil, err
	}
	view.Maxima = slices.Clone(view.Maxima)
	cosines := view.edges()
	return &Regions{view: view, gaze: gaze{cosines: cosines[:len(view.Maxima)]}}, nil
}

// Sample replaces dst's points by those of src that are worth sending to a viewpoint: of each region at most its sampling rate, rounded down to
// whole points, and together at most the budget, which reduces all regions by the same factor. It returns how many they are: the budget
// exactly, unless the sampling rates allow fewer. Of each region the points are taken evenly along src's sequence, whose order should say
// nothing about places, as that of captures does. Both clouds must be different ones.
func (r *Regions) Sample(src, dst *Cloud, v Viewpoint, budget int) int {
	r.gaze.eye, r.gaze.forward = v.Position, unit(v.Forward)
	regions := len(r.view.Maxima) + 1
	p := &r.points
	p.classify(src, regions, &r.gaze)
	var most [MaxRegions + 1]float64
	for region := range regions {
		// A rate such as 0.3 is less than three tenths by its last bit, which must not cost a point.
		most[region] = math.Floor(r.view.rate(region)*float64(p.totals[region]) + 1e-6)
	}
	share(most[:regions], budget, p.quotas[:regions])
	p.thin(dst)
	return dst.Len()
}

// Assign implements assigner.
func (g *gaze) Assign(src *Cloud, begin int, into []uint8) {
	for i, p := range src.Positions[begin : begin+len(into)] {
		into[i] = regionOf(g.cosines, g.eye, g.forward, p)
	}
}

// share cuts wishes, whole numbers, down to a budget in proportion. What rounding leaves goes to those that lost most by it, so that the budget
// is used up.
func share(wishes []float64, budget int, quotas []int) {
	sum := 0.0
	for _, wish := range wishes {
		sum += wish
	}
	scale := 1.0
	if sum > float64(budget) {
		scale = max(0, float64(budget)) / sum
	}
	left := int(math.Round(scale * sum))
	for i, wish := range wishes {
		quotas[i] = int(scale * wish)
		left -= quotas[i]
	}
	for ; left > 0; left-- {
		most, lost := -1, 0.0
		for i, wish := range wishes {
			if rest := scale*wish - float64(quotas[i]); float64(quotas[i]) < wish && (most < 0 || rest > lost) {
				most, lost = i, rest
			}
		}
		if most < 0 {
			return
		}
		quotas[most]++
	}
}
