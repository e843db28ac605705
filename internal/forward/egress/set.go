package egress

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/forward/turn"
)

// Set is the set of writers of one engine with their receivers.
type Set struct {
	cfg Config
	// paced is set if packets are held to spread frames.
	paced   bool
	clock   *packetlog.Clock
	tracks  *track.Tracks
	pieces  *packetlog.Pieces
	writers []*writer

	slots        atomic.Int64
	lastReceiver atomic.Uint64
	// control counts events outside the packet path.
	control counters.Shard

	// running are the goroutines of the writers.
	running sync.WaitGroup

	mu sync.Mutex
	// open are the receivers that are not closed.
	open map[*Receiver]struct{}
}

// NewSet returns writers that do not run yet, one per batch. A writer passes its batch to the peers of its receivers
// with Post. The memory of chunked frames counts against pieces.
func NewSet(cfg Config, clock *packetlog.Clock, tracks *track.Tracks, pieces *packetlog.Pieces, batches []Batch) *Set {
	s := &Set{cfg: cfg, paced: !cfg.Plan.Off(), clock: clock, tracks: tracks, pieces: pieces,
		open: make(map[*Receiver]struct{})}
	var turns []*turn.Turn
	for _, batch := range batches {
		w := newWriter(s, batch)
		s.writers, turns = append(s.writers, w), append(turns, w.turn)
	}
	turn.Share(turns)
	return s
}

// Run starts the writers' goroutines.
func (s *Set) Run() {
	for _, w := range s.writers {
		s.running.Go(w.run)
	}
}

// Step does the work of all writers that do not run.
func (s *Set) Step() {
	for _, w := range s.writers {
		w.Work(turn.Forever)
	}
}

// Idle returns the time after Step during which nothing is due, for writers that do not run.
func (s *Set) Idle() time.Duration {
	idle := forever
	for _, w := range s.writers {
		_, next := w.Idle()
		idle = min(idle, next)
	}
	return idle
}

// Close ends the writers and waits for their goroutines. A blocked outlet or peer blocks Close.
func (s *Set) Close() {
	for _, w := range s.writers {
		w.turn.Stop()
	}
	s.running.Wait()
}

// receiverLoad is the load of a receiver beside its slots, so that receivers spread over writers before they have
// slots.
const receiverLoad = 1

// NewReceiver adds a receiving peer connection to the writer with the fewest slots. The deadline is the time after the
// first packet of a frame within which the receiver repairs the frame; 0 selects the deadlines of Config.NACK.
func (s *Set) NewReceiver(p Peer, deadline time.Duration) *Receiver {
	return s.newReceiver(p, &s.cfg, deadline)
}

// NewRelay adds another server as a receiver. Its packets leave when they arrive, with the timestamps of their tracks,
// because the other server paces. The estimate has limits of its own.
func (s *Set) NewRelay(p Peer, limits congestion.Limits) *Receiver {
	cfg := s.cfg
	cfg.Plan = pacing.Plan{}
	cfg.Congestion.Min, cfg.Congestion.Start, cfg.Congestion.Max = limits.Min, limits.Start, limits.Max
	r := s.newReceiver(p, &cfg, 0)
	r.relay = true
	return r
}

// newReceiver adds a receiver with a configuration of its own.
func (s *Set) newReceiver(p Peer, cfg *Config, deadline time.Duration) *Receiver {
	w := slices.MinFunc(s.writers, func(a, b *writer) int { return int(a.load.Load() - b.load.Load()) })
	w.load.Add(receiverLoad)
	r := newReceiver(w, p, cfg, deadline)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[r] = struct{}{}
	return r
}

// remove removes a closed receiver.
func (s *Set) remove(r *Receiver) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, r)
}

// Paths appends the paths to all receivers, in no particular order, for metrics.
func (s *Set) Paths(paths []Path) []Path {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.open {
		paths = append(paths, r.Path())
	}
	return paths
}

// Receptions appends the receptions of all receivers, in no particular order, up to a tenth of a second old. The
// packets of a receiver are counted from the first call of Receptions, which does not include the receiver yet.
func (s *Set) Receptions(to []Reception) []Reception {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.open {
		if reception, ok := r.reception(); ok {
			to = append(to, reception)
		}
	}
	return to
}

// Stats sums the measurements of all writers, and adds their counters to sum.
func (s *Set) Stats(sum *counters.Counts) Stats {
	stats := Stats{Slots: int(s.slots.Load())}
	for _, w := range s.writers {
		w.stats.addTo(&stats, sum)
	}
	s.control.AddTo(sum)
	s.mu.Lock()
	defer s.mu.Unlock()
	stats.Receivers = len(s.open)
	return stats
}
