package reflector

import (
	"sync"

	"github.com/volsfu/volsfu/lab/carriage"
)

// Fanout relays each client's packets to all other clients, through a bounded queue for each client. If a client's
// queue is full, further packets for the client are dropped. A Fanout is safe for concurrent use.
type Fanout[T any] struct {
	size int

	mu     sync.Mutex
	queues map[*Outbox[T]]bool
	counts carriage.Relayed
}

// Outbox is the queue of one client. Its owner reads Packets until it calls Leave.
type Outbox[T any] struct{ packets chan T }

// NewFanout returns a fan-out with queues of size packets.
func NewFanout[T any](size int) *Fanout[T] {
	return &Fanout[T]{size: size, queues: make(map[*Outbox[T]]bool)}
}

// Join adds a client.
func (f *Fanout[T]) Join() *Outbox[T] {
	o := &Outbox[T]{packets: make(chan T, f.size)}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queues[o] = true
	return o
}

// Leave removes a client and closes its queue.
func (f *Fanout[T]) Leave(o *Outbox[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.queues[o] {
		delete(f.queues, o)
		close(o.packets)
	}
}

// Packets returns the client's queue, which is closed when the client has left.
func (o *Outbox[T]) Packets() <-chan T { return o.packets }

// Spread passes a packet of size bytes to all clients except its sender.
func (f *Fanout[T]) Spread(from *Outbox[T], packet T, size int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts.FramesReceived++
	f.counts.BytesReceived += int64(size)
	for o := range f.queues {
		if o == from {
			continue
		}
		select {
		case o.packets <- packet:
		default:
			f.counts.FramesDropped++
		}
	}
}

// Sent counts a packet that has left.
func (f *Fanout[T]) Sent(size int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts.FramesSent++
	f.counts.BytesSent += int64(size)
}

// Counts returns the counts of relaying so far.
func (f *Fanout[T]) Counts() carriage.Relayed {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts
}
