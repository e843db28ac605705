//go:build !linux

package chunks

import "time"

// On other systems, sleeping takes longer than a gap. Transmit spins for the whole gap.
func prepareNaps() {}

func nap(time.Duration) {}
