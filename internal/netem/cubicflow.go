package netem

import (
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
)

// CubicFlow is an endless Cubic transfer through a Link, with the methods of a transfer: Next, Step, Receive and Stop.
type CubicFlow struct {
	transfer
	cubic *Cubic
}

// NewCubicFlow returns a transfer without ECN that begins at start. Its packets have the given Packet.Flow, and
// acknowledgements take the time back.
func NewCubicFlow(flow uint64, back time.Duration, start time.Time) *CubicFlow {
	cubic := NewCubic()
	return &CubicFlow{transfer: transfer{flow: flow, back: back, sender: cubic, start: start}, cubic: cubic}
}

// NewECNCubicFlow returns the same transfer with classic ECN (RFC 3168): packets leave as ECT(0).
func NewECNCubicFlow(flow uint64, back time.Duration, start time.Time) *CubicFlow {
	f := NewCubicFlow(flow, back, start)
	f.ecn = ecn.ECT0
	return f
}

// Stats returns the statistics of the sender.
func (f *CubicFlow) Stats() CubicStats { return f.cubic.Stats() }
