// Package individual selects the number of points of a frame that are encoded for one viewer, as in section 3.4 of
// paper 000: as many as fit the bandwidth to the viewer, and no more than the view direction justifies. The size of a
// number of points is learned from earlier frames.
//
// The package is pure. A Control is owned by the encoding goroutine.
package individual

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/model"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrConfig is wrapped with the invalid setting.
var ErrConfig = errors.New("invalid settings of individual encoding")

// Config has the limits of a frame.
type Config struct {
	// FrameRate is the number of frames per second that share the rate.
	FrameRate float64
	// Min and Max bound the rate for which frames are encoded, for any estimate. A frame below Min would be useless. A
	// Max of 0 means no limit.
	Min, Max volumetric.Bitrate
	// Share is the fraction of the rate that frames use, above 0 and up to 1. The rest is for repairs.
	Share float64
	// FragmentBytes is the number of bytes of a frame in a packet, PacketBytes the overhead of a packet on the wire,
	// and FrameBytes the overhead of a frame beyond the data of the codec.
	FragmentBytes, PacketBytes, FrameBytes int
	// BusyShare is the fraction of the frame interval that encoding may use, above 0 and up to 1.
	BusyShare float64
}

func (c *Config) validate() error {
	switch {
	case !(c.FrameRate > 0):
		return fmt.Errorf("%w: %g frames per second, expected more than 0", ErrConfig, c.FrameRate)
	case !(c.Share > 0 && c.Share <= 1):
		return fmt.Errorf("%w: share of the rate is %g, expected above 0 and up to 1", ErrConfig, c.Share)
	case !(c.BusyShare > 0 && c.BusyShare <= 1):
		return fmt.Errorf("%w: share of the interval is %g, expected above 0 and up to 1", ErrConfig, c.BusyShare)
	case c.Min < 0 || c.Max < 0 || c.Max > 0 && c.Max < c.Min:
		return fmt.Errorf("%w: rates from %v to %v", ErrConfig, c.Min, c.Max)
	case c.FragmentBytes < 1 || c.PacketBytes < 0 || c.FrameBytes < 0:
		return fmt.Errorf("%w: packets of %d+%d bytes, frames of %d more", ErrConfig, c.FragmentBytes, c.PacketBytes,
			c.FrameBytes)
	}
	return nil
}

// Bound is the limit that determined the number of points.
type Bound string

// The bounds.
const (
	BoundRate   Bound = "rate"   // bandwidth to the viewer
	BoundView   Bound = "view"   // view direction
	BoundTime   Bound = "time"   // encoding time in the frame interval
	BoundSource Bound = "source" // no more points in the source
)

// Choice is the decision for a frame.
type Choice struct {
	// Points is the number of points. It is at least 1 if the cloud has points and its view limit is above 0.
	Points int
	// Target is the size on the wire that the rate allows, in bytes. Expected is the predicted size of the points on
	// the wire.
	Target, Expected int
	Bound            Bound
}

// Control selects the number of points for one viewer and one codec.
type Control struct {
	config Config
	learnt *learnt
	times  times
}

// New returns a Control without observations for a codec and its parameters. Errors wrap ErrConfig.
func New(config Config, c codec.Codec, params codec.Params) (*Control, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	return &Control{config: config, learnt: &learnt{model: model.New(), codec: c, params: params, correction: 1}}, nil
}

// leastObserved is the smallest number of points of a useful observation. Frames with fewer points consist mostly of
// headers.
const leastObserved = 16

// Observe adds the observation of a frame: points, bytes of the codec, and encoding time.
func (c *Control) Observe(points, bytes int, took time.Duration) {
	if points >= leastObserved && bytes > 0 {
		c.learnt.observe(points, bytes, took)
		c.times.observe(points, took)
	}
}

// Choose returns the number of points to encode. estimate is the bandwidth to the viewer. view is the largest fraction
// of the points that the view direction justifies, 0 to 1.
func (c *Control) Choose(estimate volumetric.Bitrate, points int, view float64) Choice {
	choice := Choice{Target: c.target(estimate)}
	if points <= 0 || !(view > 0) {
		choice.Bound, choice.Expected = BoundSource, c.wire(0)
		if points > 0 {
			choice.Bound = BoundView
		}
		return choice
	}
	choice.Points, choice.Bound = points, BoundSource
	if worth := max(1, int(math.Round(min(view, 1)*float64(points)))); worth < choice.Points {
		choice.Points, choice.Bound = worth, BoundView
	}
	content := c.content(choice.Target)
	if carried := most(choice.Points,
		func(n int) bool { return c.learnt.bytes(n) <= content }); carried < choice.Points {
		choice.Points, choice.Bound = carried, BoundRate
	}
	budget := time.Duration(c.config.BusyShare / c.config.FrameRate * float64(time.Second))
	if encoded := c.times.points(budget, choice.Points); encoded < choice.Points {
		choice.Points, choice.Bound = encoded, BoundTime
	}
	choice.Expected = c.wire(c.learnt.bytes(choice.Points))
	return choice
}

// tolerance is the allowed deviation of a frame from its target.
const tolerance = 0.05

// Misses reports whether an encoded frame is not within 5 % of its target. bytes is the size of the codec's data.
func (c *Control) Misses(choice Choice, bytes int) bool {
	return choice.Bound == BoundRate &&
		math.Abs(float64(c.wire(bytes))-float64(choice.Target)) > tolerance*float64(choice.Target)
}

// wire returns the size of a frame on the wire, given the size of the codec's data.
func (c *Control) wire(bytes int) int {
	bytes += c.config.FrameBytes
	packets := max(1, (bytes+c.config.FragmentBytes-1)/c.config.FragmentBytes)
	return bytes + packets*c.config.PacketBytes
}

// target returns the size of a frame on the wire that the rate allows.
func (c *Control) target(estimate volumetric.Bitrate) int {
	rate := max(estimate, c.config.Min)
	if c.config.Max > 0 {
		rate = min(rate, c.config.Max)
	}
	return int(float64(rate) * c.config.Share / 8 / c.config.FrameRate)
}

// content returns the size of the codec's data in a frame of the given size on the wire.
func (c *Control) content(wire int) int {
	packet := c.config.FragmentBytes + c.config.PacketBytes
	packets := max(1, (wire+packet-1)/packet)
	return max(0, wire-packets*c.config.PacketBytes-c.config.FrameBytes)
}

// Wanted returns the rate of frames with this number of points without a bandwidth limit. If the rate exceeds the
// estimate, probing for more bandwidth is useful.
func (c *Control) Wanted(points int, view float64) volumetric.Bitrate {
	unbounded := *c
	unbounded.config.Max, unbounded.config.Min = 0, 0
	choice := unbounded.Choose(math.MaxInt32, points, view)
	rate := volumetric.Bitrate(float64(choice.Expected) * 8 * c.config.FrameRate / c.config.Share)
	if c.config.Max > 0 {
		rate = min(rate, c.config.Max)
	}
	return max(rate, c.config.Min)
}
