package carriage

import (
	"context"
	"errors"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrEnded is returned if the other end has closed, or has announced the end of its frames.
var ErrEnded = errors.New("the other end has ended")

// Arrival is a frame as it arrived.
type Arrival struct {
	// Data is the frame with its envelope, complete or with holes. The Taker owns Data.
	Data []byte
	// First and Last are the arrivals of the first and the last packet of the frame; for a byte stream, the times at
	// which the first and the last byte were read. Whole is the time at which the transport had the complete frame.
	First, Last, Whole time.Time
}

// Taker accepts arrivals. Several goroutines may call Take.
type Taker interface {
	Take(a *Arrival)
}

// Departure has the times at which a frame left, as far as the transport knows them. Unknown times are zero.
type Departure struct {
	// First and Last are when the first and the last packet of the frame began to leave (of a byte stream: when writing
	// began and ended).
	First, Last time.Time
	// Copies is the number of receivers to which the frame was sent; 1 if a server replicates the frame.
	Copies int
}

// Traffic is the traffic of an end in bytes, with the transport's own headers but without those of TCP, UDP and IP.
type Traffic struct {
	Sent, Received int64
}

// End is one end of a transport: an End sends published frames and delivers arriving frames. Its methods are safe for
// concurrent use.
type End interface {
	// Run moves frames until the context ends, which is not an error, or until no more frames can arrive. Arrivals are
	// passed to the taker.
	Run(ctx context.Context, to Taker) error
	// Ready waits until frames can be sent: until the server or the receiving peer is connected.
	Ready(ctx context.Context) error
	// Wanted reports whether a tile is requested at a quality now, so that it is encoded and sent.
	Wanted(tile int, quality volumetric.Quality) bool
	// Send sends a frame, and returns when the transport has accepted the frame. The caller then owns the frame again.
	// Frames of one tile at one quality are sent one after the other, other frames concurrently. A frame without
	// receivers is not an error.
	Send(ctx context.Context, f *Frame) (Departure, error)
	// Choose requests a quality for each watched tile; volumetric.QualityOff for none.
	Choose(ctx context.Context, qualities []volumetric.Quality) error
	// Traffic returns the traffic so far.
	Traffic() Traffic
	// Close releases all resources. Run must have returned.
	Close() error
}

// Estimator is an End whose congestion control reports its estimates.
type Estimator interface {
	// Estimates returns all estimates so far, in the order of time. Times are relative to since.
	Estimates(since time.Time) []Estimate
}

// Informed is an End whose server reports its estimate of the path to the end.
type Informed interface {
	// Downlink returns all estimates so far, in the order of time. Times are relative to since. Each estimate is in
	// force until the next.
	Downlink(since time.Time) []Estimate
}
