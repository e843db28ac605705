package forward

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/congestion/sender"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/pkg/switching"
)

// Engine is the data plane of one server: its tracks, its receivers and the writers between them.
type Engine struct {
	cfg     Config
	plan    pacing.Plan
	started time.Time
	// clock is time.Now but in tests.
	clock   func() time.Time
	packets *packetlog.Pool
	budget  *packetlog.Budget
	pieces  pieces
	writers []*writer
	// tracks are the open tracks by switching.TrackID.
	tracks    sync.Map
	lastTrack atomic.Uint64

	slots        atomic.Int64
	lastReceiver atomic.Uint64
	// control counts what happens off the path of packets, and what closed ingresses have counted.
	control shard

	// running are the goroutines of writers and ingresses.
	running sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	ingresses map[*Ingress]struct{}
	// open are the receivers that are not closed.
	open map[*Receiver]struct{}
}

// NewEngine starts an engine. Each writer has one batch, which the peers of its receivers get by Post. The caller
// ends the engine with Close.
func NewEngine(cfg Config, newBatch func() Batch) *Engine {
	e := newEngine(cfg, time.Now, newBatch)
	for _, w := range e.writers {
		e.running.Go(w.run)
	}
	return e
}

// newEngine makes an engine whose writers do not run.
func newEngine(cfg Config, clock func() time.Time, newBatch func() Batch) *Engine {
	plan, err := cfg.Pacing.Plan()
	if err != nil {
		panic("a configuration is to be validated before it is used: " + err.Error())
	}
	e := &Engine{
		cfg:       cfg,
		plan:      plan,
		clock:     clock,
		started:   clock(),
		packets:   packetlog.NewPool(),
		budget:    packetlog.NewBudget(cfg.CacheBytes),
		ingresses: make(map[*Ingress]struct{}),
		open:      make(map[*Receiver]struct{}),
	}
	e.pieces.cache, e.pieces.limit = e.budget, cfg.CacheBytes/piecesShare
	n := cfg.Writers
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	for range n {
		e.writers = append(e.writers, newWriter(e, newBatch()))
	}
	return e
}

// Close ends all ingresses and writers, and waits for their goroutines. What is called on tracks, slots and receivers afterwards has no effect.
// An outlet or a peer that blocks makes Close wait: their connections are to be closed first.
func (e *Engine) Close() {
	e.mu.Lock()
	closed := e.closed
	e.closed = true
	var open []*Ingress
	for i := range e.ingresses {
		open = append(open, i)
	}
	e.mu.Unlock()
	if closed {
		return
	}
	for _, i := range open {
		i.Close()
	}
	e.tracks.Range(func(_, t any) bool {
		t.(*Track).Close()
		return true
	})
	for _, w := range e.writers {
		w.stop()
	}
	e.running.Wait()
}

// retire keeps what a closed ingress has counted.
func (e *Engine) retire(i *Ingress) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.ingresses, i)
	var c counts
	i.stats.addTo(&c)
	e.control.merge(&c)
}

// StartRate is what the estimates of receivers that name no rate begin with, in bit/s.
func (e *Engine) StartRate() congestion.Bitrate { return e.cfg.Congestion.Limits().Start }

// since gives a time as nanoseconds since the engine's start.
func (e *Engine) since(t time.Time) int64 { return int64(t.Sub(e.started)) }

// paced tells whether packets are held so that frames are spread.
func (e *Engine) paced() bool { return !e.plan.Off() }

// track finds an open track.
func (e *Engine) track(id switching.TrackID) *Track {
	if t, ok := e.tracks.Load(id); ok {
		return t.(*Track)
	}
	return nil
}

// receiverLoad is what a receiver counts beside its slots when writers are compared, so that receivers spread before they have any.
const receiverLoad = 1

// NewReceiver adds a receiving peer connection, to the writer with the fewest slots. The deadline is how long after its first packet the receiver
// repairs a frame; 0 leaves it to Config.NACK's deadlines.
func (e *Engine) NewReceiver(p Peer, deadline time.Duration) *Receiver {
	w := slices.MinFunc(e.writers, func(a, b *writer) int { return int(a.load.Load() - b.load.Load()) })
	w.load.Add(receiverLoad)
	burst := e.cfg.RetransmissionBurst
	r := &Receiver{
		writer: w, serial: e.lastReceiver.Add(1), peer: p, credit: burst, burst: burst, deadline: deadline,
		events: eventList{notify: make(chan struct{}, 1)}, tracer: tracer{notify: make(chan struct{}, 1)}, sender: sender.New[heldPacket, repair](sender.Options{Plan: e.plan}, e.started), pacedIndex: -1,
		lookups: burst * lookupsPerRepair,
	}
	r.chunks.pieces = &e.pieces
	r.tracer.stamping, _ = p.(stampingPeer)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open[r] = struct{}{}
	return r
}

// dismissed forgets a receiver that is closed.
func (e *Engine) dismissed(r *Receiver) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.open, r)
}
