package forward

import (
	"runtime"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/forward/ingress"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/track"
)

// Peer is one peer connection, of a publisher and of a receiver at once.
type Peer interface {
	ingress.Peer
	egress.Peer
}

// Engine is the data plane of one server: its tracks, the publishers' connections that fill them, and the receivers
// that are sent them. Its methods are safe for any goroutine.
type Engine struct {
	cfg       Config
	paced     bool
	pieces    *packetlog.Pieces
	tracks    *track.Tracks
	ingresses *ingress.Set
	writers   *egress.Set
}

// NewEngine starts an engine. Each writer has one batch, which the peers of its receivers get by Post. The caller
// ends the engine with Close.
func NewEngine(cfg Config, newBatch func() egress.Batch) *Engine {
	e := newEngine(cfg, time.Now, newBatch)
	e.writers.Run()
	return e
}

// newEngine makes an engine whose writers do not run.
func newEngine(cfg Config, now func() time.Time, newBatch func() egress.Batch) *Engine {
	plan, err := cfg.Pacing.Plan()
	if err != nil {
		panic("a configuration is to be validated before it is used: " + err.Error())
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

// Close ends all ingresses and writers, and waits for their goroutines. Later calls of methods of tracks, slots and
// receivers have no effect. An outlet or a peer that blocks makes Close wait: their connections are to be closed first.
func (e *Engine) Close() {
	e.ingresses.Close()
	e.tracks.Close()
	e.writers.Close()
	e.ingresses.Wait()
}

// NewTrack adds a track. Nothing comes on it until Ingress.Bind.
func (e *Engine) NewTrack(cfg track.Config) *track.Track { return e.tracks.New(cfg) }

// NewIngress adds a publisher's peer connection. The caller ends it with Close.
func (e *Engine) NewIngress(p ingress.Peer) *ingress.Ingress { return e.ingresses.New(p) }

// NewReceiver adds a receiving peer connection, to the writer with the fewest slots. The deadline is how long after its
// first packet the receiver repairs a frame; 0 leaves it to Config.NACK's deadlines.
func (e *Engine) NewReceiver(p egress.Peer, deadline time.Duration) *egress.Receiver {
	return e.writers.NewReceiver(p, deadline)
}

// Paths appends the paths to all receivers, in no order. It is for metrics.
func (e *Engine) Paths(paths []egress.Path) []egress.Path { return e.writers.Paths(paths) }

// StartRate is the first estimate of receivers that name no rate, in bit/s.
func (e *Engine) StartRate() congestion.Bitrate { return e.cfg.Congestion.Limits().Start }

// Stats sums the counts of all writers and ingresses.
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
