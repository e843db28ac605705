package carriage

import (
	"context"
	"errors"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrEnded says that the other end has gone, or has said that nothing more comes.
var ErrEnded = errors.New("the other end has ended")

// Arrival is a frame as it came.
type Arrival struct {
	// Data is the frame with its envelope, whole or with holes; it is the taker's to keep.
	Data []byte
	// First and Last are when the first and the last packet of it came (of a byte stream: when the first and the last of its bytes were read), Whole
	// when the transport knew that it was whole.
	First, Last, Whole time.Time
}

// Taker takes what arrives. Several goroutines may call it.
type Taker interface {
	Take(a *Arrival)
}

// Departure is when a frame left, as far as the transport knows; a time is zero where it does not.
type Departure struct {
	// First and Last are when its first and its last packet began to leave (of a byte stream: when writing began and ended).
	First, Last time.Time
	// Copies is how many receivers it was handed over to; it is 1 where a server multiplies.
	Copies int
}

// Traffic is what an end moved, with the transport's own headers but without those of TCP, UDP and IP.
type Traffic struct {
	Sent, Received int64
}

// End is one end of a transport: it takes what is published here and gives what arrives. Its methods are safe for concurrent use.
type End interface {
	// Run moves frames until the context ends, which is no error, or nothing can come any more. What arrives is handed to the taker.
	Run(ctx context.Context, to Taker) error
	// Ready waits until frames can be sent: until the server, or whoever takes them, is there.
	Ready(ctx context.Context) error
	// Wanted tells whether a tile is to be encoded and sent at a quality now.
	Wanted(tile int, quality volumetric.Quality) bool
	// Send sends a frame, and returns when the transport has taken it. The frame is the caller's again then. Frames of one tile at one quality come
	// one after the other, others at the same time. A frame that nobody takes is no error.
	Send(ctx context.Context, f *Frame) (Departure, error)
	// Choose asks for a quality of each tile that is watched; volumetric.QualityOff for none.
	Choose(ctx context.Context, qualities []volumetric.Quality) error
	// Traffic is what was moved so far.
	Traffic() Traffic
	// Close ends what is left. It is called once Run has returned.
	Close() error
}

// Estimator is an End whose congestion control tells what it estimates.
type Estimator interface {
	// Estimates are all so far, in the order of time, by their time since an instant.
	Estimates(since time.Time) []Estimate
}

// Informed is an End whose server tells it what it estimates of the way to it.
type Informed interface {
	// Downlink are all so far, in the order of time, by their time since an instant. Each holds until the next.
	Downlink(since time.Time) []Estimate
}
