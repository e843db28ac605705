//go:build !unix

package process

import "time"

// Time returns 0: the processor time is not known on this system.
func Time() time.Duration { return 0 }
