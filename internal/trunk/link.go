package trunk

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/internal/transport/ratelimit"
)

// sendRate limits the payloads to another node.
var sendRate = ratelimit.Rate{PerSecond: 2000, Burst: 1000}

// link is the trunk to one node. The caller of the Host owns it.
type link struct {
	*services
	catalog     *catalog
	node        string
	incarnation uint64
	// greeted is set once the other node has sent its hello. offeredLanes is the number of lanes in it.
	greeted      bool
	offeredLanes int
	// version is the version of the protocol, region the region of the other node.
	version int
	region  string
	// lasted is set once the trunk has lasted for maxRedial.
	lasted bool

	control *control
	// sends limits the payloads to the other node.
	sends    ratelimit.Bucket
	outbox   outbox
	lanes    lanes
	silence  silence
	origin   *origin
	masking  masking
	tracing  tracing
	taking   *taking
	bindings bindings
	updates  updates
	// assigned are the parents of mirrors that the Host has not followed.
	assigned []assigned
	// announced is set if the present silence of the other node was reported.
	announced bool
	events    []Event
	// malformed counts control messages that were refused.
	malformed uint64
}

// ended reports a trunk that has to be closed, with the reason.
type ended struct {
	link   *link
	reason string
}

func newLink(s *services, c *catalog, node string, now time.Time) *link {
	l := &link{
		services: s, catalog: c, node: node, silence: newSilence(now),
		lanes:  lanes{engine: s.engine, limits: s.cfg.Limits.Or(DefaultLimits)},
		origin: newOrigin(rand.Uint32() &^ 1), taking: newTaking(now), updates: newUpdates(),
		sends: sendRate.Bucket(),
	}
	l.control = newControl(s, l.lanes.setRTT, l.receiveHops)
	l.outbox = newOutbox(l.control, func(err error) { l.event(Unsent{l.node, err.Error()}) })
	l.masking = masking{catalog: c, origin: l.origin, lanes: &l.lanes}
	l.bindings = newBindings(node, c, l.taking, &l.lanes)
	l.tracing = tracing{
		catalog: c, origin: l.origin, lanes: &l.lanes, probing: &l.control.probing, rate: hopsRate.Bucket(),
	}
	l.lanes.permit.began = now
	l.lanes.permit.ssrcs.Store(&map[uint32]time.Duration{})
	l.lanes.permit.exceeded = func() {
		l.report(ended{l, fmt.Sprintf("%d packets of tracks that were not taken within %v", MaxUntaken, untakenWindow)})
	}
	for p, pub := range c.publications {
		l.origin.publish(p, &pub.offered)
	}
	for _, m := range c.mirrors {
		if m.node == node || m.feed.takes(node) {
			l.mirror(m)
			l.take(m)
		}
	}
	return l
}

func (l *link) event(e Event) { l.events = append(l.events, e) }

// add adds an open lane. add reports false if there is one with the number.
func (l *link) add(t *transport.Lane) bool {
	if !l.lanes.add(t) {
		return false
	}
	l.origin.lanes = l.lanes.missing()
	l.bindings.retry()
	l.start(func() {
		err := l.serve(t)
		t.Close()
		l.report(ended{l, fmt.Sprintf("lane %d has ended: %v", t.Number(), err)})
	}, func() {
		t.Close()
		l.report(ended{l, "a panic in the control channel"})
	})
	return true
}

// serve reads a lane until it ends. The first lane has the control channel.
func (l *link) serve(t *transport.Lane) error {
	if t.Number() == 0 {
		return l.control.serve(t.Control(), l.cfg.Node < l.node)
	}
	buffer := make([]byte, 2048)
	for {
		if _, err := t.Read(buffer); err != nil {
			return err
		}
	}
}

// wants returns the number of the next lane to dial, -1 if there is none, or before the hello of the other node. If the
// other node is silent, it may have restarted: the first lane of another trunk is dialed.
func (l *link) wants() int {
	if l.silence.silent {
		return 0
	}
	number := l.lanes.missing()
	if !l.greeted || number >= min(l.cfg.Lanes, l.offeredLanes) {
		return -1
	}
	return number
}

// close ends the trunk. Its tracks are not bound afterwards.
func (l *link) close() {
	l.control.close()
	l.lanes.close()
}

// step handles what has arrived, and sends what is due. The result is the reason to close the trunk, empty to keep it.
func (l *link) step(now time.Time) (reason string) {
	if err := l.control.receive(func(m *message) error { return l.handle(m, now) }); err != nil {
		l.malformed++
		return err.Error()
	}
	reception := l.silence.step(now, l.lanes.lastReceived())
	if reception.ended {
		return fmt.Sprintf("nothing has arrived for %v", endAfter)
	}
	if !l.greeted {
		return ""
	}
	if reception.received {
		l.event(PacketsReceived{l.node, l.incarnation})
	}
	if l.silence.silent && !l.announced {
		l.event(Silent{l.node, l.incarnation})
	}
	l.announced = l.silence.silent
	l.control.probing.step(now)
	l.tracing.step(now)
	for _, p := range l.masking.step(now) {
		l.updates.add(p, stateMasks)
	}
	l.bindings.permit(now)
	l.outbox.add(l.bindings.confirm()...)
	l.originate(now)
	l.flush(now)
	return ""
}

// handle handles a control message.
func (l *link) handle(m *message, now time.Time) error {
	if m.Hello != nil {
		return l.greet(m.Hello)
	}
	if !l.greeted {
		return fmt.Errorf("%w: the first message is not hello", ErrMessage)
	}
	switch {
	case m.Take != nil:
		return l.handleTake(m.Take, now)
	case m.Offer != nil:
		whole, err := l.taking.collect(m.Offer)
		if whole != nil {
			l.bindings.bind(whole)
		}
		return err
	case m.Bound != nil:
		l.origin.confirm(m.Bound)
	case m.Rates != nil, m.GaveUp != nil, m.Masks != nil:
		l.handleState(m, now)
	case m.Parent != nil:
		// The home assigns a path, a parent does not pass the publication on.
		if at := l.catalog.mirrorOf(l.node, m.Parent.publication); at != nil &&
			(len(m.Parent.Path) > 0) == (m.Parent.Home == "") {
			l.assigned = append(l.assigned, assigned{l.node, at, m.Parent.Path})
		}
	case m.Payload != nil:
		l.event(Received{l.node, m.Payload})
	}
	return nil
}

// greet reads the hello of the other node.
func (l *link) greet(m *hello) error {
	if l.greeted {
		return fmt.Errorf("%w: a second hello", ErrMessage)
	}
	if m.Node != l.node {
		return fmt.Errorf("%w: hello of node %s, the certificate is that of node %s", ErrMessage, m.Node, l.node)
	}
	l.greeted, l.incarnation, l.offeredLanes = true, m.Incarnation, m.Lanes
	l.version, l.region = min(maxVersion, m.Versions[1]), m.Region
	l.event(Linked{l.node, m.Incarnation, l.version})
	return nil
}

// The origin's side.

// handleTake sets the demand of the other node for a publication of this node. The other node may know nothing of the
// publication's state, so that all of it is sent.
func (l *link) handleTake(m *take, now time.Time) error {
	pub := l.catalog.publications[m.publication]
	switch {
	case m.Home != "":
		if pub = l.passOn(m); pub == nil {
			return nil
		}
	case len(m.Path) > 0:
		m.Tiles, m.Near, m.Trace = nil, nil, false
	}
	if !l.origin.take(m) {
		return fmt.Errorf("%w: node %s takes more than %d publications", ErrMessage, l.node, maxTakes)
	}
	if pub != nil {
		l.updates.add(m.publication, stateRates|stateGaveUp|stateMasks)
		l.updates.repeatRates(m.publication)
	}
	for _, line := range l.origin.takes[m.publication].streams {
		if line.selected {
			l.lanes.of(line).passParity(line, m.Parity)
		}
	}
	if m.Home != "" {
		return nil
	}
	if pub != nil {
		l.place(pub, m, now)
	}
	l.event(Took{l.node, m.Room, m.ref(), m.ID, sets(m.Tiles), m.Near, m.Parity})
	return nil
}

// changed schedules states of a publication of this node, if the other node takes the publication.
func (l *link) changed(p publication, states stateSet) {
	if l.origin.takes[p] != nil {
		l.updates.add(p, states)
	}
}

// originate follows the demand of the other node: opens slots, selects tracks, and sends offers. While messages wait,
// the demand waits.
func (l *link) originate(now time.Time) {
	for l.outbox.send(now) {
		actions, more := l.origin.step(now)
		for _, a := range actions {
			l.perform(a, now)
		}
		if !more {
			return
		}
	}
}

// perform performs an action of the origin.
func (l *link) perform(a action, now time.Time) {
	switch {
	case a.offer != nil:
		for _, part := range a.offer.parts() {
			l.outbox.add(&message{Offer: part})
		}
	case a.open:
		l.lanes.of(a.line).open(a.line)
	case a.track < 0:
		l.lanes.of(a.line).rest(a.line, now)
	default:
		if pub := l.catalog.publications[a.publication]; pub != nil && pub.tracks[a.track] != nil {
			origin := uint32(0)
			if pub.relay != nil {
				origin = pub.relay.mirror.number
			}
			l.lanes.of(a.line).carry(a.line, pub.tracks[a.track], origin, a.parity, now)
		}
	}
}

// The taking node's side.

// mirror adds a publication that the other node offers.
func (l *link) mirror(m *mirror) { l.taking.mirror(m.keyAt(l.node), m.qualities, len(m.tracks)) }

// take sends the demand for a mirror, if there is one.
func (l *link) take(m *mirror) {
	demand, p := m.demand(), m.keyAt(l.node)
	if demand == nil {
		return
	}
	tiles := sets(demand.Tiles)
	if l.node == m.node && m.feed.pathBy(l.node) != nil {
		tiles = nil
	}
	l.taking.demand(p, tiles)
	l.updates.add(p, stateTake)
}

// unmirror removes a publication that the other node offers. Its demand ends, and its tracks are unbound.
func (l *link) unmirror(m *mirror) {
	p := m.keyAt(l.node)
	if l.taking.demanded(p) {
		l.updates.ended[p] = struct{}{}
		l.updates.add(p, stateTake)
	}
	l.bindings.exchange(m, make([]*track.Track, len(m.tracks)))
	l.bindings.remove(p)
	l.taking.remove(p)
}

// handleState handles rates, qualities that the publisher has given up, and masks. Those of a node from which this node
// does not take the publication are out of date.
func (l *link) handleState(m *message, now time.Time) {
	var p publication
	switch {
	case m.Rates != nil:
		p = m.Rates.publication
	case m.GaveUp != nil:
		p = m.GaveUp.publication
	default:
		p = m.Masks.publication
	}
	home, known := p.Home, l.catalog.mirrorOf(l.node, p)
	if home == "" {
		home = l.node
	}
	if known == nil && p.Home != "" || known != nil && !known.feed.binds(l.node) {
		return
	}
	if known == nil {
		known = new(mirror)
	}
	switch {
	case m.Rates != nil:
		known.rates = m.Rates.Rates
		l.pass(known, stateRates)
		l.event(Rates{home, p.Room, p.ref(), p.ID, m.Rates.Rates})
	case m.GaveUp != nil:
		known.gaveUp = sets(m.GaveUp.Tiles)
		l.pass(known, stateGaveUp)
		l.event(GaveUp{home, p.Room, p.ref(), p.ID, known.gaveUp})
	default:
		known.masked = sets(m.Masks.Tiles)
		l.pass(known, stateMasks)
		if known.feed != nil {
			known.feed.masked(l.node, m.Masks.Own, now)
			l.catalog.changes.unsettled[known] = struct{}{}
		}
		l.event(Masked{home, p.Room, p.ref(), p.ID, known.masked})
	}
}

// receiveHops passes the hops of the other node to the nodes to which this node passes the mirror on, and reports the
// frames whose hops are known.
func (l *link) receiveHops(m *hops, at time.Time) {
	mirror := l.catalog.mirrorOf(l.node, m.publication)
	e, known := l.control.probing.clock.Estimate(at.Round(0))
	if mirror == nil || !known || mirror.feed.source != l.node || m.Depth >= len(mirror.feed.path) {
		return
	}
	m.convert(e)
	if mirror.passed != nil {
		l.catalog.changes.hops = append(l.catalog.changes.hops, passedHops{mirror, m})
	}
	if mirror.take == nil || !mirror.take.Trace {
		return
	}
	if frames, c := mirror.trails.add(m, len(mirror.feed.path), at); len(frames) > 0 {
		p := mirror.publication
		l.event(Relayed{mirror.node, p.Room, p.ref(), p.ID, time.Duration(c.Offset), time.Duration(c.Bound),
			time.Duration(c.Uncertainty), frames})
	}
}

// Both sides.

// flush sends the states that have changed, as far as the rate and SCTP permit.
func (l *link) flush(now time.Time) {
	if !l.outbox.send(now) || len(l.updates.due) == 0 {
		return
	}
	for _, p := range l.updates.publications() {
		l.outbox.add(l.states(p, l.updates.remove(p))...)
		if !l.outbox.send(now) {
			return
		}
	}
}

// states returns the messages with states of a publication.
func (l *link) states(p publication, states stateSet) (messages []*message) {
	if states&stateTake != 0 {
		_, ended := l.updates.ended[p]
		delete(l.updates.ended, p)
		if m := l.catalog.mirrorOf(l.node, p); m != nil && m.demand() != nil && l.taking.demanded(p) {
			messages = append(messages, &message{Take: l.takeOf(m, p)})
		} else if ended {
			messages = append(messages, &message{Take: &take{publication: p, Tiles: [][]int{}}})
		}
	}
	pub := l.catalog.publications[p]
	if states&stateParent != 0 {
		switch {
		case p.Home != "":
			messages = append(messages, &message{Parent: &parent{p, []string{}}})
		case pub != nil:
			messages = append(messages, &message{Parent: &parent{p, pub.tree.path(l.node)}})
		}
	}
	if pub == nil {
		return messages
	}
	if states&stateRates != 0 && pub.rates != nil && differ(l.updates.rates[p], pub.rates) {
		l.updates.rates[p] = pub.rates
		messages = append(messages, &message{Rates: &rates{p, pub.rates}})
	}
	if states&stateGaveUp != 0 && pub.gaveUp != nil {
		messages = append(messages, &message{GaveUp: &tileSets{publication: p, Tiles: lists(pub.gaveUp)}})
	}
	if states&stateMasks != 0 {
		masks := l.origin.maskedTiles(p)
		m := &tileSets{publication: p, Tiles: lists(masks)}
		if pub.relay != nil {
			m.Own = !empty(masks)
			for tile, set := range pub.relay.mirror.masked {
				if tile < len(masks) {
					masks[tile] |= set
				}
			}
			m.Tiles = lists(masks)
		}
		messages = append(messages, &message{Masks: m})
	}
	return messages
}

// takeOf returns the demand for a mirror at the other node, or at the home the path by which this node takes the
// mirror.
func (l *link) takeOf(m *mirror, p publication) *take {
	t := *m.demand()
	t.publication, t.Fresh, t.Path = p, l.taking.fresh(p), m.feed.pathBy(l.node)
	if l.node == m.node {
		t.Refused = m.feed.refused
		if t.Path != nil {
			t.Tiles, t.Near, t.Parity, t.Fresh, t.Trace = [][]int{}, nil, 0, false, false
		}
	}
	return &t
}

// state returns the state of the trunk.
func (l *link) state(now time.Time) LinkState {
	s := LinkState{Node: l.node, Incarnation: l.incarnation, Silent: l.silence.silent}
	open := l.lanes.open()
	s.Lanes = len(open)
	if len(open) > 0 {
		s.RTT = open[0].RTT()
	}
	s.Estimate, _ = l.lanes.estimate()
	s.Received, s.Sent = l.lanes.traffic()
	if e, known := l.control.probing.clock.Estimate(now.Round(0)); known {
		s.Offset, s.Bound, s.Known = e.Offset, e.Bound, true
	}
	return s
}

// count adds the trunk and its counters.
func (l *link) count(s *Stats) {
	l.countPast(s)
	if l.greeted {
		s.Links++
		s.Lanes += len(l.lanes.open())
	}
	s.Takes += len(l.origin.takes)
	s.Streams += len(l.origin.all)
	s.Starved += len(l.origin.starved)
	for _, t := range l.origin.takes {
		s.Masked += len(t.masked)
	}
}

// countPast adds the counters, which remain when the trunk ends.
func (l *link) countPast(s *Stats) {
	received, sent := l.lanes.traffic()
	s.Received.Add(received)
	s.Sent.Add(sent)
	s.Untaken += l.lanes.permit.total.Load()
	s.Malformed += l.malformed
	s.Failed += l.outbox.failed
}
