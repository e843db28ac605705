// Package fidelity measures the difference between a decoded cloud and the original, as MPEG's pc_error does (ISO/IEC
// JTC 1/SC 29/WG 7, common test conditions for point cloud compression): the geometry error from point to point (D1)
// and from point to plane (D2), and the colour error in Y'CbCr of Rec. ITU-R BT.709. Every point is compared with the
// nearest point of the other cloud, in both directions, and the worse direction counts. Coinciding points are merged
// first and the colours averaged.
//
// Perceptual measures compare neighbourhoods of points and agree better with ratings by viewers: PCQM and PointSSIM.
//
// A Reference is immutable; any number of goroutines may compare with a Reference. NewReference, Compare and Perceptual
// use all processors.
package fidelity

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// ErrCloud reports that a cloud cannot be compared: it has no points, points without colours, or
// positions that are not finite.
var ErrCloud = errors.New("cloud cannot be measured")

// Measures contains the differences between a decoded cloud and the reference.
type Measures struct {
	PointToPoint, PointToPlane Geometry
	Color                      Color
}

// Geometry is an error of positions.
type Geometry struct {
	// MSE is the mean square distance in m², of the direction with the larger value.
	MSE float64
	// PSNR is 10·log10(3·peak²/MSE) in dB, +Inf without error. The factor 3 is pc_error's: the
	// energy of a cube's diagonal.
	PSNR float64
}

// Color contains peak signal-to-noise ratios of colours in dB, +Inf without error: of luma, of both
// chroma signals, and of all three weighted 6:1:1. The peak is 255; each mean square error is that
// of the direction with the larger value.
type Color struct{ Y, Cb, Cr, All float64 }

// Perceptual contains the measures that compare neighbourhoods.
type Perceptual struct {
	PCQM      PCQM
	PointSSIM PointSSIM
}

// Reference is an original cloud, prepared for comparisons.
type Reference struct {
	side side
	// peak is the reference value of geometry errors, in metres.
	peak float64
	// curvatures and variances return the features of the points for PCQM and PointSSIM, which the first call computes.
	curvatures func() []float64
	variances  func() []variances
}

// NewReference prepares a cloud, which may change afterwards. Errors wrap ErrCloud.
func NewReference(cloud *pointcloud.Cloud) (*Reference, error) {
	merged, err := merge(cloud)
	if err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	box := merged.Bounds()
	r := &Reference{side: side{cloud: merged, index: pointcloud.NewIndex(merged)}}
	for axis := range 3 {
		r.peak = max(r.peak, float64(box.Max[axis])-float64(box.Min[axis]))
	}
	r.side.normals = estimate(merged, r.side.index)
	r.curvatures = sync.OnceValue(r.curvaturesOf)
	r.variances = sync.OnceValue(func() []variances { return r.side.variances(surfaceRadius * r.peak) })
	return r, nil
}

// Peak returns the reference value of geometry errors: the longest edge of the bounding box, in
// metres.
func (r *Reference) Peak() float64 { return r.peak }

// Compare measures a decoded cloud. Errors wrap ErrCloud.
func (r *Reference) Compare(decoded *pointcloud.Cloud) (Measures, error) {
	other, err := newSide(decoded)
	if err != nil {
		return Measures{}, err
	}
	matches, reverse := r.side.match(other), other.match(&r.side)
	other.normals = inherit(&r.side, other, matches, reverse)
	a, b := r.side.errors(other, matches), other.errors(&r.side, reverse)
	for i, v := range b {
		a[i] = max(a[i], v)
	}
	y, cb, cr := a[luma], a[blue], a[red]
	return Measures{
		PointToPoint: Geometry{a[toPoint], ratio(3*r.peak*r.peak, a[toPoint])},
		PointToPlane: Geometry{a[toPlane], ratio(3*r.peak*r.peak, a[toPlane])},
		Color:        Color{ratio(255*255, y), ratio(255*255, cb), ratio(255*255, cr), ratio(255*255, (6*y+cb+cr)/8)},
	}, nil
}

// Perceptual measures a decoded cloud by neighbourhoods. Errors wrap ErrCloud; the points of the reference must not all
// coincide. With 70,000 points a call takes about a second on two processors; the first call takes longer.
func (r *Reference) Perceptual(decoded *pointcloud.Cloud) (Perceptual, error) {
	if r.peak == 0 {
		return Perceptual{}, fmt.Errorf("reference: %w: all points coincide", ErrCloud)
	}
	other, err := newSide(decoded)
	if err != nil {
		return Perceptual{}, err
	}
	matches, reverse := r.side.match(other), other.match(&r.side)
	return Perceptual{PCQM: r.pcqm(other, matches), PointSSIM: r.pointSSIM(other, matches, reverse)}, nil
}

// newSide prepares a decoded cloud for comparisons.
func newSide(decoded *pointcloud.Cloud) (*side, error) {
	merged, err := merge(decoded)
	if err != nil {
		return nil, fmt.Errorf("decoded cloud: %w", err)
	}
	return &side{cloud: merged, index: pointcloud.NewIndex(merged)}, nil
}

// ratio returns the ratio of an energy and a mean square error in dB.
func ratio(energy, mse float64) float64 {
	if mse == 0 {
		return math.Inf(1)
	}
	return 10 * math.Log10(energy/mse)
}

// side is one of the two clouds.
type side struct {
	cloud   *pointcloud.Cloud
	index   *pointcloud.Index
	normals [][3]float64
}

// match returns the nearest point of the other side for each point of s.
func (s *side) match(other *side) []int32 {
	found := make([]int32, s.cloud.Len())
	inParallel(len(found), func(begin, end int) {
		for i := begin; i < end; i++ {
			nearest, _ := other.index.Nearest(s.cloud.Positions[i])
			found[i] = int32(nearest)
		}
	})
	return found
}

// Indices of the sums in errors.
const (
	toPoint = iota
	toPlane
	luma
	blue
	red
	measures
)

// errors returns the mean square errors of the points relative to the matches.
func (s *side) errors(other *side, found []int32) [measures]float64 {
	// There is one sum per range of points, and the sums are added in order. The result is
	// therefore the same on any number of processors.
	const stretch = 4096
	sums := make([][measures]float64, (len(found)+stretch-1)/stretch)
	inParallel(len(sums), func(begin, end int) {
		for k := begin; k < end; k++ {
			for i := k * stretch; i < min(len(found), (k+1)*stretch); i++ {
				j := found[i]
				along, square := 0.0, 0.0
				for axis, v := range s.cloud.Positions[i] {
					d := float64(v) - float64(other.cloud.Positions[j][axis])
					square += d * d
					along += d * other.normals[j][axis]
				}
				a, b := signals(s.cloud.Colors[i]), signals(other.cloud.Colors[j])
				sum := &sums[k]
				sum[toPoint] += square
				sum[toPlane] += along * along
				for c := range a {
					d := a[c] - b[c]
					sum[luma+c] += d * d
				}
			}
		}
	})
	var mean [measures]float64
	for _, sum := range sums {
		for i, v := range sum {
			mean[i] += v / float64(len(found))
		}
	}
	return mean
}

// signals returns Y', Cb and Cr of Rec. ITU-R BT.709, section 3, in units of 1/255.
func signals(c [3]uint8) [3]float64 {
	r, g, b := float64(c[0]), float64(c[1]), float64(c[2])
	y := 0.2126*r + 0.7152*g + 0.0722*b
	return [3]float64{y, (b - y) / 1.8556, (r - y) / 1.5748}
}
