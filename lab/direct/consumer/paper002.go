package consumer

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/lab/baseline/chunks"
	"github.com/volsfu/volsfu/lab/direct/stages"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Paper002 is the inlet of paper 002. It is a carry.Taker.
type Paper002 struct {
	consumer *Consumer
	codec    volumetric.FourCC

	mu        sync.Mutex
	assembler *chunks.Assembler
	from      netip.AddrPort
	holes     int64
}

// NewPaper002 returns an inlet for frames of a codec, of at most maxBytes bytes, from one address.
func NewPaper002(c *Consumer, codec volumetric.FourCC, maxBytes int, from netip.AddrPort) *Paper002 {
	return &Paper002{consumer: c, codec: codec, assembler: chunks.NewAssembler(maxBytes), from: from}
}

// Datagram implements carry.Taker.
func (p *Paper002) Datagram(datagram []byte, from netip.AddrPort, _ ecn.Codepoint, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if from != p.from {
		return
	}
	f, closed, err := p.assembler.Push(datagram, now)
	if err != nil || !closed {
		return
	}
	p.holes += int64(f.Holes)
	p.consumer.take(&Arrival{
		Number: f.Number, Codec: p.codec, Data: slices.Clone(f.Data), First: f.First, Last: f.Last, Whole: f.Closed,
		Hash: stages.Hash(f.Data),
	})
}

// Stats returns the counters of the assembler, and the number of chunks that were missing when a later chunk of the
// frame arrived.
func (p *Paper002) Stats() (stats chunks.Stats, holes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.assembler.Stats(), p.holes
}
