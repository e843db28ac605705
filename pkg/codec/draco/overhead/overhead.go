// Package overhead measures the cost of calling package draco from Go, in comparison with the same functions in C++ and
// with Draco itself. The function shares no state.
package overhead

import "time"

// Measurement contains the cost of coding a cloud, in processor time of one thread per frame. Times
// are medians over turns of a few frames each. The measured functions alternate, so that other load
// on the machine affects all of them.
type Measurement struct {
	// Codec is the time of package draco's encoder or decoder, called from Go.
	Codec time.Duration
	// Core is the time of the same function called in a loop in C++.
	Core time.Duration
	// Overhead is the relative cost of calling the codec from Go: the median over the turns of
	// Codec / Core - 1.
	Overhead float64
	// Draco is the time of Draco's own encoder or decoder in a loop in C++, between arrays of
	// points and the bytes of a frame.
	Draco time.Duration
	// Allocations and AllocatedBytes are allocations on Go's heap per frame of Codec.
	Allocations, AllocatedBytes float64
	// Bytes and DracoBytes are the sizes of the frames.
	Bytes, DracoBytes int
}
