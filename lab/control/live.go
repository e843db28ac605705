package control

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/testbed"
)

const (
	liveRoom, livePublisher, livePublication = "room", "publisher", "body"
	// connecting is the time limit for a participant to join and to connect.
	connecting = 20 * time.Second
	// stalling is the time that the publisher's host may stall: the publisher shares the machine with everything else
	// in this process, and its link is not measured.
	stalling = time.Second
)

// Live is an end-to-end run of a case inside this process: a server and its clients, over an emulated network in real
// time. The publisher's link has no limits.
type Live struct {
	scenario   *scenario
	conference *testbed.Emulation
	// The receivers share a host and therefore the bottleneck.
	publisherHost, receiverHost netip.Addr

	publisher *testbed.Peer
	receivers []*testbed.Peer
	// begun is the start of the case's time; end is when the last frame was sent.
	begun time.Time
	end   time.Duration
	// samples cover the bottleneck and everything that the server sends. joining holds the waiting times of packets
	// before the case's time began.
	samples []sample
	joining netem.DelayCounts
	// before and after are the competitors' counters when the first receiver joined, and a while later.
	before, after competition
}

// competition holds the competitors' counters at one time.
type competition struct {
	stats  []netem.CubicStats
	delays netem.DelayCounts
}

// RunLive runs a case end to end. An invalid case or option is an error that wraps ErrCase. Cases about L4S run on an
// emulated network of real sockets: the error wraps router.ErrPrivileges or router.ErrTUN if this process may not
// create such a network.
func RunLive(ctx context.Context, text string, o Options) (*Record, error) {
	sc, err := newLiveScenario(text, o)
	if err != nil {
		return nil, err
	}
	if sc.needsHosts() {
		return runHosted(ctx, sc)
	}
	l := &Live{scenario: sc}
	c := testbed.ConferenceConfig()
	c.Forward.Pacing, c.Forward.Congestion = sc.options.Pacing, sc.options.Estimator
	if l.conference, err = testbed.NewEmulation(c, sc.options.Seed); err != nil {
		return nil, err
	}
	defer l.conference.Close()
	if err := l.connect(); err != nil {
		return nil, err
	}
	if err := l.run(ctx); err != nil {
		return nil, err
	}
	return l.record()
}

// newLiveScenario parses a case that runs end to end.
func newLiveScenario(text string, o Options) (*scenario, error) {
	if o.NoRTX {
		return nil, fmt.Errorf("%w: --no-rtx is not possible with --live, whose clients always accept retransmissions",
			ErrCase)
	}
	if o.Audio {
		return nil, fmt.Errorf("%w: --audio is not possible with --live", ErrCase)
	}
	sc, err := newScenario(text, o)
	if err == nil && sc.evaluates() {
		return nil, fmt.Errorf("%w: %s is not possible with --live", ErrCase, text)
	}
	return sc, err
}

// connect adds the clients' hosts.
func (l *Live) connect() error {
	down, up := l.scenario.access(), netem.DefaultConfig()
	up.Delay, up.Loss = down.Delay, down.Loss
	var err error
	if l.receiverHost, err = l.conference.Host(up, down); err != nil {
		return err
	}
	l.publisherHost, err = l.conference.Host(netem.DefaultConfig(), netem.DefaultConfig())
	return err
}

// roomLevels is the number of the highest qualities that a publisher has in a room of hosts, which is asked for all of
// them: with fewer, the uplink is not full, and with all, the lowest fill it and downlinks are not full.
const roomLevels = 5

// load returns the traffic of the publisher.
func (s *scenario) load() testbed.Load {
	qualities := levels
	if s.participants > 0 {
		qualities = roomLevels
	}
	highest := s.ladder()[levels-1]
	return testbed.Load{
		Name: livePublication, Tiles: tiles, Qualities: qualities,
		FrameBytes: int(highest / descriptorFactor / 8 / frameRate),
		Step:       s.step(), Variation: variation, Rate: frameRate,
	}
}

// join adds a participant and waits until the participant is connected.
func (l *Live) join(ctx context.Context, host netip.Addr, part testbed.Part) (*testbed.Peer, error) {
	ctx, cancel := context.WithTimeout(ctx, connecting)
	defer cancel()
	part.Room = liveRoom
	peer, err := l.conference.JoinFrom(ctx, host, part)
	if err != nil {
		return nil, err
	}
	return connected(ctx, part.Identity, peer)
}

// connected waits until a participant that has joined is connected, and returns the participant.
func connected(ctx context.Context, identity string, peer *testbed.Peer) (*testbed.Peer, error) {
	select {
	case <-peer.Connected:
		return peer, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("connect %s: %w", identity, ctx.Err())
	}
}

// run runs the case. The case's time begins when the first flow of the bottleneck begins.
func (l *Live) run(ctx context.Context) error {
	sc := l.scenario
	var err error
	l.publisher, err = l.join(ctx, l.publisherHost, testbed.Part{
		Identity: livePublisher, Loads: []testbed.Load{sc.load()}, Seed: sc.options.Seed, MinUplink: testbed.Everything,
		QueueBudget: stalling,
	})
	if err != nil {
		return err
	}
	if sc.cubics == 0 {
		if err := l.receive(ctx); err != nil {
			return err
		}
	}
	if err := l.conference.Network.SetRate(l.receiverHost, netem.Down, sc.trace); err != nil {
		return err
	}
	l.begun = time.Now()
	l.joining, _ = l.conference.Network.QueueDelays(l.receiverHost, netem.Down)
	if sc.cubics > 0 {
		if err := l.conference.Network.AddCubic(l.receiverHost, netem.Down, sc.cubics); err != nil {
			return err
		}
		if err := lab.Pause(ctx, sc.begin); err != nil {
			return err
		}
		l.before = l.competition()
		if err := l.receive(ctx); err != nil {
			return err
		}
	}
	if err := l.watch(ctx); err != nil {
		return err
	}
	l.publisher.StopPublishing()
	l.end = time.Since(l.begun)
	return lab.Pause(ctx, settling)
}

// receive adds the receivers.
func (l *Live) receive(ctx context.Context) error {
	for i := range l.scenario.receivers {
		peer, err := l.join(ctx, l.receiverHost, testbed.Part{
			Identity: fmt.Sprintf("receiver %d", i), Receive: true, Record: true,
			Feedback: l.scenario.options.Feedback.client(),
		})
		if err != nil {
			return err
		}
		l.receivers = append(l.receivers, peer)
	}
	return nil
}

func (l *Live) competition() competition {
	_, delays := l.conference.Network.QueueDelays(l.receiverHost, netem.Down)
	return competition{l.conference.Network.CubicStats(l.receiverHost, netem.Down), delays}
}

// watch takes samples until the case ends.
func (l *Live) watch(ctx context.Context) error {
	before, at := l.reading(), time.Since(l.begun)
	for next := at + sampleInterval; next < l.scenario.options.Duration; next += sampleInterval {
		if err := lab.Pause(ctx, next-time.Since(l.begun)); err != nil {
			return err
		}
		reading, now := l.reading(), time.Since(l.begun)
		l.samples = append(l.samples, l.sample(before, reading, at, now))
		if l.scenario.cubics > 0 && l.after.stats == nil && now >= l.scenario.begin+besideTime {
			l.after = l.competition()
		}
		before, at = reading, now
	}
	return nil
}

// reading holds all counters at one time.
type reading struct {
	delays netem.DelayCounts
	link   netem.Stats
	server counters.Stats
}

func (l *Live) reading() reading {
	delays, _ := l.conference.Network.QueueDelays(l.receiverHost, netem.Down)
	_, link := l.conference.Network.AccessStats(l.receiverHost)
	return reading{delays, link, l.conference.Server.Stats()}
}

// sample returns the sample between two readings.
func (l *Live) sample(before, after reading, from, until time.Duration) sample {
	longest := after.delays.Since(&before.delays)
	bandwidth := l.receivers[0].Bandwidth()
	elapsed := (until - from).Seconds()
	return sample{
		at:        until,
		capacity:  l.scenario.trace.Bits(from, until) / elapsed,
		estimate:  float64(bandwidth.Estimate),
		allocated: float64(bandwidth.Allocated),
		sent:      float64(onWire(after.server.Sent)-onWire(before.server.Sent)) * 8 / elapsed,
		queue:     longest.Quantile(1),
		offered:   after.link.Sent - before.link.Sent,
		discarded: after.link.DroppedQueue - before.link.DroppedQueue,
		loss:      lossOf(after.link),
	}
}

// lossOf returns the share of packets that a link has lost so far.
func lossOf(s netem.Stats) float64 {
	return float64(s.DroppedECN+s.DroppedQueue+s.LostRandom+s.LostBurst) / max(float64(s.Sent), 1)
}

// onWire returns the size of all packets on the wire, in bytes.
func onWire(t counters.TrafficByKind) uint64 {
	sum := uint64(0)
	for _, kind := range []counters.Traffic{t.Media, t.Parity, t.Retransmission, t.Probe} {
		sum += kind.Bytes + congestion.PacketOverhead*kind.Packets
	}
	return sum
}
