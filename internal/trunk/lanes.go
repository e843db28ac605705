package trunk

import (
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/forward/ingress"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// MaxUntaken is the number of packets of tracks that were not taken within untakenWindow after which a trunk is
	// closed.
	MaxUntaken    = 1000
	untakenWindow = 10 * time.Second
)

// lanes are the lanes of a trunk, each with its data plane in both directions.
type lanes struct {
	engine *forward.Engine
	// limits are those of the estimate of each lane.
	limits congestion.Limits
	all    [transport.MaxLanes]*lane
	permit permit
}

// lane is one lane. It implements forward.Peer.
type lane struct {
	*transport.Lane
	ingress  *ingress.Ingress
	receiver *egress.Receiver
	// slots are the slots of the streams to the other node, also of streams at rest.
	slots map[*line]*egress.Slot
	// video are the streams of video that carry a track.
	video map[*line]struct{}
}

// Post implements egress.Peer.
func (l *lane) Post(batch egress.Batch) {
	b, _ := batch.(*transport.Batch)
	l.Lane.Post(b)
}

// open opens the slot of a stream.
func (l *lane) open(s *line) {
	kind := volumetric.KindVideo
	if s.audio {
		kind = volumetric.KindAudio
	}
	l.slots[s] = l.receiver.AddSlot(l.NewOutlet(s.SSRC, s.Retransmission), kind)
}

// carry makes a stream carry the packets of a track that have an origin, with a share of parity.
func (l *lane) carry(s *line, t *track.Track, origin uint32, parity float64, now time.Time) {
	if !s.audio {
		l.video[s] = struct{}{}
	}
	slot := l.slots[s]
	slot.PassParity(parity)
	slot.SelectFrom(t, t.Group(), origin, now)
}

// passParity sets the share of parity of a stream.
func (l *lane) passParity(s *line, share float64) { l.slots[s].PassParity(share) }

// rest makes a stream carry nothing.
func (l *lane) rest(s *line, now time.Time) {
	delete(l.video, s)
	l.slots[s].Select(nil, 0, now)
}

// permit are the SSRCs whose packets may arrive. Goroutines of lanes call admits.
type permit struct {
	began time.Time
	// ssrcs has the time until which each may arrive, as of taking.permit.
	ssrcs atomic.Pointer[map[uint32]time.Duration]
	// total counts the other packets, recent those since window, a time.Duration since began.
	total, recent atomic.Uint64
	window        atomic.Int64
	// exceeded is called when recent reaches MaxUntaken.
	exceeded func()
}

// admits reports whether a packet may arrive, and counts the packet otherwise.
func (p *permit) admits(ssrc uint32, at time.Time) bool {
	elapsed := at.Sub(p.began)
	if until, known := (*p.ssrcs.Load())[ssrc]; known && elapsed <= until {
		return true
	}
	p.total.Add(1)
	if begin := p.window.Load(); elapsed-time.Duration(begin) >= untakenWindow &&
		p.window.CompareAndSwap(begin, int64(elapsed)) {
		p.recent.Store(0)
	}
	if p.recent.Add(1) == MaxUntaken {
		p.exceeded()
	}
	return false
}

// sink passes the packets of a lane to the data plane.
type sink struct {
	transport.NoOpSink
	permit *permit
	lane   *lane
}

// RTP implements transport.Sink.
func (s *sink) RTP(ssrc uint32, packet []byte, info *transport.PacketInfo) {
	if s.permit.admits(ssrc, info.At) {
		s.lane.ingress.RTP(ssrc, packet, info)
	}
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

// add adds an open lane. add reports false if there is one with the number.
func (l *lanes) add(t *transport.Lane) bool {
	number := t.Number()
	if l.all[number] != nil {
		return false
	}
	added := &lane{Lane: t, slots: map[*line]*egress.Slot{}, video: map[*line]struct{}{}}
	added.ingress = l.engine.NewIngress(added)
	added.ingress.RequestOncePerTrip()
	added.receiver = l.engine.NewRelay(added, l.limits)
	added.receiver.Want(0)
	l.all[number] = added
	t.Start(&sink{permit: &l.permit, lane: added})
	return true
}

// open returns the open lanes.
func (l *lanes) open() (open []*lane) {
	for _, lane := range l.all {
		if lane != nil {
			open = append(open, lane)
		}
	}
	return open
}

// of returns the lane of a stream to the other node.
func (l *lanes) of(s *line) *lane { return l.all[s.Lane] }

// missing returns the number of the first lane that is not open, transport.MaxLanes if all are.
func (l *lanes) missing() int {
	for number, lane := range l.all {
		if lane == nil {
			return number
		}
	}
	return transport.MaxLanes
}

// close closes all lanes.
func (l *lanes) close() {
	for _, lane := range l.open() {
		lane.Close()
		lane.receiver.Close()
		lane.ingress.Close()
	}
}

// lastReceived returns the time of the last authenticated packet of all lanes, zero before the first.
func (l *lanes) lastReceived() (last time.Time) {
	for _, lane := range l.open() {
		if at := lane.LastReceived(); at.After(last) {
			last = at
		}
	}
	return last
}

// setRTT adds a measured round-trip time.
func (l *lanes) setRTT(took time.Duration) {
	for _, lane := range l.open() {
		lane.SetRTT(took)
	}
}

// estimate returns the sum of the estimates. known is false until a report has arrived.
func (l *lanes) estimate() (sum volumetric.Bitrate, known bool) {
	for _, lane := range l.open() {
		path := lane.receiver.Path()
		sum += path.Estimate
		known = known || path.Known
	}
	return sum, known
}

// want states the rate that all lanes should carry together. Only lanes that carry video have packets for probes: the
// estimates of the others do not rise.
func (l *lanes) want(rate volumetric.Bitrate) {
	share := rate / volumetric.Bitrate(max(l.withVideo(), 1))
	for _, lane := range l.open() {
		lane.receiver.Want(share)
	}
}

// withVideo returns the number of lanes that carry video.
func (l *lanes) withVideo() (n int) {
	for _, lane := range l.open() {
		if len(lane.video) > 0 {
			n++
		}
	}
	return n
}

// traffic returns the counts of all lanes.
func (l *lanes) traffic() (received, sent transport.Traffic) {
	for _, lane := range l.open() {
		in, out := lane.Traffic()
		received.Add(in)
		sent.Add(out)
	}
	return received, sent
}
