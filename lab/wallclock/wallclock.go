// Package wallclock is the clock of vollab's processes: the system's clock plus the offset in the environment variable
// VOLSFU_CLOCK_OFFSET. Namespaces share the machine's clock, so that trials of different clocks need the offset.
package wallclock

import (
	"context"
	"fmt"
	"os"
	"time"
)

// Variable is the environment variable with the offset, as in 50ms or -1.5s.
const Variable = "VOLSFU_CLOCK_OFFSET"

// maxShift is far beyond the error of a clock that was never set.
const maxShift = 1000 * time.Hour

// shift is the offset of this process. errShift reports an invalid variable; then shift is 0.
var shift, errShift = parse(os.Getenv(Variable))

func parse(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d.Abs() > maxShift {
		return 0, fmt.Errorf("%s is %.32q, expected a time such as 50ms, of at most %v either way", Variable, text,
			maxShift)
	}
	return d, nil
}

// Shift returns the offset of the clock from the system's clock.
func Shift() time.Duration { return shift }

// Err reports an invalid Variable.
func Err() error { return errShift }

// Now returns the time. Times that are compared with time.Since and time.Until are those of time.Now instead.
func Now() time.Time { return time.Now().Add(shift) }

// Clock implements capture.Clock.
type Clock struct{}

// Now returns the time of the package's Now.
func (Clock) Now() time.Time { return Now() }

// Wait waits until the clock reaches a time. It returns the error of the context if the context ends before.
func (Clock) Wait(ctx context.Context, until time.Time) error {
	timer := time.NewTimer(until.Sub(Now()))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
