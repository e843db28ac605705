package transcode

import (
	"fmt"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

// echo gives back what it is given, once it may.
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

// TestPoolTakesTheNewest has more frames of a stream come than are worked at: the one under way is finished, then comes
// the newest.
func TestPoolTakesTheNewest(t *testing.T) {
	defer goleak.VerifyNone(t)
	p, e := newEchoes(2)
	defer p.Close()
	if p.Submit(1, "first") {
		t.Error("nothing waited")
	}
	// The other worker must not take frames of the stream meanwhile: it would bring them out of order.
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

// TestPoolWorksAtStreamsAtOnce has as many streams as workers, each of which gets what it was given, in order.
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

// TestPoolCloses ends a pool whose results nobody reads, and in which something waits.
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
