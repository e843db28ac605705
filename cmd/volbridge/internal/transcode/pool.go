package transcode

import "sync"

// Worker does the work of one goroutine.
type Worker[In, Out any] interface {
	// Do processes one item.
	Do(In) Out
}

// Pool processes items of several streams, named by keys, on its workers. The methods are safe for concurrent use.
type Pool[Key comparable, In, Out any] struct {
	results chan Out
	stop    chan struct{}
	workers sync.WaitGroup

	mu     sync.Mutex
	wake   sync.Cond
	closed bool
	// waiting has the newest unprocessed item of each stream. busy has the streams of the items that are being
	// processed. queue has the streams that wait and are not busy, in order.
	waiting map[Key]In
	busy    map[Key]bool
	queue   []Key
}

// NewPool starts a goroutine for each worker.
func NewPool[Key comparable, In, Out any](workers []Worker[In, Out]) *Pool[Key, In, Out] {
	p := &Pool[Key, In, Out]{
		results: make(chan Out), stop: make(chan struct{}), waiting: make(map[Key]In), busy: make(map[Key]bool),
	}
	p.wake.L = &p.mu
	for _, w := range workers {
		p.workers.Go(func() { p.work(w) })
	}
	return p
}

// Submit queues an item of a stream. Submit reports whether the item replaces an older one that was not started.
func (p *Pool[Key, In, Out]) Submit(key Key, in In) (superseded bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, superseded = p.waiting[key]
	p.waiting[key] = in
	if !superseded && !p.busy[key] {
		p.queue = append(p.queue, key)
		p.wake.Signal()
	}
	return superseded
}

// Results returns the channel of results. The results of a stream are in order. Workers block until their result is
// read.
func (p *Pool[Key, In, Out]) Results() <-chan Out { return p.results }

// Close ends the workers and waits for them. Waiting items and unread results are discarded.
func (p *Pool[Key, In, Out]) Close() {
	p.mu.Lock()
	p.closed = true
	p.wake.Broadcast()
	p.mu.Unlock()
	close(p.stop)
	p.workers.Wait()
}

// work processes items until the pool is closed.
func (p *Pool[Key, In, Out]) work(w Worker[In, Out]) {
	for {
		key, in, ok := p.take()
		if !ok {
			return
		}
		select {
		case p.results <- w.Do(in):
		case <-p.stop:
			return
		}
		p.done(key)
	}
}

// take waits for an item. take returns false when the pool is closed.
func (p *Pool[Key, In, Out]) take() (key Key, in In, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) == 0 && !p.closed {
		p.wake.Wait()
	}
	if p.closed {
		return key, in, false
	}
	key = p.queue[0]
	p.queue = append(p.queue[:0], p.queue[1:]...)
	in = p.waiting[key]
	delete(p.waiting, key)
	p.busy[key] = true
	return key, in, true
}

// done makes the stream's next item available, if there is one.
func (p *Pool[Key, In, Out]) done(key Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.busy, key)
	if _, waits := p.waiting[key]; waits {
		p.queue = append(p.queue, key)
		p.wake.Signal()
	}
}
