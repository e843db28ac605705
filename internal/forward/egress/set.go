package egress

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/trace"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/forward/turn"
	"github.com/volsfu/volsfu/pkg/switching"
)

// Batch collects what several peers send at one time, so that one system call may take it all. A batch belongs to one
// goroutine at a time.
type Batch interface {
	// Send sends what waits in the batch.
	Send()
	// Empty reports whether nothing waits in the batch.
	Empty() bool
}

// Peer is one receiver's peer connection. Its methods are safe for any goroutine.
type Peer interface {
	// Post sends what outlets of the peer have queued, or leaves it to the batch, which the caller sends. Packets that
	// cannot be sent are lost, as they might be on the network. On a closed peer, Post has no effect.
	Post(Batch)
	// Blocked reports whether packets to the peer would be lost on this host: the send buffer had no room for a while, or
	// the remote peer does not consent to being sent anything (RFC 7675). It takes no lock.
	Blocked(now time.Time) bool
	// WriteRTCP sends packets as one compound packet.
	WriteRTCP([]rtcp.Packet) error
	// RTT is the round-trip time, 0 while it is unknown.
	RTT() time.Duration
	// TransportSequenceID is the identifier of the header extension by which all packets of the connection are numbered,
	// in both directions (draft-holmer-rmcat-transport-wide-cc-extensions-01), 0 while there is none. It takes no lock.
	TransportSequenceID() uint8
	// ReportsByStream reports whether the peer reports what it gets by SSRC and sequence number (RFC 8888), and not by the
	// numbers of the extension. It takes no lock.
	ReportsByStream() bool
}

// Config tunes the writers of one engine.
type Config struct {
	// Plan is how frames are spread.
	Plan pacing.Plan
	// MaxLag is the age at which a frame that a writer has not begun yet is dropped. Audio never is.
	MaxLag time.Duration
	// QueueBudget is the age at which a frame that waits for a receiver and has not begun to leave is dropped. 0 is one frame
	// interval, or the time that the plan spreads one over if that is longer.
	QueueBudget time.Duration
	// LateWindow is how long late packets of the former track reach the slot after a switch.
	LateWindow time.Duration
	// KeyFrameInterval is the interval in which the requests of one receiver for key frames are bounded.
	KeyFrameInterval time.Duration
	// ReportInterval is the interval of sender reports.
	ReportInterval time.Duration
	// MaxNACKed bounds the sequence numbers of one slot that are looked up per batch of NACKs.
	MaxNACKed int
	// RetransmissionBurst is the number of retransmissions that a receiver may be sent beyond one per media packet.
	RetransmissionBurst int
	// CutAfter is how long a switch waits for the end of a frame, or for a track that has fallen silent.
	CutAfter time.Duration
	// FrameTimes is set if the times of all frames are measured, also if no receiver asks for them.
	FrameTimes bool
	NACK       feedback.NACKConfig
	Congestion congestion.Config
}

// DefaultConfig is the configuration of a server that does not spread frames.
func DefaultConfig() Config {
	return Config{
		MaxLag:              150 * time.Millisecond,
		LateWindow:          500 * time.Millisecond,
		KeyFrameInterval:    500 * time.Millisecond,
		ReportInterval:      time.Second,
		MaxNACKed:           1024,
		RetransmissionBurst: 1200,
		CutAfter:            switching.DefaultCutAfter,
		NACK:                feedback.DefaultConfig().NACK,
		Congestion:          congestion.DefaultConfig(),
	}
}

// Set is the writers of one engine with their receivers.
type Set struct {
	cfg Config
	// paced is set if packets are held so that frames are spread.
	paced   bool
	clock   *packetlog.Clock
	tracks  *track.Tracks
	pieces  *packetlog.Pieces
	writers []*writer

	slots        atomic.Int64
	lastReceiver atomic.Uint64
	// control counts what happens off the path of packets.
	control counters.Shard

	// running are the goroutines of the writers.
	running sync.WaitGroup

	mu sync.Mutex
	// open are the receivers that are not closed.
	open map[*Receiver]struct{}
}

// NewSet makes writers that do not run yet. Each has one batch, which the peers of its receivers get by Post. Frames that
// receivers take in chunks take their memory from pieces.
func NewSet(cfg Config, clock *packetlog.Clock, tracks *track.Tracks, pieces *packetlog.Pieces, batches []Batch) *Set {
	s := &Set{cfg: cfg, paced: !cfg.Plan.Off(), clock: clock, tracks: tracks, pieces: pieces, open: make(map[*Receiver]struct{})}
	for _, batch := range batches {
		s.writers = append(s.writers, newWriter(s, batch))
	}
	return s
}

// Run starts the writers' goroutines.
func (s *Set) Run() {
	for _, w := range s.writers {
		s.running.Go(w.run)
	}
}

// Step does the work of all writers, if they do not run.
func (s *Set) Step() {
	for _, w := range s.writers {
		w.Work(turn.Forever)
	}
}

// Idle is for how long after Step nothing is due, if the writers do not run.
func (s *Set) Idle() time.Duration {
	idle := forever
	for _, w := range s.writers {
		_, next := w.Idle()
		idle = min(idle, next)
	}
	return idle
}

// Close ends the writers, and waits for their goroutines. An outlet or a peer that blocks makes Close wait.
func (s *Set) Close() {
	for _, w := range s.writers {
		w.turn.Stop()
	}
	s.running.Wait()
}

// receiverLoad is what a receiver counts beside its slots when writers are compared, so that receivers spread before they
// have any.
const receiverLoad = 1

// NewReceiver adds a receiving peer connection, to the writer with the fewest slots. The deadline is how long after its
// first packet the receiver repairs a frame; 0 leaves it to Config.NACK's deadlines.
func (s *Set) NewReceiver(p Peer, deadline time.Duration) *Receiver {
	w := slices.MinFunc(s.writers, func(a, b *writer) int { return int(a.load.Load() - b.load.Load()) })
	w.load.Add(receiverLoad)
	r := newReceiver(w, p, deadline)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[r] = struct{}{}
	return r
}

// dismissed forgets a receiver that is closed.
func (s *Set) dismissed(r *Receiver) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, r)
}

// Paths appends the paths to all receivers, in no order. It is for metrics.
func (s *Set) Paths(paths []Path) []Path {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.open {
		paths = append(paths, r.Path())
	}
	return paths
}

// Stats are the durations that the writers have measured, and gauges.
type Stats struct {
	// Residence is from a packet's arrival until it was sent, for each receiver, without the time that the pacer intended to
	// hold it, which is PacerHold. SwitchDelay is from a slot's selection to the first packet of the new track.
	Residence, PacerHold, SwitchDelay trace.Histogram
	// FrameHold, FrameDistribution and FrameReception are those of trace.Totals.
	FrameHold, FrameDistribution, FrameReception trace.Histogram
	// ActiveSlots carry a track, WaitingSlots wait for the first frame of one.
	Slots, ActiveSlots, WaitingSlots, Receivers int
}

// Stats sums what all writers have measured, and adds what they have counted to a set of counts.
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

// writerStats are what one writer counts: for itself while it forwards, for others whenever it rests.
type writerStats struct {
	counts      counters.Counts
	residence   trace.Durations
	hold        trace.Durations
	switchDelay trace.Durations
	frames      trace.Totals

	public counters.Shard
	// active and waiting are the numbers of slots, up to a tenth of a second ago.
	active, waiting atomic.Int64
}

func (s *writerStats) publish() {
	s.counts[counters.TimesDropped] += s.frames.Dropped
	s.frames.Dropped = 0
	s.public.Merge(&s.counts)
	s.residence.Publish()
	s.hold.Publish()
	s.switchDelay.Publish()
	s.frames.Hold.Publish()
	s.frames.Distribution.Publish()
	s.frames.Reception.Publish()
}

func (s *writerStats) addTo(sum *Stats, counts *counters.Counts) {
	s.public.AddTo(counts)
	s.residence.AddTo(&sum.Residence)
	s.hold.AddTo(&sum.PacerHold)
	s.switchDelay.AddTo(&sum.SwitchDelay)
	s.frames.Hold.AddTo(&sum.FrameHold)
	s.frames.Distribution.AddTo(&sum.FrameDistribution)
	s.frames.Reception.AddTo(&sum.FrameReception)
	sum.ActiveSlots += int(s.active.Load())
	sum.WaitingSlots += int(s.waiting.Load())
}
