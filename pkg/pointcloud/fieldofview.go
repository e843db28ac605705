package pointcloud

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrView reports an invalid field of view.
var ErrView = errors.New("invalid field of view")

// MaxRegions is the maximum number of regions of a field of view.
const MaxRegions = 64

// Viewpoint is the position and the viewing direction of an eye, in the coordinates of the cloud.
type Viewpoint struct {
	Position [3]float32
	// Forward is the viewing direction, of any length but 0.
	Forward [3]float32
}

// FieldOfView determines the density of points by location in the view. The view is divided into equal regions around
// the viewing direction: rings of equal angle from the centre to the edge. Each region has a maximum sampling rate. The
// paper on L4S for volumetric video (section 3.4) proposes this to limit the quality in peripheral vision. A
// FieldOfView is a value without state.
type FieldOfView struct {
	// Angle is the full width of the view in radians, above 0 and at most 2π.
	Angle float64
	// Maxima contains the maximum sampling rate of each region, 0 to 1, from the centre outwards.
	Maxima []float64
	// Outside is the maximum sampling rate outside of the view.
	Outside float64
}

// DefaultFieldOfView returns a view of 110°, as in headsets, in three regions. The centre region
// spans 37°, which eyes reach without a turn of the head. Outside of the view a tenth of the points
// is kept, because heads turn faster than the next frames arrive.
func DefaultFieldOfView() FieldOfView {
	return FieldOfView{Angle: 110 * math.Pi / 180, Maxima: []float64{1, 0.6, 0.3}, Outside: 0.1}
}

// Validate returns an error that wraps ErrView for the first invalid value.
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

// Region returns the region of a position seen from a viewpoint: 0 for the centre, len(Maxima) for
// outside of the view. The position of the eye itself is in the centre.
func (f *FieldOfView) Region(v Viewpoint, place [3]float32) int {
	cosines, forward := f.edges(), unit(v.Forward)
	return int(regionOf(cosines[:len(f.Maxima)], v.Position, forward, place))
}

// Limit returns the maximum sampling rate of a whole object, as defined in the paper: the rate of the region that
// contains the centre of the box.
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

// edges returns the cosines of the angles at which regions end.
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

// regionOf returns the region of a position: the number of edges beyond which the position lies.
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

// Regions samples clouds by a FieldOfView. Regions keeps working memory. One goroutine at a time uses a Regions.
type Regions struct {
	view   FieldOfView
	gaze   gaze
	points partition
}

// gaze assigns points to the regions of a view.
type gaze struct {
	cosines      []float32
	eye, forward [3]float32
}

// NewRegions returns a sampler. Errors wrap ErrView.
func NewRegions(view FieldOfView) (*Regions, error) {
	if err := view.Validate(); err != nil {
		return nil, err
	}
	view.Maxima = slices.Clone(view.Maxima)
	cosines := view.edges()
	return &Regions{view: view, gaze: gaze{cosines: cosines[:len(view.Maxima)]}}, nil
}

// Sample replaces dst's points by the points of src that are kept for a viewpoint, and returns the number of kept
// points. Of each region Sample keeps at most the region's sampling rate, rounded down to whole points, and in total at
// most budget points; the budget reduces all regions by the same factor. The result has budget points unless the
// sampling rates allow fewer. The points of each region are taken evenly along src, whose order should be independent
// of positions, as in captures. src and dst must be different clouds.
func (r *Regions) Sample(src, dst *Cloud, v Viewpoint, budget int) int {
	r.gaze.eye, r.gaze.forward = v.Position, unit(v.Forward)
	regions := len(r.view.Maxima) + 1
	p := &r.points
	p.classify(src, regions, &r.gaze)
	var most [MaxRegions + 1]float64
	for region := range regions {
		// In binary a rate such as 0.3 is slightly less than three tenths; this must not cost a
		// point.
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

// share reduces wishes in proportion to fit a budget, and rounds the results to whole numbers, the quotas. The
// remainder of rounding is given to the wishes that lost most, so that the budget is used up. A quota exceeds the wish
// by less than 1.
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
