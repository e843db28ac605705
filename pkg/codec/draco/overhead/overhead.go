// Package overhead measures what package draco takes when it is called from Go, beside the same in
// C++ and beside Draco itself. Its one function shares nothing.
package overhead

import "time"

// Measurement is what coding a cloud takes, in processor time of one thread per frame. Times are
// medians over turns of a few frames each, taken in turn, so that whatever else the machine does
// weighs on all of them.
type Measurement struct {
	// Codec is package draco's encoder or decoder, called from Go.
	Codec time.Duration
	// Core is the same called in a loop in C++.
	Core time.Duration
	// Overhead is what calling the codec from Go costs, as a part of its own time: the median of
	// the turns' Codec / Core - 1.
	Overhead float64
	// Draco is Draco's own encoder or decoder in a loop in C++, between arrays of points and the bytes of a frame.
	Draco time.Duration
	// Allocations and AllocatedBytes are those of Go's heap per frame of Codec.
	Allocations, AllocatedBytes float64
	// Bytes and DracoBytes are the sizes of the frames.
	Bytes, DracoBytes int
}
