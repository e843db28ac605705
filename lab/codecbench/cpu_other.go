//go:build !linux

package codecbench

import "time"

// processorTime returns 0, because the processor time is unknown on this system.
func processorTime() time.Duration { return 0 }
