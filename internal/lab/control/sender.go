package control

import (
	"encoding/binary"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/internal/recent"
)

const (
	// maxSent packets of each tile are kept for retransmission: a second at 320 Mbit/s.
	maxSent = 1 << 15
	// maxProbeFactor and probeGrace bound the time of a probe, as the server does.
	maxProbeFactor = 2
	probeGrace     = 5 * time.Millisecond
	// never is after every time.
	never = time.Duration(1<<63 - 1)
)

// outgoing is a frame on its way to the receiver.
type outgoing struct {
	tile, number   int64
	captured       time.Duration
	bytes          int // of payload, without parity
	source, parity int // fragments
	planned        int // fragments that are sent unless the frame is dropped
	begun, dropped bool
	left           time.Duration // when the first fragment left, once it has begun
}

// size is that of a fragment's payload.
func (f *outgoing) size(index int) int {
	if index == f.source-1 {
		return f.bytes - (f.source-1)*fragmentSize
	}
	return fragmentSize
}

// fragment is one packet of a frame.
type fragment struct {
	frame *outgoing
	index int
}

// sentFragment is a packet kept for retransmission.
type sentFragment struct {
	fragment
	at       time.Duration
	repeated time.Duration
}

// stream is what the sender keeps of one tile.
type stream struct {
	schedule pacing.Schedule
	held     pacing.Flow[fragment]
	next     int64 // sequence number
	sent     [maxSent]sentFragment
	repeated uint16 // sequence number of the next packet of its RTX stream
}

// sender is the server towards one receiver.
type sender struct {
	id        uint64
	path      time.Duration // round trip of the empty path
	estimator congestion.Estimator
	departed  departures
	results   []feedback.PacketResult
	plan      pacing.Plan
	pacer     *pacing.Pacer[fragment, repair]
	streams   [tiles]*stream
	link      *netem.Link
	ledger    *ledger

	trains  trains
	refuses bool                      // retransmissions: the receiver takes no RTX
	trips   recent.Max[time.Duration] // round trips, queues included
	dropped int                       // frames, since the allocator was told
}

func newSender(id uint64, o *Options, estimator congestion.Estimator, plan pacing.Plan, link *netem.Link, l *ledger) *sender {
	s := &sender{
		id: id, path: o.RTT, estimator: estimator, departed: newDepartures(o.Feedback), plan: plan, pacer: pacing.NewPacer[fragment, repair](plan),
		link: link, ledger: l, refuses: o.NoRTX,
	}
	s.limit(0)
	for t := range s.streams {
		s.streams[t] = &stream{schedule: pacing.NewSchedule(plan, clockRate)}
	}
	return s
}

// frame takes a frame of a tile that has just arrived whole.
func (s *sender) frame(f *outgoing, now time.Duration) {
	st := s.streams[f.tile]
	for index := range f.planned {
		due := st.schedule.Due(pacing.Packet{
			Framed: true, Frame: f.number, Index: index, Packets: f.planned, Timestamp: timestamp(f.captured),
		}, now)
		p, offer := fragment{f, index}, pacing.Offer{Arrived: now, Due: due, Begins: index == 0}
		if s.pacer.Admit(&st.held, offer, now) {
			s.release(p, now)
		} else {
			s.pacer.Hold(&st.held, p, offer)
		}
	}
}

// release sends a packet whose time has come, unless its frame has waited for too long.
func (s *sender) release(p fragment, now time.Duration) {
	f := p.frame
	if !f.begun && !f.dropped {
		if now-f.captured > max(frameInterval, s.plan.Span(frameInterval)) {
			f.dropped = true
			s.dropped++
			s.ledger.droppedWhole++
		} else {
			f.begun, f.left = true, now
			s.pacer.Begin(&s.streams[f.tile].held)
			s.ledger.begin(f)
		}
	}
	if f.begun && !f.dropped && now-f.left > s.patience() {
		s.end(p)
	}
	if f.dropped {
		return
	}
	st := s.streams[f.tile]
	sequence := st.next
	st.next++
	st.sent[sequence%maxSent] = sentFragment{p, now, -minRepeat}
	kind := feedback.Media
	if p.index >= f.source {
		kind = feedback.Parity
	}
	s.transmit(p, sequence, kind, f.size(p.index)+congestion.PacketOverhead, now)
}

// end drops a packet and what waits of its frame, which cannot be complete in time any more.
func (s *sender) end(p fragment) {
	f := p.frame
	f.dropped = true
	s.dropped++
	s.ledger.end(f, p.index)
	s.pacer.Filter(&s.streams[f.tile].held, func(other fragment) bool { return other.frame != f })
}

// transmit puts a packet on the link.
func (s *sender) transmit(p fragment, sequence int64, kind feedback.PacketKind, size int, now time.Duration) {
	h := header{kind: kind, number: uint16(sequence), sequence: sequence}
	if p.frame != nil {
		f := p.frame
		h.tile, h.index, h.source, h.parity = uint8(f.tile), uint16(p.index), uint16(f.source), uint16(f.parity)
		h.frame, h.captured = f.number, f.captured
	}
	if h.repeats() {
		st := s.streams[h.tile]
		h.number = st.repeated
		st.repeated++
	}
	place := s.departed.sent(&h, size, now)
	s.estimator.Sent(at(now), size)
	if s.pacer.Probing() {
		s.trains.add(place)
	}
	s.pacer.Spend(size)
	s.ledger.sent(kind, size)
	s.link.Send(&netem.Packet{Payload: h.marshal(), Size: size, Flow: s.id}, at(now))
}

// rtcp takes a compound from the receiver.
func (s *sender) rtcp(compound []byte, now time.Duration) {
	for len(compound) >= 4 {
		size := 4 * (int(binary.BigEndian.Uint16(compound[2:])) + 1)
		packet := compound[:size]
		compound = compound[size:]
		if isReport(packet) {
			s.report(packet, now)
			continue
		}
		var nack rtcp.TransportLayerNack
		if err := nack.Unmarshal(packet); err != nil {
			panic("control: a request that was just made cannot be read: " + err.Error())
		}
		for _, pair := range nack.Nacks {
			for _, number := range pair.PacketList() {
				s.repeat(int(nack.MediaSSRC), number, now)
			}
		}
	}
}

// report takes a report of arrivals to the estimator.
func (s *sender) report(packet []byte, now time.Duration) {
	s.results = s.departed.reported(packet, now, s.results[:0])
	for i := range s.results {
		s.results[i].Probe = s.trains.of(s.results[i].Sequence)
	}
	s.estimator.Report(at(now), s.results)
	s.trips.Add(now, congestion.LongestTrip(at(now), s.results), feedback.QueueMemory)
	s.consult(now)
}

// limit takes what is known of the path to the pacer, unless that holds nothing: then the server does not limit retransmissions either.
func (s *sender) limit(now time.Duration) {
	if s.plan.Off() {
		return
	}
	stats := s.estimator.Stats()
	s.pacer.SetPath(stats.Path(), now)
}

// consult takes a new estimate to the pacer, and asks for a probe.
func (s *sender) consult(now time.Duration) {
	s.limit(now)
	if s.pacer.Probing() {
		return
	}
	if c, ok := s.estimator.Probe(at(now)); ok {
		s.trains.begin(c.ID)
		s.pacer.Probe(int64(c.Rate), c.MinBytes, c.MinPackets, now+maxProbeFactor*c.Duration+probeGrace, now)
	}
}

// next is when run has something to do.
func (s *sender) next() time.Duration {
	next := never
	if due := s.estimator.Next(); !due.IsZero() {
		next = due.Sub(epoch)
	}
	if due, ok := s.pacer.Next(); ok {
		next = min(next, due)
	}
	return next
}

// run does what is due.
func (s *sender) run(now time.Duration) {
	if due := s.estimator.Next(); !due.IsZero() && !due.After(at(now)) {
		s.estimator.Step(at(now))
		s.consult(now)
	}
	if due, ok := s.pacer.Next(); !ok || due > now {
		return
	}
	probing := s.pacer.Probing()
	s.pacer.Tick(now)
	for r, ok := s.pacer.PopRepair(); ok; r, ok = s.pacer.PopRepair() {
		s.resend(r, now)
	}
	for {
		p, ok := s.pacer.Pop(now)
		if !ok {
			break
		}
		s.release(p, now)
	}
	s.pad(now)
	if probing && !s.pacer.Probing() {
		s.consult(now)
	}
}
