package direct

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab/baseline/tcp"
	"github.com/volsfu/volsfu/lab/carriage"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/wait"
)

// arrivals counts frames.
type arrivals struct {
	mu     sync.Mutex
	frames int
}

// Take implements carriage.Taker.
func (a *arrivals) Take(*carriage.Arrival) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.frames++
}

func (a *arrivals) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.frames
}

// TestQualityChangesTwice requests another quality of a tile, and the first one again before the goroutine of the tile
// runs. The tile goes on. The end of the publisher ends the watcher.
func TestQualityChangesTwice(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p, err := Listen(ctx, tcp.Options{}, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := NewWatcher(tcp.Options{}, p.Address(), 1, 0)
	var running sync.WaitGroup
	var publishErr, watchErr error
	publishing, stop := context.WithCancel(ctx)
	got := &arrivals{}
	running.Go(func() { publishErr = p.Run(publishing, nil) })
	running.Go(func() { watchErr = w.Run(ctx, got) })
	frame := func() {
		t.Helper()
		before := got.count()
		wait.Until(t, "a frame", func() bool {
			if _, err := p.Send(ctx, &carriage.Frame{Capture: time.Now(), Bytes: []byte("frame")}); err != nil {
				t.Fatal(err)
			}
			return got.count() > before
		})
	}
	frame()
	w.mu.Lock()
	w.choose([]volumetric.Quality{1})
	w.choose([]volumetric.Quality{0})
	w.mu.Unlock()
	frame()
	stop()
	running.Wait()
	if publishErr != nil || !errors.Is(watchErr, carriage.ErrEnded) {
		t.Errorf("the ends have ended with %v and %v", publishErr, watchErr)
	}
}
