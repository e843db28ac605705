package transcode

import "sync"

// Worker does the work of one goroutine.
type Worker[In, Out any] interface {
	// Do works at one thing.
	Do(In) Out
}

// Pool has workers work at things that come in streams, named by keys. Its methods are safe for concurrent use.
type Pool[Key comparable, In, Out any] struct {
	results chan Out
	stop    chan struct{}
	workers sync.WaitGroup

	mu     sync.Mutex
	wake   sync.Cond
	closed bool
	// waiting are the newest things that nobody works at, and busy the streams of those that somebody does. queue is
	// the order of the streams that wait and are not busy.
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

// Submit has something of a stream worked at, and tells whether it takes the place of something older that nobody had
// begun.
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

// Results brings what was made, that of each stream in order. Workers wait until it is read.
func (p *Pool[Key, In, Out]) Results() <-chan Out { return p.results }

// Close ends the workers and waits for them. What waits is dropped, and so is what nobody reads.
func (p *Pool[Key, In, Out]) Close() {
	p.mu.Lock()
	p.closed = true
	p.wake.Broadcast()
	p.mu.Unlock()
	close(p.stop)
	p.workers.Wait()
}

// work works until the pool is closed.
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

// take waits for something to do; it tells false once the pool is closed.
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

// done has the stream's next thing worked at, if there is one.
func (p *Pool[Key, In, Out]) done(key Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.busy, key)
	if _, waits := p.waiting[key]; waits {
		p.queue = append(p.queue, key)
		p.wake.Signal()
	}
}
