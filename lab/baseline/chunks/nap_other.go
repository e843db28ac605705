//go:build !linux

package chunks

import "time"

// Sleeping takes longer elsewhere than a gap does, which is waited for awake.
func prepareNaps() {}

func nap(time.Duration) {}
