package forward

import (
	"runtime"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/forward/ingress"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/track"
)

// Peer is one peer connection, which publishes and receives.
type Peer interface {
	ingress.Peer
	egress.Peer
}

// Engine is the data plane of one server: the tracks, the publishers' connections that fill the tracks, and the
// receivers. The methods are safe for any goroutine.
type Engine struct {
	cfg       Config
	paced     bool
	pieces    *packetlog.Pieces
	tracks    *track.Tracks
	ingresses *ingress.Set
	writers   *egress.Set
}

// NewEngine starts an engine. newBatch is called once per writer; the writer passes its batch to the peers of its
// receivers with Post. The caller ends the engine with Close.
func NewEngine(cfg Config, newBatch func() egress.Batch) *Engine {
	e := newEngine(cfg, time.Now, newBatch)
	e.writers.Run()
	return e
}

// newEngine returns an engine whose writers do not run.
func newEngine(cfg Config, now func() time.Time, newBatch func() egress.Batch) *Engine {
	plan, err := cfg.Pacing.Plan()
	if err != nil {
		panic("the configuration must be validated before use: " + err.Error())
	}
	clock, budget := packetlog.NewClock(now), packetlog.NewBudget(cfg.CacheBytes)
	e := &Engine{
		cfg:    cfg,
		paced:  !plan.Off(),
		pieces: packetlog.NewPieces(budget),
		tracks: track.NewTracks(clock, packetlog.Limits{Age: cfg.CacheAge, Bytes: cfg.TrackCacheBytes}, budget),
	}
	n := cfg.Writers
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	batches := make([]egress.Batch, n)
	for i := range batches {
		batches[i] = newBatch()
	}
	e.ingresses = ingress.NewSet(cfg.ingress(plan), clock, e.pieces)
	e.writers = egress.NewSet(cfg.egress(plan), clock, e.tracks, e.pieces, batches)
	return e
}

// Close ends all ingresses and writers and waits for their goroutines. Later calls of methods of tracks, slots and
// receivers have no effect. A blocked outlet or peer blocks Close, so the caller closes the connections first.
func (e *Engine) Close() {
	e.ingresses.Close()
	e.tracks.Close()
	e.writers.Close()
	e.ingresses.Wait()
}

// NewTrack adds a track. The track has no packets until Ingress.Bind.
func (e *Engine) NewTrack(cfg track.Config) *track.Track { return e.tracks.New(cfg) }

// NewIngress adds the peer connection of a publisher. The caller ends the ingress with Close.
func (e *Engine) NewIngress(p ingress.Peer) *ingress.Ingress { return e.ingresses.New(p) }

// NewReceiver adds a receiving peer connection to the writer with the fewest slots. The deadline is the time after the
// first packet of a frame within which the receiver repairs the frame; 0 selects the deadlines of Config.NACK.
func (e *Engine) NewReceiver(p egress.Peer, deadline time.Duration) *egress.Receiver {
	return e.writers.NewReceiver(p, deadline)
}

// NewRelay adds another server as a receiver, which is sent packets unpaced and with unchanged timestamps, within an
// estimate of limits of its own.
func (e *Engine) NewRelay(p egress.Peer, limits congestion.Limits) *egress.Receiver {
	return e.writers.NewRelay(p, limits)
}

// Paths appends the paths to all receivers, in no particular order, for metrics.
func (e *Engine) Paths(paths []egress.Path) []egress.Path { return e.writers.Paths(paths) }

// Receptions appends the receptions of all receivers, in no particular order.
func (e *Engine) Receptions(to []egress.Reception) []egress.Reception {
	return e.writers.Receptions(to)
}

// PublisherHops returns the numbers of publishers that have sent packets in the last second, by ECN codepoint: ecn.CE
// if a packet was marked, and the most frequent codepoint otherwise.
func (e *Engine) PublisherHops() [ecn.CE + 1]int { return e.ingresses.Hops() }

// StartRate returns the initial estimate in bit/s for receivers that state no rate.
func (e *Engine) StartRate() congestion.Bitrate { return e.cfg.Congestion.Limits().Start }

// Stats sums the counters of all writers and ingresses.
func (e *Engine) Stats() counters.Stats {
	var sum counters.Counts
	sent := e.writers.Stats(&sum)
	s := counters.Stats{
		Paced:             e.paced,
		Residence:         sent.Residence,
		PacerHold:         sent.PacerHold,
		SwitchDelay:       sent.SwitchDelay,
		FrameHold:         sent.FrameHold,
		FrameDistribution: sent.FrameDistribution,
		FrameReception:    sent.FrameReception,
		Slots:             sent.Slots,
		ActiveSlots:       sent.ActiveSlots,
		WaitingSlots:      sent.WaitingSlots,
		Receivers:         sent.Receivers,
		Ingresses:         e.ingresses.AddTo(&sum),
	}
	s.Tracks, s.CacheBytes = e.tracks.Usage()
	s.CacheBytes += e.pieces.Used()
	s.Take(&sum)
	return s
}
