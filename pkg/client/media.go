package client

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/client/internal/downlink"
	"github.com/volsfu/volsfu/pkg/client/internal/frametrace"
	"github.com/volsfu/volsfu/pkg/client/internal/hostclock"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// media is the session's RTP: lines that it sends on and streams that it receives. One lock guards it; what is done under the lock is short
// and never waits. It implements transport.Sink.
type media struct {
	transport.NoOpSink
	session *Session
	frames  chan Frame
	packets chan Packet
	// wake is signalled when something is queued while the sending goroutine sleeps.
	wake    chan struct{}
	tracing *frametrace.Collector

	mu        sync.Mutex
	connected bool
	// ended is set before the channels that the program reads are closed: whoever writes to them under the lock looks at it first.
	ended bool
	clock hostclock.Clock
	// downlink receives what the server sends.
	downlink *downlink.Receiver
	uplink   uplink
	// counts has the probe bytes of earlier connections alone.
	counts UplinkCounts
	// publishers are those that have lines, by name. plan decides what they send, as of planned; tracks and owners are its slices.
	publishers []*Publisher
	plan       uplinkPlan
	planned    time.Time
	tracks     []planTrack
	owners     []ownTrack
	// told is when the server was told of the uplink last, toldEstimate what; untold says that there is news.
	told         time.Time
	toldEstimate volumetric.Bitrate
	untold       bool
	// lines are keyed by mid, and by the SSRC that NACKs name.
	lines      map[string]*line
	lineBySSRC map[uint32]*line
}

func newMedia(s *Session) *media {
	m := &media{
		session: s,
		frames:  make(chan Frame, frameBacklog),
		packets: make(chan Packet, packetBacklog),
		wake:    make(chan struct{}, 1),
		clock:   s.config.clock(),
		tracing: frametrace.New(s.config.FrameTimes && s.config.Receive, s.config.FrameTimes),
	}
	m.downlink = downlink.New(downlink.Config{Deadline: s.config.Deadline, FrameBytes: s.config.FrameBytes}, rand.Uint32(), &m.clock)
	m.clear()
	return m
}

// clear forgets lines and streams.
func (m *media) clear() {
	m.lines, m.lineBySSRC = make(map[string]*line), make(map[uint32]*line)
	m.downlink.Reset()
	m.counts.ProbeBytes += m.uplink.probeBytes
	m.uplink = newUplink(m.session.config.plan, time.Now())
	m.publishers, m.plan, m.planned = nil, uplinkPlan{}, time.Time{}
}

// reset forgets what belonged to a peer connection that is replaced.
func (m *media) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.connected = false
	for _, l := range m.lines {
		l.release()
	}
	m.clear()
}

// end closes the channels that the program reads. Nothing is delivered afterwards.
func (m *media) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = true
	close(m.frames)
	close(m.packets)
}

// connect notes that media flows.
func (m *media) connect() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.connected = true
}

// disconnect notes that it does not.
func (m *media) disconnect() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.connected = false
}

func (m *media) isConnected() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.connected
}

// serverTime turns this host's time into the server's.
func (m *media) serverTime(t time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.toServer(t)
}

// toServer is serverTime under the lock.
func (m *media) toServer(t time.Time) time.Time { return m.clock.ToServer(t) }

// clockQuestion gives the time by this host's clock, and reports whether the server's is to be asked for.
func (m *media) clockQuestion(now time.Time) (local time.Time, asks bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clock.Local(now), m.clock.Asks(m.tracing.TracesSent())
}

// clockReply takes an answer about the server's clock.
func (m *media) clockReply(r *signal.TimeReply, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.clock.Answered(time.UnixMicro(r.T0), time.UnixMicro(r.T1), time.UnixMicro(r.T2), now); err != nil {
		m.session.log.Warn("server's clock reply cannot be used", "error", err)
	}
}

// travelled takes a packet of the server's, which was sent by its clock and arrived by this host's: media is often quicker than signalling.
func (m *media) travelled(sent, arrived time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clock.Travelled(sent, arrived)
}

// attach gives a line to a track of a publisher, or to none. Numbering stays with the line, since it belongs to the SSRC.
func (m *media) attach(mid string, o outlet, p *Publisher, tile int, quality volumetric.Quality) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.lines[mid]
	if l == nil {
		if o == nil {
			return
		}
		l = newLine(o)
		m.lines[mid] = l
	}
	if p == nil {
		l.release()
		return
	}
	l.carry(p, p.index(tile, quality))
	m.planned = time.Time{}
	if !slices.Contains(m.publishers, p) {
		m.publishers = append(m.publishers, p)
		slices.SortFunc(m.publishers, func(a, b *Publisher) int { return cmp.Compare(a.publication.Name, b.publication.Name) })
	}
}

// detach frees the lines of a publisher.
func (m *media) detach(p *Publisher) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.publishers = slices.DeleteFunc(m.publishers, func(other *Publisher) bool { return other == p })
	for _, l := range m.lines {
		if l.publisher == p {
			l.release()
		}
	}
}

// enqueue queues the payloads of a frame that was captured at that time by this host's clock. With inTurn, the frame leaves after those of
// the same tile that are under way. Without, the first frame of a quality that is wanted again leaves before the others of its tile.
func (m *media) enqueue(p *Publisher, track int, capture time.Time, payloads [][]byte, spread time.Duration, inTurn bool, times *frametrace.Sent) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := p.lines[track]
	if l == nil || !m.connected || m.ended {
		return ErrNotConnected
	}
	if _, _, ok := l.outlet.PayloadType(p.publication.Codec.MIMEType); !ok {
		return fmt.Errorf("%w: the server takes no %s", ErrNotConnected, p.publication.Codec.MIMEType)
	}
	m.lineBySSRC[l.outlet.SSRC()] = l
	now, resumed := time.Now(), p.tracks[track].resumption.due
	p.tracks[track].resumption = resumption{}
	begin := now
	switch {
	case inTurn:
		free := &p.free[track/len(p.publication.Qualities)]
		if free.After(begin) {
			begin = *free
		}
		*free = begin.Add(spread)
	case !resumed:
		begin = p.awaitResumed(track, now)
	}
	f := &heldFrame{
		line: l, publisher: p, track: track, timestamp: p.timestamp(capture), capture: capture,
		serverCapture: m.toServer(capture), payloads: payloads, times: times, begin: begin, spread: spread, budget: p.budget,
	}
	if !inTurn && begin.After(now) {
		m.uplink.delay(f)
	} else {
		m.uplink.add(f)
	}
	if resumed {
		p.reorder(track, now)
	}
	m.wakeSender()
	return nil
}

func (m *media) wakeSender() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}
