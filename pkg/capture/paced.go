package capture

import (
	"context"
	"time"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// content is what a paced source shows: a cloud for every frame number, in any order.
type content interface {
	// render replaces the cloud by the frame of this number. It is called by one goroutine at a time.
	render(ctx context.Context, number int64, into *pointcloud.Cloud) error
	close()
}

// schedule says when frames are due. Every deadline is counted from the start, so that waking late never moves the ones after it.
type schedule struct {
	start time.Time
	rate  float64
}

// due is the deadline of a frame. The product is exact to the nanosecond for the first 104 days (2^53 ns).
func (s schedule) due(number int64) time.Time {
	return s.start.Add(time.Duration(float64(number) * float64(time.Second) / s.rate))
}

// newest is the number of the latest frame that is due, negative before the start.
func (s schedule) newest(now time.Time) int64 {
	number := int64(now.Sub(s.start).Seconds() * s.rate)
	// The division rounds: settle on the frame whose interval holds now.
	for s.due(number).After(now) {
		number--
	}
	for !s.due(number + 1).After(now) {
		number++
	}
	return number
}

// paced makes a Source of content by waiting for each frame's deadline.
type paced struct {
	clock    Clock
	content  content
	info     Info
	schedule schedule
	next     int64
	closed   bool
}

func newPaced(clock Clock, content content, info Info) *paced {
	return &paced{clock: clock, content: content, info: info, schedule: schedule{rate: info.FrameRate}}
}

// Info implements Source.
func (p *paced) Info() Info { return p.info }

// Read implements Source. The first frame is due when it is first called.
func (p *paced) Read(ctx context.Context, frame *Frame) error {
	if p.closed {
		return ErrClosed
	}
	if p.schedule.start.IsZero() {
		p.schedule.start = p.clock.Now()
	}
	if err := p.clock.Wait(ctx, p.schedule.due(p.next)); err != nil {
		return err
	}
	now := p.clock.Now()
	frame.Number = max(p.next, p.schedule.newest(now))
	frame.Skipped = frame.Number - p.next
	// Counted back from now, the wall clock part follows a clock that was set since the start; the monotonic part is the deadline's.
	frame.Capture = now.Add(p.schedule.due(frame.Number).Sub(now))
	p.next = frame.Number + 1
	return p.content.render(ctx, frame.Number, &frame.Cloud)
}

// Close implements Source.
func (p *paced) Close() error {
	if !p.closed {
		p.closed = true
		p.content.close()
	}
	return nil
}
