package sender

import "github.com/volsfu/volsfu/internal/congestion/pacing"

// maxSpaced bounds the sum of the estimates of the senders that share a Spacing and whose packets leave one by one, in
// bit/s. It is 10,200 packets of 1,224 bytes per second, as many wake-ups at most, and as many system calls: 17 and 4.5
// µs (BenchmarkTicks/spaced, and runPackets in internal/forward/egress), a fifth of a processor core. It is also the
// rate from which on the queue of paper 000 marks packets.
const maxSpaced = 100_000_000

// Spacing bounds the work for receivers to which packets leave one by one (pacing.Path.Spaced), of all senders that
// share the Spacing. A receiver decides with its reports whether they do, so that a hostile receiver could otherwise
// cost a wake-up for each of its packets. Beyond the bound packets leave in the ticks of a smooth path. The zero
// Spacing is ready for use. It belongs to the goroutine of its senders.
type Spacing struct{ taken int64 }

// take reports whether packets on a path leave one by one, and then adds the estimate of the path to the sum.
func (s *Spacing) take(path pacing.Path) bool {
	if !path.Spaced || s.taken+path.Estimate > maxSpaced {
		return false
	}
	s.taken += path.Estimate
	return true
}

// release removes the estimate of a path from the sum if packets leave one by one.
func (s *Spacing) release(path pacing.Path) {
	if path.Spaced {
		s.taken -= path.Estimate
	}
}
