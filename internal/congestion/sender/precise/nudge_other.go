//go:build !linux

package precise

import "time"

// nudge does nothing on this system.
type nudge struct{}

func newNudge() nudge { return nudge{} }

func (*nudge) after(time.Duration) {}

func (*nudge) wait() {}

func (*nudge) works() bool { return false }

func (*nudge) close() {}
