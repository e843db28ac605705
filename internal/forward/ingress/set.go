// Package ingress takes the packets of publishers: it puts each packet once, with its facts, into the log of its track,
// asks publishers for what is missing, and reports to them.
//
// The goroutine that reads a publisher's connection calls Ingress.RTP for each packet and Ingress.Flush after the
// packets that have arrived together; with Flush it also does the work of the writers that sleep (package turn). A
// goroutine of the ingress asks the publisher for what is missing and sends reports. A mutex of the ingress guards what
// both share. A track's log is appended to with that mutex held.
//
// The packets of VR2Gather's peers become payload v1 here (converter). Nothing behind the ingress knows the difference.
package ingress

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/panics"
)

// Place is the place that this package names to Config.Guard: the goroutine that asks one publisher for what is
// missing, and reports to it.
const Place = "ingress"

// Peer is one publisher's peer connection. Its methods are safe for any goroutine.
type Peer interface {
	// WriteRTCP sends packets as one compound packet.
	WriteRTCP([]rtcp.Packet) error
	// RTT is the round-trip time, 0 while it is unknown.
	RTT() time.Duration
	// TransportSequenceID is the identifier of the header extension by which all packets of the connection are
	// numbered, in both directions (draft-holmer-rmcat-transport-wide-cc-extensions-01), 0 while there is none. It
	// takes no lock.
	TransportSequenceID() uint8
	// Fail says that the connection cannot go on. Its owner closes it.
	Fail()
}

// Config tunes the ingresses of one engine.
type Config struct {
	// Guard confines a panic in a publisher's goroutine to that publisher. Without a guard a panic ends the program.
	Guard *panics.Guard
	// Plan is how frames are spread.
	Plan pacing.Plan
	// MaxFrameBytes is the length of the longest frame of payload v1 that is forwarded.
	MaxFrameBytes int
	// KeyFrameInterval is the least time between two requests for a key frame of one track.
	KeyFrameInterval time.Duration
	// ReportInterval is the interval of receiver reports.
	ReportInterval time.Duration
	NACK           feedback.NACKConfig
}

// DefaultConfig is the configuration of a server that does not spread frames.
func DefaultConfig() Config {
	return Config{
		MaxFrameBytes:    16 << 20,
		KeyFrameInterval: 500 * time.Millisecond,
		ReportInterval:   time.Second,
		NACK:             feedback.DefaultConfig().NACK,
	}
}

// Set is the ingresses of one engine.
type Set struct {
	cfg     Config
	clock   *packetlog.Clock
	packets *packetlog.Pool
	pieces  *packetlog.Pieces
	// running are the goroutines of the ingresses.
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool
	open   map[*Ingress]struct{}
	// retired are the counts of closed ingresses.
	retired counters.Shard
}

// NewSet returns an empty set. Frames that come in chunks take their memory from pieces.
func NewSet(cfg Config, clock *packetlog.Clock, pieces *packetlog.Pieces) *Set {
	return &Set{
		cfg: cfg, clock: clock, packets: packetlog.NewPool(), pieces: pieces,
		open: make(map[*Ingress]struct{}),
	}
}

// New adds a publisher's peer connection. The caller ends it with Close.
func (s *Set) New(p Peer) *Ingress {
	i := s.NewStepped(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.running.Go(func() {
			if !s.cfg.Guard.Try(Place, i.run) {
				// The state that Close changes may be half changed.
				s.cfg.Guard.Try(Place, i.fail)
			}
		})
	}
	return i
}

// NewStepped is New for an ingress without a goroutine. The caller calls Step.
func (s *Set) NewStepped(p Peer) *Ingress {
	i := s.newIngress(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		i.closed = true
		close(i.stopped)
	} else {
		s.open[i] = struct{}{}
	}
	return i
}

func (s *Set) newIngress(p Peer) *Ingress {
	return &Ingress{
		chunks:   s.pieces.NewAllotment(),
		noticed:  feedback.NewMissingBudget(requestRate, requestBurst),
		set:      s,
		peer:     p,
		ssrc:     rand.Uint32(),
		wakeup:   make(chan struct{}, 1),
		stopped:  make(chan struct{}),
		streams:  make(map[uint32]*stream),
		repairs:  make(map[uint32]*stream),
		groups:   newGroups(),
		budget:   newRequestBudget(),
		arrivals: newArrivals(),
	}
}

// Close closes all ingresses, and those that are added later. It does not wait for their goroutines.
func (s *Set) Close() {
	s.mu.Lock()
	s.closed = true
	var open []*Ingress
	for i := range s.open {
		open = append(open, i)
	}
	s.mu.Unlock()
	for _, i := range open {
		i.Close()
	}
}

// Wait waits for the goroutines of the ingresses to end, after Close.
func (s *Set) Wait() { s.running.Wait() }

// retire keeps the counts of a closed ingress.
func (s *Set) retire(i *Ingress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, i)
	var c counters.Counts
	i.stats.AddTo(&c)
	s.retired.Merge(&c)
}

// AddTo sums the counts of all ingresses, and returns the number of those that are open.
func (s *Set) AddTo(sum *counters.Counts) (open int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retired.AddTo(sum)
	for i := range s.open {
		i.stats.AddTo(sum)
	}
	return len(s.open)
}

// fail ends what the publisher sends. The owner of the connection ends the rest.
func (i *Ingress) fail() {
	i.peer.Fail()
	i.Close()
}
