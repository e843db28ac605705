package netem

import (
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
)

// PragueFlow is an endless Prague transfer through a Link, with the methods of a transfer: Next, Step, Receive and
// Stop. Its packets leave as ECT(1).
type PragueFlow struct {
	transfer
	prague *Prague
}

// NewPragueFlow returns a transfer that begins at start. Its packets have the given Packet.Flow, and acknowledgements
// take the time back.
func NewPragueFlow(flow uint64, back time.Duration, start time.Time) *PragueFlow {
	prague := NewPrague()
	return &PragueFlow{transfer: transfer{flow: flow, back: back, ecn: ecn.ECT1, sender: prague, start: start},
		prague: prague}
}

// Stats returns the statistics of the sender.
func (f *PragueFlow) Stats() PragueStats { return f.prague.Stats() }
