package reflector

import (
	"sync"

	"github.com/volsfu/volsfu/lab/carriage"
)

// Fanout hands what one client sends to all others, through a bounded queue each: a client that does not take its packets loses what does not fit. It
// is safe for concurrent use.
type Fanout[T any] struct {
	size int

	mu     sync.Mutex
	queues map[*Outbox[T]]bool
	counts carriage.Relayed
}

// Outbox is what one client is to get. Its owner reads Packets until it leaves.
type Outbox[T any] struct{ packets chan T }

// NewFanout makes one with queues of so many packets.
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

// Leave takes a client out. Its packets end.
func (f *Fanout[T]) Leave(o *Outbox[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.queues[o] {
		delete(f.queues, o)
		close(o.packets)
	}
}

// Packets brings what the client is to get, and is closed when it has left.
func (o *Outbox[T]) Packets() <-chan T { return o.packets }

// Spread gives a packet of so many bytes to all but the one it came from.
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

// Counts are what was relayed so far.
func (f *Fanout[T]) Counts() carriage.Relayed {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts
}
