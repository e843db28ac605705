// Package individual chooses how many points of a frame are encoded for one viewer, as section 3.4 of paper 000 has it:
// as many as come to the size that the way to the viewer carries, and no more than where the viewer looks is worth.
// What points come to is learnt from the frames before.
//
// It is pure; a Control belongs to the goroutine that encodes.
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

// ErrConfig is wrapped with what is wrong.
var ErrConfig = errors.New("invalid settings of individual encoding")

// Config says what a frame may take.
type Config struct {
	// FrameRate is how many frames share the rate, per second.
	FrameRate float64
	// Min and Max bound the rate that frames are made for, whatever the estimate: below Min a frame shows nothing. Max
	// of 0 is no bound.
	Min, Max volumetric.Bitrate
	// Share is the part of the rate that frames take, above 0 and up to 1; the rest is for repairs.
	Share float64
	// FragmentBytes is what a packet carries of a frame, PacketBytes what it takes on the wire beside that, and
	// FrameBytes what each frame takes beside what the codec made.
	FragmentBytes, PacketBytes, FrameBytes int
	// BusyShare is the part of the frame interval that encoding may take, above 0 and up to 1.
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

// Bound says what decided on the number of points.
type Bound string

// The bounds.
const (
	BoundRate   Bound = "rate"   // what the way to the viewer carries
	BoundView   Bound = "view"   // where the viewer looks
	BoundTime   Bound = "time"   // what is encoded within the frame interval
	BoundSource Bound = "source" // the source has no more
)

// Choice is how a frame is to be encoded.
type Choice struct {
	// Points is how many, at least 1 of a cloud that has any and is worth anything.
	Points int
	// Target is the size on the wire that the rate allows, in bytes, and Expected what the points should come to.
	Target, Expected int
	Bound            Bound
}

// Control chooses for one viewer and one codec.
type Control struct {
	config Config
	learnt *learnt
	times  times
}

// New makes a Control of a codec with its parameters that has seen nothing yet. Errors wrap ErrConfig.
func New(config Config, c codec.Codec, params codec.Params) (*Control, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	return &Control{config: config, learnt: &learnt{model: model.New(), codec: c, params: params, correction: 1}}, nil
}

// leastObserved is how many points say something of more: the headers of frames with fewer are all that they are.
const leastObserved = 16

// Observe takes what a frame came to: so many points, bytes of the codec, and time to encode.
func (c *Control) Observe(points, bytes int, took time.Duration) {
	if points >= leastObserved && bytes > 0 {
		c.learnt.observe(points, bytes, took)
		c.times.observe(points, took)
	}
}

// Choose says how many of a cloud's points are encoded, given what the way carries and the largest part of the points
// that the view is worth, 0 to 1.
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

// tolerance is by how much of its target a frame may be off it.
const tolerance = 0.05

// Misses tells whether a frame that was encoded as chosen is not within 5 % of its target, given what the codec made of
// it.
func (c *Control) Misses(choice Choice, bytes int) bool {
	return choice.Bound == BoundRate &&
		math.Abs(float64(c.wire(bytes))-float64(choice.Target)) > tolerance*float64(choice.Target)
}

// wire is what a frame takes on the wire, given what the codec made of it.
func (c *Control) wire(bytes int) int {
	bytes += c.config.FrameBytes
	packets := max(1, (bytes+c.config.FragmentBytes-1)/c.config.FragmentBytes)
	return bytes + packets*c.config.PacketBytes
}

// target is what a frame may take on the wire.
func (c *Control) target(estimate volumetric.Bitrate) int {
	rate := max(estimate, c.config.Min)
	if c.config.Max > 0 {
		rate = min(rate, c.config.Max)
	}
	return int(float64(rate) * c.config.Share / 8 / c.config.FrameRate)
}

// content is what the codec may make of a frame that takes so much on the wire.
func (c *Control) content(wire int) int {
	packet := c.config.FragmentBytes + c.config.PacketBytes
	packets := max(1, (wire+packet-1)/packet)
	return max(0, wire-packets*c.config.PacketBytes-c.config.FrameBytes)
}

// Wanted is the rate at which frames of so many points would be sent if the way carried anything, given what the view
// is worth: where it is more than the way carries, it is worth finding out whether that has become more.
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
