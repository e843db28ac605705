package transcode

import (
	"fmt"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

// echo returns its input once permitted.
type echo struct {
	may   chan struct{}
	works *atomic.Int64
}

func (e echo) Do(in string) string {
	e.works.Add(1)
	<-e.may
	return in
}

func newEchoes(workers int) (*Pool[int, string, string], echo) {
	e := echo{make(chan struct{}), new(atomic.Int64)}
	var list []Worker[string, string]
	for range workers {
		list = append(list, e)
	}
	return NewPool[int](list), e
}

// TestPoolProcessesTheNewest submits more frames of a stream than are processed: the frame in progress is finished,
// then the newest is processed.
func TestPoolProcessesTheNewest(t *testing.T) {
	defer goleak.VerifyNone(t)
	p, e := newEchoes(2)
	defer p.Close()
	if p.Submit(1, "first") {
		t.Error("nothing waited")
	}
	// The other worker must not process frames of the stream meanwhile, because the order would be lost.
	for e.works.Load() == 0 {
		continue
	}
	for i, text := range []string{"second", "third", "fourth"} {
		if superseded := p.Submit(1, text); superseded != (i > 0) {
			t.Errorf("%s supersedes: %v", text, superseded)
		}
	}
	for _, want := range []string{"first", "fourth"} {
		e.may <- struct{}{}
		if got := <-p.Results(); got != want {
			t.Errorf("%q, expected %q", got, want)
		}
	}
	if n := e.works.Load(); n != 2 {
		t.Errorf("%d frames were worked at, expected 2", n)
	}
}

// TestPoolWorksAtStreamsAtOnce processes as many streams as there are workers. The results of each stream are in order.
func TestPoolWorksAtStreamsAtOnce(t *testing.T) {
	defer goleak.VerifyNone(t)
	const streams, frames = 3, 100
	p, e := newEchoes(streams)
	defer p.Close()
	close(e.may)
	next := [streams]int{}
	submit := func(stream int) { p.Submit(stream, fmt.Sprintf("%d %d", stream, next[stream])) }
	for stream := range streams {
		submit(stream)
	}
	for range streams * frames {
		var stream, number int
		if _, err := fmt.Sscanf(<-p.Results(), "%d %d", &stream, &number); err != nil {
			t.Fatal(err)
		}
		if number != next[stream] {
			t.Fatalf("stream %d brings frame %d, expected %d", stream, number, next[stream])
		}
		if next[stream]++; next[stream] < frames {
			submit(stream)
		}
	}
}

// TestPoolCloses closes a pool with unread results and a waiting item.
func TestPoolCloses(t *testing.T) {
	defer goleak.VerifyNone(t)
	p, e := newEchoes(1)
	close(e.may)
	for stream := range 5 {
		p.Submit(stream, "unread")
	}
	p.Close()
	if n := e.works.Load(); n > 1 {
		t.Errorf("%d frames were worked at, expected one at most", n)
	}
}
