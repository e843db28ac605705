package control

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/volsfu/volsfu/lab/rival"
	"github.com/volsfu/volsfu/lab/topology"
)

// rivals are the competitors of a hosted run. The zero value has none. It belongs to the goroutine of the run.
type rivals struct {
	sinks   []*rival.Sink
	cubics  *rival.Iperf
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	failed error
}

// startPragues starts transfers with Prague from hostRival to hostSink.
func (r *rivals) startPragues(n *topology.Network, flows int) error {
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	for i := range flows {
		var sink *rival.Sink
		err := n.Inside(hostSink, func() (err error) {
			sink, err = rival.Listen(netip.AddrPortFrom(n.Address(hostSink), 0))
			return err
		})
		if err != nil {
			return fmt.Errorf("competitor %d: %w", i+1, err)
		}
		r.sinks = append(r.sinks, sink)
		var sender *rival.Sender
		err = n.Inside(hostRival, func() (err error) {
			sender, err = rival.Open(sink.Address())
			return err
		})
		if err != nil {
			return fmt.Errorf("competitor %d: %w", i+1, err)
		}
		r.running.Go(func() {
			if _, err := sender.Run(ctx); err != nil {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.failed = errors.Join(r.failed, fmt.Errorf("competitor %d: %w", i+1, err))
			}
		})
	}
	return nil
}

// startCubics starts flows of TCP with Cubic from hostRival to hostSink for a time.
func (r *rivals) startCubics(ctx context.Context, n *topology.Network, flows int, length time.Duration) (err error) {
	r.cubics, err = rival.StartCubic(ctx, n, hostRival, hostSink, flows, length)
	return err
}

// failure returns the errors of competitors that have ended with a failure.
func (r *rivals) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cubics != nil {
		return errors.Join(r.failed, r.cubics.Failure())
	}
	return r.failed
}

// stop ends all competitors. Further calls have no effect.
func (r *rivals) stop() {
	if r.cancel != nil {
		r.cancel()
	}
	r.running.Wait()
	for _, s := range r.sinks {
		_ = s.Close()
	}
	r.sinks = nil
	if r.cubics != nil {
		r.cubics.Stop()
		r.cubics = nil
	}
}
