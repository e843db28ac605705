package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu/demand"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/topology"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/test/testbed"
)

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
	// before and after are the competitors' counters when the first receiver, or the competitors, joined, and a while
	// later; measured are those when rates begin to count.
	before, after, measured *hostedReading
}

// onHosts starts the network of a case and calls run. The network and the rivals end when run returns. The error wraps
// router.ErrPrivileges or router.ErrTUN if this process may not create the network.
func onHosts(ctx context.Context, sc *scenario, run func(*hosted) error) (err error) {
	h := &hosted{scenario: sc}
	if h.network, err = topology.Start(ctx, sc.network()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.network.Close()) }()
	// The rivals end before the network.
	defer h.rivals.stop()
	return run(h)
}

// runHosted runs a case with the server and its clients on an emulated network. The error is as that of onHosts.
func runHosted(ctx context.Context, sc *scenario) (record *Record, err error) {
	err = onHosts(ctx, sc, func(h *hosted) error {
		if err := h.serve(); err != nil {
			return err
		}
		defer h.conference.Close()
		if err := h.run(ctx); err != nil {
			return err
		}
		record, err = h.record()
		return err
	})
	return record, err
}

// serve starts the server on its host.
func (h *hosted) serve() error {
	address := h.network.Address(hostServer).String()
	c := testbed.ConferenceConfig()
	c.Server.Listen, c.Media.Address = address+":0", address
	c.Forward.Pacing, c.Forward.Congestion = h.scenario.options.Pacing, h.scenario.options.Estimator
	switch {
	case h.scenario.uplink:
		// Publishers send what receivers take, so that frames received are those that the uplink carried.
		c.Rooms.Suppression.Policy = demand.Strict
	case h.scenario.participants > 0:
		// Publishers fill their uplinks, whatever receivers take: the estimate of an uplink that is not full follows
		// the demand, which a mark on the uplink of another participant changes.
		c.Rooms.Suppression.Policy = demand.Warm
	}
	return h.network.Inside(hostServer, func() (err error) {
		h.conference, err = testbed.NewConference(c, nil, zap.NewNop())
		return err
	})
}

// join adds a participant on a host and waits until the participant is connected. All hosts have one clock.
func (h *hosted) join(ctx context.Context, host string, part testbed.Part) (peer *testbed.Peer, err error) {
	ctx, cancel := context.WithTimeout(ctx, connecting)
	defer cancel()
	options := &h.scenario.options
	part.Room, part.Feedback, part.ClockSource = liveRoom, options.Feedback.client(), frametimes.SourceSystem
	part.Controller = client.Controller(options.Estimator.Controller)
	err = h.network.Inside(host, func() error {
		peer, err = h.conference.Join(ctx, part)
		return err
	})
	if err != nil {
		return nil, err
	}
	return connected(ctx, part.Identity, peer)
}

// publish adds the publishers. Participants of a room are receivers, too.
func (h *hosted) publish(ctx context.Context) error {
	sc := h.scenario
	for i := range max(sc.participants, 1) {
		host := hostServer
		part := testbed.Part{Identity: livePublisher, Loads: []testbed.Load{sc.load()},
			Seed: sc.options.Seed + uint64(i)}
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
		peer, err := h.join(ctx, host, testbed.Part{Identity: fmt.Sprintf("receiver %d", i), Receive: true,
			Record: true})
		if err != nil {
			return err
		}
		h.receivers = append(h.receivers, peer)
	}
	return nil
}

// play runs the case up to its last frame. The case's time begins when the first flow of the bottleneck begins. receive
// begins the flow to the receivers.
func (h *hosted) play(ctx context.Context, receive func(context.Context) error) error {
	sc := h.scenario
	if sc.begin == 0 {
		if err := receive(ctx); err != nil {
			return err
		}
	}
	h.begin()
	if sc.cubics+sc.pragues > 0 && sc.rivals == 0 {
		if err := h.compete(ctx); err != nil {
			return err
		}
	}
	if sc.begin > 0 {
		if err := lab.Pause(ctx, sc.begin-time.Since(h.begun)); err != nil {
			return err
		}
		h.before = h.read()
		if err := receive(ctx); err != nil {
			return err
		}
	}
	return h.watch(ctx)
}

// run runs the case with the server and its clients.
func (h *hosted) run(ctx context.Context) error {
	if err := h.publish(ctx); err != nil {
		return err
	}
	if err := h.play(ctx, h.receive); err != nil {
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

// changeInterval is the interval at which the queue and the codepoints are read in cases with figures about the time
// after a change. Other cases read them with each sample, which costs less.
const changeInterval = 20 * time.Millisecond

// watch takes samples until the case ends, and makes the changes of the case.
func (h *hosted) watch(ctx context.Context) error {
	sc := h.scenario
	latest := h.read()
	sampled := latest
	bleached, competing := sc.bleach == "", sc.rivals == 0
	longest, interval := time.Duration(0), sampleInterval
	if sc.cliff || !bleached {
		interval = changeInterval
	}
	for next := latest.at; latest.at < sc.options.Duration; {
		next += interval
		if err := lab.Pause(ctx, next-time.Since(h.begun)); err != nil {
			return err
		}
		now := h.read()
		longest = max(longest, h.observe(latest, now))
		if now.at >= sampled.at+sampleInterval-changeInterval/2 {
			h.sample(sampled, now, longest)
			sampled, longest = now, 0
		}
		switch {
		case !bleached && now.at >= bleachAt:
			bleached = true
			if err := h.bleach(); err != nil {
				return err
			}
		case !competing && now.at >= sc.rivals:
			competing = true
			if sc.participants == 0 {
				h.before = now
			}
			if err := h.compete(ctx); err != nil {
				return err
			}
		case h.before != nil && h.after == nil && now.at >= h.before.at+besideTime:
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
	c := h.scenario.access()
	c.ECN = h.scenario.bleach
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
