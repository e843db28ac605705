// Package ingress receives the packets of publishers. It appends each packet once, with its facts, to the log of its
// track, requests lost packets from publishers and sends reports to publishers.
//
// The goroutine that reads a publisher's connection calls Ingress.RTP for each packet and Ingress.Flush after the
// packets that arrived together. Flush also runs sleeping writers (package turn). A goroutine of the ingress requests
// lost packets and sends reports. A mutex of the ingress guards the state that both goroutines share. That mutex is
// held to append to a track's log.
//
// Packets of VR2Gather's peers become payload v1 here (converter). The rest of the path handles payload v1 only.
package ingress

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/panics"
)

// Place is the place that this package passes to Config.Guard: the goroutine that requests lost packets from one
// publisher and sends reports.
const Place = "ingress"

// Peer is one publisher's peer connection. Its methods are safe for any goroutine.
type Peer interface {
	// WriteRTCP sends packets as one compound packet.
	WriteRTCP([]rtcp.Packet) error
	// RTT returns the round-trip time, 0 while unknown.
	RTT() time.Duration
	// TransportSequenceID returns the identifier of the header extension that numbers all packets of the connection, in
	// both directions (draft-holmer-rmcat-transport-wide-cc-extensions-01), 0 while there is none. TransportSequenceID
	// takes no lock.
	TransportSequenceID() uint8
	// AcceptsReportsByStream reports whether the peer expects reports of arrivals by SSRC and sequence number (RFC
	// 8888), and not by the numbers of the extension. AcceptsReportsByStream takes no lock.
	AcceptsReportsByStream() bool
	// Fail reports that the connection cannot continue. Its owner closes the connection.
	Fail()
}

// Config is the configuration of the ingresses of one engine.
type Config struct {
	// Guard confines a panic in a publisher's goroutine to that publisher. Without a guard a panic ends the program.
	Guard *panics.Guard
	// Plan determines how frames are spread over time.
	Plan pacing.Plan
	// MaxFrameBytes is the maximum length of a frame of payload v1.
	MaxFrameBytes int
	// KeyFrameInterval is the minimum time between two key frame requests for one track.
	KeyFrameInterval time.Duration
	// ReportInterval is the interval of receiver reports.
	ReportInterval time.Duration
	NACK           feedback.NACKConfig
}

// DefaultConfig returns the configuration of a server that does not spread frames.
func DefaultConfig() Config {
	return Config{
		MaxFrameBytes:    16 << 20,
		KeyFrameInterval: 500 * time.Millisecond,
		ReportInterval:   time.Second,
		NACK:             feedback.DefaultConfig().NACK,
	}
}

// Set is the set of ingresses of one engine.
type Set struct {
	cfg     Config
	clock   *packetlog.Clock
	packets *packetlog.Pool
	pieces  *packetlog.Pieces
	// running are the goroutines of the ingresses.
	running sync.WaitGroup

	// binding is held during a change of bindings that concerns two ingresses. It is locked before the mutex of an
	// ingress.
	binding sync.Mutex

	mu     sync.Mutex
	closed bool
	open   map[*Ingress]struct{}
	// retired are the counters of closed ingresses.
	retired counters.Shard
}

// NewSet returns an empty set. The memory of chunked frames counts against pieces.
func NewSet(cfg Config, clock *packetlog.Clock, pieces *packetlog.Pieces) *Set {
	return &Set{
		cfg: cfg, clock: clock, packets: packetlog.NewPool(), pieces: pieces,
		open: make(map[*Ingress]struct{}),
	}
}

// New adds the peer connection of a publisher. The goroutine starts with the first track. The caller ends the ingress
// with Close.
func (s *Set) New(p Peer) *Ingress {
	i := s.NewStepped(p)
	i.waker.start = func() { s.run(i) }
	return i
}

// run starts the goroutine of an ingress, unless the set is closed.
func (s *Set) run(i *Ingress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.running.Go(func() {
			if !s.cfg.Guard.Try(Place, i.run) {
				// A panic may have interrupted a change of the state that Close changes.
				s.cfg.Guard.Try(Place, i.fail)
			}
		})
	}
}

// NewStepped is New without a goroutine. The caller calls Step.
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
	ssrc := rand.Uint32()
	i := &Ingress{
		chunks:   s.pieces.NewAllotment(),
		set:      s,
		nack:     s.cfg.NACK,
		peer:     p,
		ssrc:     ssrc,
		waker:    waker{woken: make(chan struct{}, 1)},
		stopped:  make(chan struct{}),
		bindings: newBindings(),
		early:    early{limit: s.cfg.NACK.Deadline},
		arrivals: newArrivals(ssrc),
	}
	i.requester = newRequester(ssrc, &i.stats)
	i.takeovers.ingress = i
	return i
}

// Close closes all ingresses, including those added later. Close does not wait for their goroutines.
func (s *Set) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for _, i := range s.ingresses() {
		i.Close()
	}
}

// ingresses returns the open ingresses. An ingress locks the set while it holds its own mutex, so the caller locks an
// ingress only after ingresses has returned.
func (s *Set) ingresses() []*Ingress {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.open))
}

// Hops returns the numbers of publishers that have sent packets in the last second, by Codepoints.Codepoint.
func (s *Set) Hops() (hops [ecn.CE + 1]int) {
	for _, i := range s.ingresses() {
		counts := i.Codepoints()
		if codepoint, any := counts.Codepoint(); any {
			hops[codepoint]++
		}
	}
	return hops
}

// Wait waits for the goroutines of the ingresses to end, after Close.
func (s *Set) Wait() { s.running.Wait() }

// retire keeps the counters of a closed ingress.
func (s *Set) retire(i *Ingress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, i)
	var c counters.Counts
	i.stats.AddTo(&c)
	s.retired.Merge(&c)
}

// AddTo adds the counters of all ingresses to sum and returns the number of open ingresses.
func (s *Set) AddTo(sum *counters.Counts) (open int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retired.AddTo(sum)
	for i := range s.open {
		i.stats.AddTo(sum)
	}
	return len(s.open)
}

// fail closes the ingress and reports the failure. The owner of the connection closes the connection.
func (i *Ingress) fail() {
	i.peer.Fail()
	i.Close()
}
