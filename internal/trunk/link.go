package trunk

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/logging"
	"github.com/pion/sctp"

	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/forward/ingress"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/internal/transport/ratelimit"
	"github.com/volsfu/volsfu/pkg/frametimes/clock"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// controlStream carries messages in order, probeStream probes that are neither ordered nor repeated.
	controlStream = 0
	probeStream   = 1
	// receiveWindow is the number of bytes that the other node may send before Step reads them.
	receiveWindow = 1 << 20
	// longestRepeat is the maximum retransmission timeout of SCTP in milliseconds, the minimum of Pion.
	longestRepeat = 1000
	// maxUnsent is the number of bytes that may wait in SCTP before payloads are refused, maxUnsentState the number
	// before whole states wait.
	maxUnsent      = 1 << 20
	maxUnsentState = 256 << 10
	// maxWaiting bounds the messages that wait for Step. More wait in SCTP.
	maxWaiting = 256
	// rateStep is the change of a rate that is reported.
	rateStep = 0.05
)

var (
	// sendRate limits the payloads to another node, messageRate the messages of another node.
	sendRate    = ratelimit.Rate{PerSecond: 2000, Burst: 1000}
	messageRate = ratelimit.Rate{PerSecond: 5000, Burst: 10_000}
)

// dirt is a set of states that have to be sent.
type dirt uint8

const (
	dirtyTake dirt = 1 << iota
	dirtyRates
	dirtyGaveUp
	dirtyMasks
)

// link is one trunk. The caller of the Host owns it, except for the marked fields.
type link struct {
	host        *Host
	node        string
	incarnation uint64
	// greeted is set once the other node has sent its hello. offeredLanes is the number of lanes in it.
	greeted      bool
	offeredLanes int
	origin       *origin
	taking       *taking
	lanes        [transport.MaxLanes]*mediaLane
	// done is closed when the trunk has ended.
	done    chan struct{}
	closing sync.Once

	// control and probes are the streams of SCTP, nil until they are open.
	control, probes *sctp.Stream
	// arrived has the messages that Step has not read.
	arrived chan arrival
	// sent and received are the numbers of the last messages.
	sent, received uint64
	sends          ratelimit.Bucket
	messages       ratelimit.Bucket

	// dirty has the states to send. ended are the mirrors that were removed.
	dirty map[publication]dirt
	ended map[publication]struct{}
	// waiting are offers with a lane that is not open here yet.
	waiting map[publication]*offer
	// told are the rates that the other node knows.
	told map[publication][]volumetric.Bitrate

	clock                        clock.Estimator
	begun, heard, probed, fitted time.Time
	silent                       bool
	slots                        map[*line]*egress.Slot

	// permitted are the SSRCs that may arrive, for the goroutines of the lanes. untaken counts other packets.
	permitted atomic.Pointer[map[uint32]int64]
	untaken   atomic.Uint64
}

// arrival is a control message or a probe, or a stream that the other node has opened.
type arrival struct {
	data   []byte
	stream *sctp.Stream
	probe  bool
	at     time.Time
}

// mediaLane is a lane with its two directions. It implements forward.Peer.
type mediaLane struct {
	*transport.Lane
	ingress  *ingress.Ingress
	receiver *egress.Receiver
}

// Post implements egress.Peer.
func (l *mediaLane) Post(batch egress.Batch) {
	b, _ := batch.(*transport.Batch)
	l.Lane.Post(b)
}

// sink passes the packets of a lane to the data plane.
type sink struct {
	transport.NoOpSink
	link *link
	lane *mediaLane
}

// RTP implements transport.Sink.
func (s *sink) RTP(ssrc uint32, packet []byte, info *transport.PacketInfo) {
	if until, known := (*s.link.permitted.Load())[ssrc]; !known || until != 0 && until < info.At.UnixNano() {
		s.link.host.untaken.Add(1)
		if s.link.untaken.Add(1) == MaxUntaken {
			s.link.host.report(ended{s.link, fmt.Sprintf("%d packets of tracks that were not taken", MaxUntaken)})
		}
		return
	}
	s.lane.ingress.RTP(ssrc, packet, info)
}

// RTCP implements transport.Sink.
func (s *sink) RTCP(packet []byte, now time.Time) {
	const senderReport = 200
	if packet[1] == senderReport {
		s.lane.ingress.RTCP(packet, now)
	}
	s.lane.receiver.RTCP(packet, now)
}

// Flush implements transport.Sink.
func (s *sink) Flush() { s.lane.ingress.Flush() }

func newLink(h *Host, node string, now time.Time) *link {
	l := &link{
		host: h, node: node, origin: newOrigin(rand.Uint32() &^ 1), taking: newTaking(), done: make(chan struct{}),
		arrived: make(chan arrival, maxWaiting), sends: sendRate.Bucket(), messages: messageRate.Bucket(),
		dirty: map[publication]dirt{}, ended: map[publication]struct{}{}, waiting: map[publication]*offer{},
		told: map[publication][]volumetric.Bitrate{}, slots: map[*line]*egress.Slot{}, begun: now, heard: now,
	}
	l.permitted.Store(&map[uint32]int64{})
	for p, pub := range h.publications {
		l.origin.publish(p, pub.qualities, pub.audio)
	}
	for _, m := range h.mirrors {
		if m.node != node {
			continue
		}
		l.taking.mirror(m.publication, m.qualities, len(m.tracks))
		if m.take != nil {
			l.taking.demand(m.publication, sets(m.take.Tiles))
			l.dirty[m.publication] |= dirtyTake
		}
	}
	return l
}

// add adds an open lane. It reports false if there is one with the number.
func (l *link) add(t *transport.Lane) bool {
	number := t.Number()
	if l.lanes[number] != nil {
		return false
	}
	h := l.host
	lane := &mediaLane{Lane: t}
	lane.ingress = h.engine.NewIngress(lane)
	lane.receiver = h.engine.NewRelay(lane, Limits)
	lane.receiver.Want(0)
	l.lanes[number] = lane
	for number := range l.lanes {
		if l.lanes[number] != nil {
			l.origin.lanes = number + 1
		} else {
			break
		}
	}
	t.Start(&sink{link: l, lane: lane})
	for _, m := range l.waiting {
		l.bind(m)
	}
	h.running.Go(func() {
		reason := "the lane has ended"
		h.cfg.Guard.Try(Place, func() {
			if err := l.serve(t, number); err != nil {
				reason = err.Error()
			}
		})
		t.Close()
		h.report(ended{l, reason})
	})
	return true
}

// missing returns the number of the first missing lane of that many, -1 if there is none, or while the first one is not
// in use.
func (l *link) missing(lanes int) int {
	if !l.greeted {
		return -1
	}
	for number := range lanes {
		if l.lanes[number] == nil {
			return number
		}
	}
	return -1
}

// close ends the trunk. Its tracks are unbound.
func (l *link) close() {
	l.closing.Do(func() { close(l.done) })
	for _, lane := range l.lanes {
		if lane != nil {
			lane.Close()
			lane.receiver.Close()
			lane.ingress.Close()
		}
	}
}

// serve reads a lane until it ends. The first lane has the association for control.
func (l *link) serve(lane *transport.Lane, number int) error {
	if number > 0 {
		buffer := make([]byte, 2048)
		for {
			if _, err := lane.Read(buffer); err != nil {
				return err
			}
		}
	}
	logs := logging.NewDefaultLoggerFactory()
	logs.DefaultLogLevel = logging.LogLevelDisabled
	association, err := sctp.ClientWithOptions(
		sctp.WithNetConn(lane.Control()), sctp.WithLoggerFactory(logs), sctp.WithRTOMax(longestRepeat),
		sctp.WithMaxReceiveBufferSize(receiveWindow), sctp.WithMaxMessageSize(maxMessage),
		sctp.WithEnableInterleaving(false),
	)
	if err != nil {
		return err
	}
	defer func() { _ = association.Close() }()
	if l.host.cfg.Node < l.node {
		for _, id := range []uint16{controlStream, probeStream} {
			stream, err := association.OpenStream(id, sctp.PayloadTypeWebRTCBinary)
			if err != nil {
				return err
			}
			l.read(stream)
		}
	}
	for {
		stream, err := association.AcceptStream()
		if err != nil {
			return err
		}
		if id := stream.StreamIdentifier(); id != controlStream && id != probeStream {
			return fmt.Errorf("%w: SCTP stream %d", ErrMessage, id)
		}
		l.read(stream)
	}
}

// read starts the goroutine that reads a stream.
func (l *link) read(stream *sctp.Stream) {
	probe := stream.StreamIdentifier() == probeStream
	if probe {
		stream.SetReliabilityParams(true, sctp.ReliabilityTypeRexmit, 0)
	}
	l.pass(arrival{stream: stream, probe: probe})
	l.host.running.Go(func() {
		l.host.cfg.Guard.Try(Place, func() {
			buffer := make([]byte, maxMessage)
			for {
				n, err := stream.Read(buffer)
				if err != nil {
					return
				}
				if !l.pass(arrival{data: slices.Clone(buffer[:n]), probe: probe, at: time.Now()}) {
					return
				}
			}
		})
	})
}

// pass passes an arrival to Step, and waits for room. It reports false once the trunk has ended.
func (l *link) pass(a arrival) bool {
	select {
	case l.arrived <- a:
		l.host.wake()
		return true
	case <-l.done:
		return false
	}
}

// unsent returns the number of bytes that wait in SCTP.
func (l *link) unsent() int {
	if l.control == nil {
		return math.MaxInt
	}
	return int(l.control.BufferedAmount())
}

// send sends a message. It reports false if SCTP does not accept the message.
func (l *link) send(m *message) bool {
	if l.control == nil {
		return false
	}
	m.Number = l.sent + 1
	data, err := json.Marshal(m)
	if err != nil || len(data) > maxMessage {
		return false
	}
	if _, err := l.control.WriteSCTP(data, sctp.PayloadTypeWebRTCBinary); err != nil {
		return false
	}
	l.sent++
	return true
}

// step handles arrivals, and sends what is due. The result is the reason to close the trunk, empty to keep it.
func (l *link) step(now time.Time) (reason string) {
	for range len(l.arrived) {
		if err := l.arrive(<-l.arrived); err != nil {
			l.host.stats.Malformed++
			return err.Error()
		}
	}
	if reason := l.listen(now); reason != "" {
		return reason
	}
	if !l.greeted {
		return ""
	}
	if l.probes != nil && now.Sub(l.probed) >= probeInterval {
		l.probed = now
		l.sendProbe(probe{T0: now.UnixNano()})
	}
	if now.Sub(l.fitted) >= fitInterval {
		l.fitted = now
		l.fit()
	}
	l.carry(now)
	if permitted, changed := l.taking.permit(now); changed {
		l.permitted.Store(&permitted)
	}
	l.flush()
	return ""
}

// listen follows when the other node was last heard.
func (l *link) listen(now time.Time) (reason string) {
	heard := l.heard
	for _, lane := range l.lanes {
		if lane != nil && lane.Heard().After(heard) {
			heard = lane.Heard()
		}
	}
	switch {
	case heard.Sub(l.heard) >= heardInterval:
		l.heard, l.silent = heard, false
		if l.greeted {
			l.host.event(Heard{l.node, l.incarnation})
		}
	case now.Sub(heard) > endAfter:
		return fmt.Sprintf("nothing has arrived for %v", endAfter)
	case now.Sub(heard) > SilentAfter && !l.silent && l.greeted:
		l.silent = true
		l.host.event(Silent{l.node, l.incarnation})
	}
	return ""
}

// arrive handles an arrival.
func (l *link) arrive(a arrival) error {
	switch {
	case a.stream != nil && a.probe:
		l.probes = a.stream
		return nil
	case a.stream != nil:
		l.control = a.stream
		if !l.send(&message{Hello: &hello{
			Versions: [2]int{minVersion, maxVersion}, Node: l.host.cfg.Node, Incarnation: l.host.cfg.Incarnation,
			Lanes: l.host.cfg.Lanes,
		}}) {
			return io.ErrClosedPipe
		}
		return nil
	case !l.messages.Take(a.at):
		return fmt.Errorf("%w: more than %d messages per second", ErrMessage, messageRate.PerSecond)
	case a.probe:
		return l.probe(a)
	}
	m, err := decode(a.data)
	if err != nil {
		return err
	}
	if m.Number != l.received+1 {
		return fmt.Errorf("%w: number %d, expected %d", ErrMessage, m.Number, l.received+1)
	}
	l.received++
	return l.take(m)
}

// probe replies to a probe, or reads the reply to one.
func (l *link) probe(a arrival) error {
	var p probe
	if err := json.Unmarshal(a.data, &p); err != nil {
		return fmt.Errorf("%w: %w", ErrMessage, err)
	}
	if p.T1 == 0 {
		l.sendProbe(probe{T0: p.T0, T1: a.at.UnixNano(), T2: time.Now().UnixNano()})
		return nil
	}
	times := [3]time.Time{time.Unix(0, p.T0), time.Unix(0, p.T1), time.Unix(0, p.T2)}
	if l.clock.RoundTrip(times[0], times[1], times[2], a.at.Round(0)) != nil {
		// A clock was set.
		return nil
	}
	trip := a.at.Round(0).Sub(times[0]) - times[2].Sub(times[1])
	for _, lane := range l.lanes {
		if lane != nil {
			lane.SetRTT(trip)
		}
	}
	return nil
}

func (l *link) sendProbe(p probe) {
	if l.probes == nil || l.probes.BufferedAmount() > 4096 {
		return
	}
	if data, err := json.Marshal(p); err == nil {
		_, _ = l.probes.WriteSCTP(data, sctp.PayloadTypeWebRTCBinary)
	}
}

// take handles a control message.
func (l *link) take(m *message) error {
	if m.Hello != nil {
		return l.greet(m.Hello)
	}
	if !l.greeted {
		return fmt.Errorf("%w: the first message is not hello", ErrMessage)
	}
	h := l.host
	switch {
	case m.Take != nil:
		t := m.Take
		if !l.origin.take(t) {
			return fmt.Errorf("%w: node %s takes more than %d publications", ErrMessage, l.node, maxTakes)
		}
		if pub := h.publications[t.publication]; pub != nil {
			l.dirty[t.publication] |= dirtyRates | dirtyGaveUp
			delete(l.told, t.publication)
		}
		for track, line := range l.origin.takes[t.publication].streams {
			if line.selected && track >= 0 {
				l.slots[line].PassParity(t.Parity)
			}
		}
		h.event(Took{l.node, t.Room, t.ref(), t.ID, sets(t.Tiles), t.Near, t.Parity})
	case m.Offer != nil:
		l.bind(m.Offer)
	case m.Bound != nil:
		l.origin.confirm(m.Bound)
	case m.Rates != nil:
		h.event(Rates{l.node, m.Rates.Room, m.Rates.ref(), m.Rates.ID, m.Rates.Rates})
	case m.GaveUp != nil:
		h.event(GaveUp{l.node, m.GaveUp.Room, m.GaveUp.ref(), m.GaveUp.ID, sets(m.GaveUp.Tiles)})
	case m.Masks != nil:
		h.event(Masked{l.node, m.Masks.Room, m.Masks.ref(), m.Masks.ID, sets(m.Masks.Tiles)})
	case m.Payload != nil:
		h.event(Received{l.node, m.Payload})
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
	l.host.stats.Opened++
	if p := l.host.peers[l.node]; p != nil {
		p.backoff = minRedial
	}
	l.host.event(Linked{l.node, m.Incarnation, min(maxVersion, m.Versions[1])})
	return nil
}

// bind binds the streams of an offer to the tracks of the mirror.
func (l *link) bind(m *offer) {
	for _, s := range m.Streams {
		if l.lanes[s.Lane] == nil {
			// The handshake of the lane has ended at the other node, and ends here at once.
			if l.taking.mirrors[m.publication] != nil {
				l.waiting[m.publication] = m
			}
			return
		}
	}
	delete(l.waiting, m.publication)
	changes, known := l.taking.offered(m)
	mirror := l.host.mirrors[mirrorName{m.Room, m.ref()}]
	if !known || mirror == nil || mirror.publication != m.publication {
		return
	}
	for _, c := range changes {
		t, lane := mirror.tracks[c.Track], l.lanes[c.Lane]
		switch {
		case t == nil:
		case c.unbind:
			lane.ingress.Unbind(t)
		default:
			lane.ingress.Bind(c.SSRC, c.Retransmission, t)
		}
	}
	if permitted, changed := l.taking.permit(time.Now()); changed {
		l.permitted.Store(&permitted)
	}
	l.send(&message{Bound: &bound{m.publication, m.Offer}})
}

// unbindAll unbinds the tracks of a mirror.
func (l *link) unbindAll(m *mirror) {
	if k := l.taking.mirrors[m.publication]; k != nil {
		for track, s := range k.streams {
			if lane := l.lanes[s.Lane]; lane != nil && m.tracks[track] != nil {
				lane.ingress.Unbind(m.tracks[track])
			}
		}
	}
}

// carry follows the demand of the other node: opens slots, selects tracks, and sends offers.
func (l *link) carry(now time.Time) {
	for _, a := range l.origin.step(now) {
		switch {
		case a.offer != nil:
			l.send(&message{Offer: a.offer})
		case a.open:
			kind := volumetric.KindVideo
			if a.line.audio {
				kind = volumetric.KindAudio
			}
			lane := l.lanes[a.line.Lane]
			l.slots[a.line] = lane.receiver.AddSlot(lane.NewOutlet(a.line.SSRC, a.line.Retransmission), kind)
		case a.track < 0:
			l.slots[a.line].Select(nil, 0, now)
		default:
			if pub := l.host.publications[a.publication]; pub != nil && pub.tracks[a.track] != nil {
				t := pub.tracks[a.track]
				l.slots[a.line].PassParity(a.parity)
				l.slots[a.line].Select(t, t.Group(), now)
			}
		}
	}
}

// flush sends the states that have changed, as far as SCTP has room.
func (l *link) flush() {
	if len(l.dirty) == 0 {
		return
	}
	keys := make([]publication, 0, len(l.dirty))
	for p := range l.dirty {
		keys = append(keys, p)
	}
	slices.SortFunc(keys, func(a, b publication) int {
		return cmp.Or(cmp.Compare(a.Room, b.Room), cmp.Compare(a.ID, b.ID),
			cmp.Compare(a.Participant, b.Participant), cmp.Compare(a.Publication, b.Publication))
	})
	for _, p := range keys {
		if l.unsent() > maxUnsentState {
			return
		}
		what := l.dirty[p]
		delete(l.dirty, p)
		for _, m := range l.states(p, what) {
			l.send(m)
		}
	}
}

// states returns the messages for a publication.
func (l *link) states(p publication, what dirt) (messages []*message) {
	h := l.host
	if what&dirtyTake != 0 {
		mirror := h.mirrors[mirrorName{p.Room, p.ref()}]
		switch {
		case mirror != nil && mirror.publication == p && mirror.node == l.node && mirror.take != nil:
			messages = append(messages, &message{Take: mirror.take})
		default:
			if _, ended := l.ended[p]; ended {
				messages = append(messages, &message{Take: &take{publication: p, Tiles: [][]int{}}})
			}
		}
		delete(l.ended, p)
	}
	pub := h.publications[p]
	if pub == nil {
		return messages
	}
	if what&dirtyRates != 0 && pub.rates != nil && differ(l.told[p], pub.rates) {
		l.told[p] = pub.rates
		messages = append(messages, &message{Rates: &rates{p, pub.rates}})
	}
	if what&dirtyGaveUp != 0 && pub.gaveUp != nil {
		messages = append(messages, &message{GaveUp: &tileSets{p, lists(pub.gaveUp)}})
	}
	if what&dirtyMasks != 0 {
		messages = append(messages, &message{Masks: &tileSets{p, l.origin.maskedTiles(p)}})
	}
	return messages
}

// differ reports whether a rate has changed by rateStep, or has become known or unknown.
func differ(told, rates []volumetric.Bitrate) bool {
	if len(told) != len(rates) {
		return true
	}
	for i, rate := range rates {
		if before := told[i]; (before == 0) != (rate == 0) ||
			math.Abs(float64(rate-before)) >= rateStep*float64(before) && rate != before {
			return true
		}
	}
	return false
}

// fit masks the tracks that the estimate of the lanes does not carry, and states the wanted rate.
func (l *link) fit() {
	var candidates []candidate
	var wanted volumetric.Bitrate
	for p, t := range l.origin.takes {
		pub := l.host.publications[p]
		if pub == nil {
			continue
		}
		for track, source := range pub.tracks {
			if source == nil || !t.wants(track, pub.qualities) && !t.masked[track] {
				continue
			}
			rate, known := source.Rate()
			if !known && track < len(pub.rates) {
				rate = pub.rates[track]
			}
			wanted += rate
			candidates = append(candidates, candidate{p, track, pub.audio[track], track % pub.qualities, rate,
				t.masked[track]})
		}
	}
	estimate, known := volumetric.Bitrate(0), false
	lanes := 0
	for _, lane := range l.lanes {
		if lane == nil {
			continue
		}
		lanes++
		path := lane.receiver.Path()
		estimate += path.Estimate
		known = known || path.Known
	}
	for _, lane := range l.lanes {
		if lane != nil {
			lane.receiver.Want(volumetric.Bitrate(float64(wanted) / returnShare / float64(lanes)))
		}
	}
	if !known {
		return
	}
	fit(candidates, estimate)
	for _, c := range candidates {
		if l.origin.mask(c.publication, c.track, c.masked) {
			l.dirty[c.publication] |= dirtyMasks
		}
	}
}

// state returns the state of the trunk.
func (l *link) state(now time.Time) LinkState {
	s := LinkState{Node: l.node, Incarnation: l.incarnation, Silent: l.silent}
	for _, lane := range l.lanes {
		if lane == nil {
			continue
		}
		s.Lanes++
		s.RTT = lane.RTT()
		s.Estimate += lane.receiver.Path().Estimate
	}
	if e, known := l.clock.Estimate(now.Round(0)); known {
		s.Offset, s.Bound, s.Known = e.Offset, e.Bound, true
	}
	return s
}

// maxSockets is the number of sockets of the port: one for each core.
func maxSockets() int { return runtime.GOMAXPROCS(0) }
