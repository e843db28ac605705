package transport

import "github.com/volsfu/volsfu/internal/udp"

// Batch collects what several peers send at one time, so that one system call takes it all (Peer.Post). It may hold
// packets of peers of several endpoints. It belongs to one goroutine at a time. The zero Batch is empty.
type Batch struct{ post udp.Post }

// Send sends what waits in the batch. Packets that cannot be sent are lost, as they might be on the network. The
// endpoint counts them.
func (b *Batch) Send() { b.post.Send() }

// Empty reports whether nothing waits in the batch.
func (b *Batch) Empty() bool { return b.post.Empty() }
