package packetlog

import "time"

// Clock is the time base of one engine. Packets and their schedules count nanoseconds from the engine's start. Clock is
// safe for any goroutine.
type Clock struct {
	now     func() time.Time
	started time.Time
}

// NewClock starts a clock that reads the time from now: time.Now except in tests.
func NewClock(now func() time.Time) *Clock { return &Clock{now: now, started: now()} }

// Now returns the current time.
func (c *Clock) Now() time.Time { return c.now() }

// Started returns the time of the engine's start.
func (c *Clock) Started() time.Time { return c.started }

// Since returns t as nanoseconds since the engine's start.
func (c *Clock) Since(t time.Time) int64 { return int64(t.Sub(c.started)) }

// Stamp returns a wall time as nanoseconds since the engine's start, and 0 for the zero time. now is a recent reading
// of the clock, because the wall clock may have been set since the start.
func (c *Clock) Stamp(t, now time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return c.Since(now) - int64(now.Round(0).Sub(t.Round(0)))
}
