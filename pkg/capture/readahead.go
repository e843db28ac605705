package capture

import (
	"context"
	"slices"
	"sync"
)

// readAheadFrames is the number of frames loaded concurrently, including the current one. At 30
// frames per second each load may take 100 ms, on as many processors as there are.
const readAheadFrames = 3

// readAhead loads frames before they are due. Each load runs in its own goroutine, which ends with
// the load. readAhead belongs to one goroutine; a load uses separate memory and returns it by
// closing done. At most readAheadFrames loads run at the same time.
type readAhead struct {
	load    func(index int, into *shot) error
	loading []*loading
	spare   []*loading
	running sync.WaitGroup
}

type loading struct {
	index int
	shot  shot
	err   error
	done  chan struct{}
}

func (r *readAhead) find(index int) int {
	return slices.IndexFunc(r.loading, func(l *loading) bool { return l.index == index })
}

// want starts to load a frame if it is not being loaded and there is room. Completed loads that are
// not among the coming frames make room.
func (r *readAhead) want(index int, coming []int) {
	if r.find(index) >= 0 {
		return
	}
	for i := len(r.loading) - 1; i >= 0; i-- {
		if l := r.loading[i]; !slices.Contains(coming, l.index) && l.finished() {
			r.release(i)
		}
	}
	if len(r.loading) == readAheadFrames {
		return
	}
	l := &loading{}
	if n := len(r.spare); n > 0 {
		l, r.spare = r.spare[n-1], r.spare[:n-1]
	}
	l.index, l.err, l.done = index, nil, make(chan struct{})
	r.loading = append(r.loading, l)
	r.running.Go(func() {
		defer close(l.done)
		l.err = r.load(l.index, &l.shot)
	})
}

func (l *loading) finished() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

func (r *readAhead) release(position int) {
	r.spare = append(r.spare, r.loading[position])
	r.loading = slices.Delete(r.loading, position, position+1)
}

// take waits for a frame. The result is valid until the next want. After a jump all loads may be of
// frames that are no longer needed; take then waits for the oldest load first.
func (r *readAhead) take(ctx context.Context, index int) (*shot, error) {
	for {
		r.want(index, nil)
		position := max(r.find(index), 0)
		l := r.loading[position]
		select {
		case <-l.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		r.release(position)
		if l.index == index {
			return &l.shot, l.err
		}
	}
}

// wait returns when no load is running.
func (r *readAhead) wait() { r.running.Wait() }
