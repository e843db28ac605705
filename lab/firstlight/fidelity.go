package firstlight

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/claim"
)

// original is a publisher's capture: every frame of a source, and the grid on which positions are quantised.
type original struct {
	frames []originalFrame
	// step is the distance of neighbouring positions on the grid. bound is the largest distance of a decoded point from
	// its original. Both are in metres.
	step, bound float32
}

type originalFrame struct {
	cloud *pointcloud.Cloud
	index *pointcloud.Index
}

const (
	// publishedPoints and publishedBits have the values of the quality "high" of volpeer publish.
	publishedPoints = 40_000
	publishedBits   = 11
	// maxOriginalFrames bounds the memory for a source that never repeats: 40,000 points of 15 bytes, and as much again
	// for the index.
	maxOriginalFrames = 300
)

// instantClock is a clock that advances immediately instead of waiting.
type instantClock struct{ now time.Time }

// Now implements capture.Clock.
func (c *instantClock) Now() time.Time { return c.now }

// Wait implements capture.Clock.
func (c *instantClock) Wait(ctx context.Context, until time.Time) error {
	if until.After(c.now) {
		c.now = until
	}
	return ctx.Err()
}

// readOriginal reads the frames of a source like a publisher, until the frames repeat. The same options yield the same
// points and the same box.
func readOriginal(ctx context.Context, spec string) (o *original, err error) {
	options := capture.DefaultOptions()
	options.Points = publishedPoints
	source, err := capture.OpenOn(&instantClock{now: time.Unix(0, 0)}, spec, options)
	if err != nil {
		return nil, err
	}
	defer func() { _ = source.Close() }()
	o = newOriginal(source.Info().Box, publishedBits)
	for len(o.frames) < maxOriginalFrames {
		var frame capture.Frame
		if err := source.Read(ctx, &frame); err != nil {
			return nil, err
		}
		if len(o.frames) > 0 && slices.Equal(frame.Cloud.Positions, o.frames[0].cloud.Positions) {
			break
		}
		o.add(&frame.Cloud)
	}
	return o, nil
}

// newOriginal computes the grid: 2^bits - 1 steps along the longest edge of the box. A coordinate is rounded to the
// nearest step, so a point moves by at most half a step along each axis, and by √3 times that in total. The rounding of
// float32 adds four units in the last place of the largest coordinate: one for the source's position, one each for
// scaling, offset and distance.
func newOriginal(box volumetric.BoundingBox, bits int) *original {
	var edge, largest float32
	for axis := range 3 {
		edge = max(edge, box.Max[axis]-box.Min[axis])
		for _, v := range []float32{box.Min[axis], box.Max[axis]} {
			largest = max(largest, float32(math.Abs(float64(v))))
		}
	}
	unit := math.Nextafter32(largest, math.MaxFloat32) - largest
	step := edge / float32(int(1)<<bits-1)
	return &original{step: step, bound: step/2*float32(math.Sqrt(3)) + 4*unit}
}

func (o *original) add(cloud *pointcloud.Cloud) {
	o.frames = append(o.frames, originalFrame{cloud, pointcloud.NewIndex(cloud)})
}

// comparison sums the results of shown frames.
type comparison struct {
	frames, points int
	// outside counts points without an original within the bound. farthest is the longest distance of all other points.
	// absent counts original points without a shown point.
	outside, absent int
	farthest        float32
	// sameColor counts points with the colour of an original within the bound, nearestColor points with the colour of
	// the nearest original.
	sameColor, nearestColor int
	// mixed counts frames with a tile of an earlier frame because the tile was late. partial counts frames without a
	// tile of which no frame had arrived.
	mixed, partial int
	bound          float32
	step           float32
}

func (o *original) newComparison() *comparison { return &comparison{bound: o.bound, step: o.step} }

// compare compares saved frames with the capture.
func (o *original) compare(ctx context.Context, names []string) (*comparison, error) {
	c := o.newComparison()
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var shown pointcloud.Cloud
		if err := readPLY(name, &shown); err != nil {
			return nil, err
		}
		o.compareFrame(&shown, c)
	}
	return c, nil
}

func readPLY(name string, into *pointcloud.Cloud) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := pointcloud.ReadPLY(f, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// compareFrame finds the captured frame of a shown frame, and compares their points in both directions. A late tile is
// shown as in the previous frame. Points that do not belong to the best frame may therefore belong to one other frame;
// then the shown frame counts as mixed.
func (o *original) compareFrame(shown *pointcloud.Cloud, c *comparison) {
	c.frames++
	c.points += shown.Len()
	best := &o.frames[o.best(shown, all(shown.Len()))]
	rest := c.take(shown, all(shown.Len()), best)
	if len(rest) == 0 {
		c.countAbsent(shown, best)
		return
	}
	second := &o.frames[o.best(shown, rest)]
	left := c.take(shown, rest, second)
	if len(left) < len(rest) {
		c.mixed++
	} else {
		c.countAbsent(shown, best)
	}
	for _, i := range left {
		_, distance := best.index.Nearest(shown.Positions[i])
		if _, other := second.index.Nearest(shown.Positions[i]); min(distance, other) > o.bound {
			c.outside++
		}
	}
}

func all(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// sampled is the number of points that select the captured frame of a shown frame.
const sampled = 500

// best returns the index of the captured frame that explains most of the points.
func (o *original) best(shown *pointcloud.Cloud, points []int) int {
	best, most := 0, -1
	for i := range o.frames {
		explained := 0
		for j := 0; j < len(points); j += max(1, len(points)/sampled) {
			if _, distance := o.frames[i].index.Nearest(shown.Positions[points[j]]); distance <= o.bound {
				explained++
			}
		}
		if explained > most {
			best, most = i, explained
		}
	}
	return best
}

// take counts the points that have an original of their colour within the bound, and returns the other points. Several
// originals may share a cell of the grid. Each decoded point then represents one original, and which one is unknown, so
// that the colour of any original in the cell is correct.
func (c *comparison) take(shown *pointcloud.Cloud, points []int, frame *originalFrame) []int {
	var rest, near []int
	for _, i := range points {
		color := shown.Colors[i]
		nearest, distance := frame.index.Nearest(shown.Positions[i])
		if distance > c.bound {
			rest = append(rest, i)
			continue
		}
		if frame.cloud.Colors[nearest] == color {
			c.nearestColor++
		} else {
			near = frame.index.Within(shown.Positions[i], c.bound, near[:0])
			if !slices.ContainsFunc(near, func(j int) bool { return frame.cloud.Colors[j] == color }) {
				rest = append(rest, i)
				continue
			}
		}
		c.sameColor++
		c.farthest = max(c.farthest, distance)
	}
	return rest
}

// countAbsent counts the captured points that no shown point represents. A frame with fewer points than captured lacks
// tiles. Which tiles cannot be determined, so only the frame is counted.
func (c *comparison) countAbsent(shown *pointcloud.Cloud, frame *originalFrame) {
	if shown.Len() < frame.cloud.Len() {
		c.partial++
		return
	}
	index := pointcloud.NewIndex(shown)
	for _, p := range frame.cloud.Positions {
		if _, distance := index.Nearest(p); distance > c.bound {
			c.absent++
		}
	}
}

// lines returns the figures.
func (c *comparison) lines(prefix string) []claim.Line {
	const millimetre = 1000
	share := func(n int) float64 { return 100 * float64(n) / float64(max(c.points, 1)) }
	return []claim.Line{
		claim.Information(prefix+"shown frames compared", float64(c.frames), ""),
		claim.AtLeast(prefix+"frames shown with all tiles of one capture", float64(c.frames-c.mixed-c.partial), "", 1),
		claim.Information(prefix+"points compared", float64(c.points), ""),
		claim.Information(prefix+"step of the quantisation", float64(c.step)*millimetre, "mm"),
		claim.AtMost(prefix+"farthest point from its original", float64(c.farthest)*millimetre, "mm",
			float64(c.bound)*millimetre),
		claim.Exactly(prefix+"points without an original within the bound", int64(c.outside), "", 0),
		claim.Exactly(prefix+"originals without a point within the bound", int64(c.absent), "", 0),
		claim.AtLeast(prefix+"points with the colour of an original in their cell", share(c.sameColor), "%", 100),
		claim.Information(prefix+"points with the colour of the nearest original", share(c.nearestColor), "%"),
		claim.Information(prefix+"frames with a late tile of an earlier capture", float64(c.mixed), ""),
		claim.Information(prefix+"frames shown before every tile had arrived", float64(c.partial), ""),
	}
}
