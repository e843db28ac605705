//go:build !linux

package codecbench

import "time"

// processorTime is not known here.
func processorTime() time.Duration { return 0 }
