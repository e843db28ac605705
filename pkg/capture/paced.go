package capture

import (
	"context"
	"sort"
	"time"
)

// content renders the frames of a paced source by frame number, in any order.
type content interface {
	// render replaces the frame's cloud and images by those of the given number. One goroutine at a
	// time calls render.
	render(ctx context.Context, number int64, into *Frame) error
	close() error
}

// schedule determines the deadlines of frames. Every deadline is counted from the start, so that a
// late wake-up does not delay later frames.
type schedule interface {
	// due returns the deadline of a frame.
	due(start time.Time, number int64) time.Time
	// newest returns the number of the latest frame that is due, negative before the start.
	newest(start, now time.Time) int64
}

// steady is a schedule with a constant rate in frames per second.
type steady float64

// due implements schedule. The product is exact to the nanosecond for the first 104 days (2^53 ns).
func (rate steady) due(start time.Time, number int64) time.Time {
	return start.Add(dueAfter(number, float64(rate)))
}

// dueAfter returns the time from the first frame to another at a constant rate.
func dueAfter(number int64, rate float64) time.Duration {
	return time.Duration(float64(number) * float64(time.Second) / rate)
}

// newest implements schedule.
func (rate steady) newest(start, now time.Time) int64 {
	number := int64(now.Sub(start).Seconds() * float64(rate))
	// The division rounds: find the frame whose interval contains now.
	for rate.due(start, number).After(now) {
		number--
	}
	for !rate.due(start, number+1).After(now) {
		number++
	}
	return number
}

// timetable is a schedule that repeats recorded deadlines.
type timetable struct {
	times  []time.Duration // ascending from 0
	period time.Duration   // longer than the last time
}

// newTimetable returns the schedule of frames with ascending capture times, scaled if the rate differs from the
// recording's own rate. The first frame follows the last after one frame interval.
func newTimetable(captured []time.Duration, own, rate float64) timetable {
	pace := own / rate
	var t timetable
	for _, at := range captured {
		t.times = append(t.times, time.Duration(float64(at-captured[0])*pace))
	}
	t.period = t.times[len(t.times)-1] + time.Duration(float64(time.Second)/rate)
	return t
}

// due implements schedule.
func (t timetable) due(start time.Time, number int64) time.Time {
	frames := int64(len(t.times))
	return start.Add(time.Duration(number/frames)*t.period + t.times[number%frames])
}

// newest implements schedule.
func (t timetable) newest(start, now time.Time) int64 {
	since := now.Sub(start)
	if since < 0 {
		return -1
	}
	later := sort.Search(len(t.times), func(i int) bool { return t.times[i] > since%t.period })
	return int64(since/t.period)*int64(len(t.times)) + int64(later) - 1
}

// paced is a Source that waits for each frame's deadline and renders its content.
type paced struct {
	clock    Clock
	content  content
	info     Info
	schedule schedule
	start    time.Time
	next     int64
	closed   bool
}

// newPaced returns a source that plays content at the frame rate.
func newPaced(clock Clock, content content, info Info) *paced {
	return &paced{clock: clock, content: content, info: info, schedule: steady(info.FrameRate)}
}

// Info implements Source.
func (p *paced) Info() Info { return p.info }

// Read implements Source. The first frame is due at the first call.
func (p *paced) Read(ctx context.Context, frame *Frame) error {
	if p.closed {
		return ErrClosed
	}
	if p.start.IsZero() {
		p.start = p.clock.Now()
	}
	if err := p.clock.Wait(ctx, p.schedule.due(p.start, p.next)); err != nil {
		return err
	}
	now := p.clock.Now()
	frame.Number = max(p.next, p.schedule.newest(p.start, now))
	frame.Skipped = frame.Number - p.next
	// Counted back from now, the wall clock reading follows a clock that was set since the start;
	// the monotonic reading is that of the deadline.
	frame.Capture = now.Add(p.schedule.due(p.start, frame.Number).Sub(now))
	p.next = frame.Number + 1
	return p.content.render(ctx, frame.Number, frame)
}

// Close implements Source.
func (p *paced) Close() error {
	if p.closed {
		return nil
	}
	p.closed = true
	return p.content.close()
}
