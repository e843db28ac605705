package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/internal/udp"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/topology"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/test/testbed"
)

// Hosts of a hosted run, besides the participants of a room.
const (
	hostServer    = "server"
	hostPublisher = "publisher"
	hostReceiver  = "receiver"
	hostRival     = "rival"
	hostSink      = "sink"
)

// Links of a hosted run, besides the uplinks and downlinks of the participants of a room.
const (
	linkBottleneck = "bottleneck"
	linkMedia      = "media"  // returns the packets of the media
	linkRivals     = "rivals" // returns the packets of competitors
)

// queueInterval is the interval at which the queue and the codepoints are read: the precision of figures about the time
// after a change. A frame interval of 33 ms is longer.
const queueInterval = 20 * time.Millisecond

// wire is one direction of a link.
type wire struct {
	link string
	way  topology.Way
}

// participantName returns the name of a participant of a room, and of the participant's host.
func participantName(i int) string { return fmt.Sprintf("participant%d", i+1) }

// uplinkName and downlinkName are the names of the two halves of a participant's access link. A competitor shares the
// uplink only: its acknowledgements do not meet the participant's downlink.
func uplinkName(i int) string   { return participantName(i) + "-up" }
func downlinkName(i int) string { return participantName(i) + "-down" }

// bottlenecks returns the bottlenecks of the case. Those of a room are the uplinks, and then the downlinks.
func (s *scenario) bottlenecks() (list []wire) {
	if s.participants == 0 {
		return []wire{{linkBottleneck, topology.Forth}}
	}
	for i := range s.participants {
		list = append(list, wire{uplinkName(i), topology.Forth})
	}
	for i := range s.participants {
		list = append(list, wire{downlinkName(i), topology.Back})
	}
	return list
}

// network returns the network of the case. Packets of the media and of competitors share the bottleneck, and return by
// links of their own, whose delays complete the round trips.
func (s *scenario) network() (*topology.Topology, error) {
	forth, err := s.access()
	if err != nil {
		return nil, err
	}
	forth.Delay = s.forth().Delay
	direction := topology.Direction{Config: forth}
	if len(s.trace.Steps) > 1 {
		direction.Trace = &s.trace
	}
	t := &topology.Topology{Seed: s.options.Seed, Links: make(map[string]topology.Link), Hosts: map[string]topology.Host{
		hostServer: {}, hostRival: {}, hostSink: {},
	}}
	if s.options.CubicECN {
		sysctls := map[string]string{"net.ipv4.tcp_ecn": "1"}
		t.Hosts[hostRival], t.Hosts[hostSink] = topology.Host{Sysctls: sysctls}, topology.Host{Sysctls: sysctls}
	}
	shared := linkBottleneck
	if s.participants > 0 {
		shared = uplinkName(0)
		for i := range s.participants {
			t.Hosts[participantName(i)] = topology.Host{}
			t.Links[uplinkName(i)] = topology.Link{Forth: direction}
			t.Links[downlinkName(i)] = topology.Link{Back: direction}
			t.Paths = append(t.Paths, topology.Path{From: participantName(i), To: hostServer,
				Through: through(uplinkName(i), downlinkName(i))})
		}
	} else {
		from, to := hostServer, hostReceiver
		if s.uplink {
			from, to = hostPublisher, hostServer
		}
		t.Hosts[from], t.Hosts[to] = topology.Host{}, topology.Host{}
		t.Links[linkBottleneck] = topology.Link{Forth: direction, Back: topology.Direction{
			Config: netem.Config{Loss: s.loss}}}
		t.Links[linkMedia] = returning(s.options.RTT - forth.Delay)
		t.Paths = append(t.Paths, topology.Path{From: from, To: to, Through: through(linkBottleneck, linkMedia)})
	}
	t.Links[linkRivals] = returning(s.options.RivalRTT - forth.Delay)
	t.Paths = append(t.Paths, topology.Path{From: hostRival, To: hostSink, Through: through(shared, linkRivals)})
	return t, nil
}

// returning returns a link with a delay on the way back.
func returning(delay time.Duration) topology.Link {
	return topology.Link{Back: topology.Direction{Config: netem.Config{Delay: delay}}}
}

func through(links ...string) (passages []topology.Passage) {
	for _, link := range links {
		passages = append(passages, topology.Passage{Link: link})
	}
	return passages
}

// hosted is an end-to-end run of a case with real sockets: the server, its clients and the competitors are on hosts of
// an emulated network, which are network namespaces. A publisher without a link of its own is on the server's host.
type hosted struct {
	scenario   *scenario
	network    *topology.Network
	conference *testbed.Conference // nil with a sender of others
	rivals     rivals
	// publishers are the participants of a room, or one publisher. receivers are those that watch.
	publishers, receivers []*testbed.Peer
	// begun is the start of the case's time, at which all statistics begin; end is when the last frame was sent.
	begun time.Time
	end   time.Duration
	// ledgers holds the samples of each hop of a room, or of each receiver.
	ledgers []*ledger
	// before and after are the competitors' counters when the first receiver joined, and a while later; measured are
	// those when rates begin to count.
	before, after, measured *hostedReading
}

// runHosted runs a case on an emulated network. The error wraps router.ErrPrivileges or router.ErrTUN if this process
// may not create the network.
func runHosted(ctx context.Context, sc *scenario) (record *Record, err error) {
	layout, err := sc.network()
	if err != nil {
		return nil, err
	}
	h := &hosted{scenario: sc}
	if h.network, err = topology.Start(ctx, layout); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.network.Close()) }()
	// The rivals and the conference end before the network.
	defer h.rivals.stop()
	if err := h.serve(); err != nil {
		return nil, err
	}
	defer h.conference.Close()
	if err := h.run(ctx); err != nil {
		return nil, err
	}
	return h.record()
}

// serve starts the server on its host.
func (h *hosted) serve() error {
	address := h.network.Address(hostServer).String()
	c := testbed.ConferenceConfig()
	c.Server.Listen, c.Media.Address = address+":0", address
	c.Forward.Pacing, c.Forward.Congestion = h.scenario.options.Pacing, h.scenario.options.Estimator
	return h.network.Inside(hostServer, func() (err error) {
		h.conference, err = testbed.NewConference(c, nil, zap.NewNop())
		return err
	})
}

// join adds a participant on a host and waits until the participant is connected. All hosts have one clock.
func (h *hosted) join(ctx context.Context, host string, part testbed.Part) (peer *testbed.Peer, err error) {
	ctx, cancel := context.WithTimeout(ctx, connecting)
	defer cancel()
	part.Room, part.Feedback, part.ClockSource = liveRoom, h.scenario.options.Feedback.client(), frametimes.SourceSystem
	err = h.network.Inside(host, func() error {
		peer, err = h.conference.Join(ctx, part)
		return err
	})
	if err != nil {
		return nil, err
	}
	select {
	case <-peer.Connected:
		return peer, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("connect %s: %w", part.Identity, ctx.Err())
	}
}

// publish adds the publishers. Participants of a room are receivers, too.
func (h *hosted) publish(ctx context.Context) error {
	sc := h.scenario
	for i := range max(sc.participants, 1) {
		host := hostServer
		part := testbed.Part{Identity: livePublisher, Loads: []testbed.Load{sc.load()}, Seed: sc.options.Seed + uint64(i)}
		switch {
		case sc.participants > 0:
			host, part.Identity, part.Receive, part.Record = participantName(i), participantName(i), true, true
		case sc.uplink:
			host = hostPublisher
		default:
			part.MinUplink, part.QueueBudget = testbed.Everything, stalling
		}
		peer, err := h.join(ctx, host, part)
		if err != nil {
			return err
		}
		h.publishers = append(h.publishers, peer)
	}
	if sc.participants > 0 {
		h.receivers = h.publishers
	}
	return nil
}

// receive adds the receivers, unless the participants of a room are the receivers.
func (h *hosted) receive(ctx context.Context) error {
	if h.scenario.participants > 0 {
		return nil
	}
	host := hostReceiver
	if h.scenario.uplink {
		host = hostServer
	}
	for i := range h.scenario.receivers {
		peer, err := h.join(ctx, host, testbed.Part{Identity: fmt.Sprintf("receiver %d", i), Receive: true, Record: true})
		if err != nil {
			return err
		}
		h.receivers = append(h.receivers, peer)
	}
	return nil
}

// run runs the case. The case's time begins when the first flow of the bottleneck begins.
func (h *hosted) run(ctx context.Context) error {
	sc := h.scenario
	if err := h.publish(ctx); err != nil {
		return err
	}
	beside := sc.begin > 0
	if !beside {
		if err := h.receive(ctx); err != nil {
			return err
		}
	}
	h.begin()
	if beside {
		if err := h.compete(ctx); err != nil {
			return err
		}
		if err := lab.Pause(ctx, sc.begin-time.Since(h.begun)); err != nil {
			return err
		}
		h.before = h.read()
		if err := h.receive(ctx); err != nil {
			return err
		}
	}
	if err := h.watch(ctx); err != nil {
		return err
	}
	for _, p := range h.publishers {
		p.StopPublishing()
	}
	h.end = time.Since(h.begun)
	if err := h.rivals.failure(); err != nil {
		return err
	}
	return lab.Pause(ctx, settling)
}

// begin begins the case's time and all statistics.
func (h *hosted) begin() {
	for range h.scenario.receivers {
		h.ledgers = append(h.ledgers, newLedger())
	}
	h.ledgers[0].fall = h.scenario.fall
	h.network.Restart()
	h.begun = time.Now()
}

// watch takes samples until the case ends, and makes the changes of the case.
func (h *hosted) watch(ctx context.Context) error {
	sc := h.scenario
	latest := h.read()
	sampled := latest
	bleached, marked := sc.bleach == "", sc.participants == 0
	longest := time.Duration(0)
	for next := latest.at; latest.at < sc.options.Duration; {
		next += queueInterval
		if err := lab.Pause(ctx, next-time.Since(h.begun)); err != nil {
			return err
		}
		now := h.read()
		longest = max(longest, h.observe(latest, now))
		if now.at >= sampled.at+sampleInterval {
			h.sample(sampled, now, longest)
			sampled, longest = now, 0
		}
		switch {
		case !bleached && now.at >= bleachAt:
			bleached = true
			if err := h.bleach(); err != nil {
				return err
			}
		case !marked && now.at >= markAt:
			marked = true
			if err := h.compete(ctx); err != nil {
				return err
			}
		case h.before != nil && h.after == nil && now.at >= sc.begin+besideTime:
			h.after = now
		}
		if h.measured == nil && now.at >= sc.measured {
			h.measured = now
		}
		latest = now
	}
	return nil
}

// bleach begins the treatment of the ECN field.
func (h *hosted) bleach() error {
	c, err := h.scenario.access()
	if err != nil {
		return err
	}
	c.Delay, c.ECN = h.scenario.forth().Delay, h.scenario.bleach
	return h.network.Configure(linkBottleneck, topology.Forth, c)
}

// compete starts the competitors.
func (h *hosted) compete(ctx context.Context) error {
	sc := h.scenario
	if sc.pragues > 0 {
		return h.rivals.startPragues(h.network, sc.pragues)
	}
	return h.rivals.startCubics(ctx, h.network, sc.cubics, sc.options.Duration-time.Since(h.begun))
}

// hostedReading holds all counters at one time.
type hostedReading struct {
	at         time.Duration
	network    topology.Statistics
	server     counters.Stats
	codepoints udp.CodepointCounts // of the datagrams that the server has sent
}

func (h *hosted) read() *hostedReading {
	r := &hostedReading{network: h.network.Statistics()}
	if h.conference != nil {
		r.server = h.conference.Server.Stats()
		_, r.codepoints = h.conference.Server.Codepoints()
	}
	r.at = time.Since(h.begun)
	return r
}

// wire returns the counters of a bottleneck.
func (r *hostedReading) wire(w wire) topology.WireStatistics { return r.network.Wire(w.link, w.way) }

// interfaces returns the packets and bytes that a host has sent and received.
func (r *hostedReading) interfaces(host string) (sent, sentBytes, received, receivedBytes uint64) {
	for i := range r.network.Router.Interfaces {
		if n := &r.network.Router.Interfaces[i]; n.Namespace == host {
			sent += n.Sent
			sentBytes += n.SentBytes
			received += n.Received
			receivedBytes += n.ReceivedBytes
		}
	}
	return sent, sentBytes, received, receivedBytes
}

// leastPackets is the number of datagrams in queueInterval from which their most frequent codepoint is that of the
// media. Fewer may be reports and connectivity checks only.
const leastPackets = 10

// observe records the queue and the codepoints between two readings, and returns the longest waiting time in the queue
// of the first bottleneck.
func (h *hosted) observe(before, now *hostedReading) (longest time.Duration) {
	first := h.scenario.bottlenecks()[0]
	earlier, later := before.wire(first), now.wire(first)
	waited := later.Waited.Since(&earlier.Waited)
	longest = waited.Quantile(1)
	l := h.ledgers[0]
	if l.fall > 0 && now.at > l.fall {
		l.fallen = append(l.fallen, delaySample{now.at, longest})
	}
	if h.scenario.uplink || h.scenario.participants > 0 {
		return longest
	}
	most, sum := ecn.NotECT, uint64(0)
	var sent udp.CodepointCounts
	for c := range sent {
		sent[c] = now.codepoints[c] - before.codepoints[c]
		sum += sent[c]
		if sent[c] > sent[most] {
			most = ecn.Codepoint(c)
		}
	}
	if sum >= leastPackets {
		l.left(most, now.at)
	}
	return longest
}

// sample ends a sample in every ledger.
func (h *hosted) sample(before, now *hostedReading, longest time.Duration) {
	sc := h.scenario
	elapsed := (now.at - before.at).Seconds()
	hops := sc.bottlenecks()
	for i, l := range h.ledgers {
		hop := hops[min(i, len(hops)-1)]
		earlier, later := before.wire(hop), now.wire(hop)
		x := sample{
			at: now.at, capacity: sc.trace.Bits(before.at, now.at) / elapsed,
			offered: later.Sent - earlier.Sent, discarded: later.DroppedQueue - earlier.DroppedQueue,
			loss: lossOf(later.Stats),
		}
		if i == 0 {
			x.queue = longest
		}
		switch {
		case h.conference == nil:
			x.sent = sentBits(before, now, hostServer) / elapsed
			_, _, _, earlier := before.interfaces(hostReceiver)
			_, _, _, later := now.interfaces(hostReceiver)
			x.goodput = float64(later-earlier) * 8 / elapsed
		case sc.uplink:
			x.estimate = float64(h.publishers[0].Session.Uplink().Estimate)
			x.allocated = float64(h.receivers[0].Bandwidth().Allocated)
			x.sent = sentBits(before, now, hostPublisher) / elapsed
		case i < sc.participants:
			x.estimate = float64(h.publishers[i].Session.Uplink().Estimate)
			x.sent = sentBits(before, now, participantName(i)) / elapsed
			// Nearly everything that a participant sends is frames.
			x.goodput = x.sent * fragmentSize / (fragmentSize + congestion.PacketOverhead)
		default:
			bandwidth := h.receivers[i-sc.participants].Bandwidth()
			x.estimate, x.allocated = float64(bandwidth.Estimate), float64(bandwidth.Allocated)
			x.sent = float64(onWire(now.server.Sent)-onWire(before.server.Sent)) * 8 / elapsed
		}
		l.samples = append(l.samples, x)
	}
}

// sentBits returns the bits that a host has sent between two readings.
func sentBits(before, now *hostedReading, host string) float64 {
	_, earlier, _, _ := before.interfaces(host)
	_, later, _, _ := now.interfaces(host)
	return float64(later-earlier) * 8
}
