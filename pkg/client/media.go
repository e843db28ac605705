package client

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/client/internal/downlink"
	"github.com/volsfu/volsfu/pkg/client/internal/failover"
	"github.com/volsfu/volsfu/pkg/client/internal/frametrace"
	"github.com/volsfu/volsfu/pkg/client/internal/hostclock"
	"github.com/volsfu/volsfu/pkg/client/internal/lifetime"
	"github.com/volsfu/volsfu/pkg/client/internal/messages"
	"github.com/volsfu/volsfu/pkg/client/internal/signalling"
	"github.com/volsfu/volsfu/pkg/client/internal/uplink"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Sizes of the channels that a program reads. If a channel is full, new items are lost and counted
// (FrameCounts.Overflowed).
const (
	frameBacklog  = 1024
	packetBacklog = 1024
)

// environment is the part of the session that media uses.
type environment struct {
	config   Config
	lifetime *lifetime.Lifetime
	events   eventQueue
	updates  *signalling.Updates
	data     *messages.Flow
	tracing  *frametrace.Collector
}

// path is the media of the server on which the session is.
type path struct{ present atomic.Pointer[media] }

// media returns the present media.
func (p *path) media() *media { return p.present.Load() }

// currentPeer returns the present peer connection.
func (p *path) currentPeer() *transport.Peer { return p.media().peer.Load() }

// media is the RTP of a session with a server: the uplink, the downlink, and this host's clock. One lock guards them.
// Operations under the lock are short and never wait. media implements transport.Sink. A session has one media, and a
// second one while the session moves to another server.
type media struct {
	transport.NoOpSink
	environment
	frames  chan Frame
	packets chan Packet
	// wake is signalled when something is queued while the sending goroutine sleeps.
	wake chan struct{}
	peer atomic.Pointer[transport.Peer]
	// stopped is closed by stop.
	stopped chan struct{}

	// mu is shared with the media of the server that the session moves from.
	mu        *sync.Mutex
	connected bool
	// lastReceived is the time when a packet of the present peer connection has arrived last.
	lastReceived time.Time
	// ended is set before the channels that the program reads are closed. Writers to these channels hold the lock and
	// check ended first.
	ended bool
	clock hostclock.Clock
	// begin is the rate with which the uplink begins, 0 for that of the configuration.
	begin volumetric.Bitrate
	// left is set if the session moves to another server.
	left bool
	// downlink receives what the server sends.
	downlink *downlink.Receiver
	// uplink sends what the program publishes.
	uplink *uplink.Uplink
	// marks is signalled when a packet with ECN-CE arrives, unless awaited is set. awaited is set until the next report
	// of arrivals.
	marks   chan struct{}
	awaited bool
}

func newMedia(e environment) *media {
	m := &media{
		environment: e,
		frames:      make(chan Frame, frameBacklog),
		packets:     make(chan Packet, packetBacklog),
		wake:        make(chan struct{}, 1),
		stopped:     make(chan struct{}),
		mu:          new(sync.Mutex),
		marks:       make(chan struct{}, 1),
		clock:       e.config.clock(),
	}
	frames := downlink.Config{Deadline: e.config.Deadline, FrameBytes: e.config.FrameBytes, Keys: e.config.Keys}
	m.downlink = downlink.New(frames, rand.Uint32(), &m.clock)
	m.uplink = uplink.New(e.config.plan, &m.clock, time.Now())
	m.uplink.SetRedundancy(e.config.redundancyMode())
	return m
}

// newMediaAfter returns the media of the server to which a session moves. Tiles have one count for both servers.
func newMediaAfter(former *media) *media {
	m := &media{
		environment: former.environment,
		frames:      former.frames,
		packets:     former.packets,
		wake:        make(chan struct{}, 1),
		stopped:     make(chan struct{}),
		mu:          former.mu,
		marks:       make(chan struct{}, 1),
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	// The servers of a cluster have the same time but for small differences, which the next replies correct.
	m.clock = former.clock
	m.downlink = downlink.NewAfter(former.downlink, rand.Uint32(), &m.clock)
	m.uplink = uplink.New(m.config.plan, &m.clock, time.Now())
	m.uplink.SetRedundancy(m.config.redundancyMode())
	m.uplink.Inherit(former.uplink)
	// The first hop of both paths is the same.
	m.begin = former.uplink.Estimate()
	return m
}

// leave records that the session moves from the server.
func (m *media) leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left = true
}

// start starts the goroutines that send and watch.
func (m *media) start() {
	m.lifetime.Go((&sending{media: m}).run)
	m.lifetime.Go((&watcher{media: m}).run)
}

// stop ends the goroutines and the peer connection. Nothing is delivered afterwards. stop is called once.
func (m *media) stop() {
	close(m.stopped)
	_ = m.peer.Load().Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.connected, m.ended = false, true
	m.downlink.End(time.Now())
	m.uplink.Reset(time.Now())
}

// reset clears the state of a peer connection that is replaced.
func (m *media) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.connected, m.lastReceived = false, time.Time{}
	m.downlink.Reset()
	m.uplink.Reset(time.Now())
}

// end closes the channels that the program reads. Nothing is delivered afterwards.
func (m *media) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = true
	close(m.frames)
	close(m.packets)
}

// connect records that media flows.
func (m *media) connect() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.connected = true
}

// disconnect records that media does not flow.
func (m *media) disconnect() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.connected = false
}

// expected returns the time of the last packet, and reports whether more packets are expected at a time.
func (m *media) expected(now time.Time) (received time.Time, expected bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lastReceived, m.connected && now.Sub(m.lastReceived) < failover.ExpectMedia
}

func (m *media) isConnected() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.connected
}

// serverTime converts a time of this host to the server's clock.
func (m *media) serverTime(t time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.toServer(t)
}

// toServer is serverTime for callers that hold the lock.
func (m *media) toServer(t time.Time) time.Time { return m.clock.ToServer(t) }

// clockState returns the present conversion of this host's time to the server's.
func (m *media) clockState(now time.Time) frametimes.Clock {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clock.State(now)
}

// clockQuestion returns the time by this host's clock, and reports whether to ask for the server's time.
func (m *media) clockQuestion(now time.Time) (local time.Time, asks bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clock.Local(now), m.clock.Asks(m.tracing.TracesSent())
}

// clockReply processes a reply about the server's clock, and returns the round-trip time of the websocket.
func (m *media) clockReply(r *signal.TimeReply, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	t0, t1, t2 := time.UnixMicro(r.T0), time.UnixMicro(r.T1), time.UnixMicro(r.T2)
	if err := m.clock.Answered(t0, t1, t2, now); err != nil {
		m.config.Log.Warn("server's clock reply cannot be used", "error", err)
	}
	return m.clock.Local(now).Sub(t0) - t2.Sub(t1)
}

// travelled records the transit of a packet of the server: sent by the server's clock, arrived by this host's. The
// transit of media is often shorter than that of signalling.
func (m *media) travelled(sent, arrived time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clock.Travelled(sent, arrived)
}

// agreement is the negotiated form of numbering and reports.
type agreement struct {
	// extension identifies the header extension with the transport-wide number, 0 for none.
	extension uint8
	// uplinkByStream is set if the server reports arrivals by SSRC and sequence number, downlinkByStream if this side
	// does.
	uplinkByStream, downlinkByStream bool
}

// agree sets the negotiated form of numbering and reports.
func (m *media) agree(a agreement) {
	m.mu.Lock()
	defer m.mu.Unlock()
	config := m.config.congestion()
	if m.begin > 0 {
		config.Start = min(max(m.begin, config.Min), config.Max)
	}
	m.uplink.Number(a.extension, a.uplinkByStream, config, time.Now())
	m.downlink.Report(a.extension, a.downlinkByStream)
}
