package sfu

import (
	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/internal/transport"
)

// NewBatch returns an empty batch for the engine of a node: peers of the node leave their packets to such batches.
func NewBatch() forward.Batch { return new(transport.Batch) }

// mediaPeer is a peer connection as the data plane sees it. It implements forward.Peer.
type mediaPeer struct{ *transport.Peer }

// Post implements forward.Peer. If the batch is not from NewBatch, the packets leave at once.
func (p mediaPeer) Post(batch forward.Batch) {
	b, _ := batch.(*transport.Batch)
	p.Peer.Post(b)
}
