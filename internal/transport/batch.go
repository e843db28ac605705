package transport

import "github.com/volsfu/volsfu/internal/udp"

// Batch collects packets of several peers, so that one system call sends them all (Peer.Post). The peers may belong to
// several endpoints. A Batch belongs to one goroutine at a time. The zero Batch is empty.
type Batch struct{ post udp.Post }

// Send sends the packets in the batch. Packets that cannot be sent are lost, as on the network. The endpoint counts
// lost packets.
func (b *Batch) Send() { b.post.Send() }

// Empty reports whether the batch holds no packets.
func (b *Batch) Empty() bool { return b.post.Empty() }
