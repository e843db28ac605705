package control

import (
	"encoding/binary"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/congestion/sender"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/netem"
)

const (
	// maxSent is the number of packets of each tile that are kept for retransmission: a second at 320 Mbit/s.
	maxSent = 1 << 15
	// never is later than every time.
	never = sender.Never
)

// outgoing is a frame on its way to the receiver.
type outgoing struct {
	tile, number   int64
	captured       time.Duration
	bytes          int // of payload, without parity
	source, parity int // fragments
	planned        int // fragments to send unless the frame is dropped
	begun, dropped bool
	left           time.Duration // departure of the first fragment, if begun
}

// size returns the payload of a fragment, in bytes.
func (f *outgoing) size(index int) int {
	if index == f.source-1 {
		return f.bytes - (f.source-1)*fragmentSize
	}
	return fragmentSize
}

// wireSize returns the size of the frame on the wire, in bytes.
func (f *outgoing) wireSize() int {
	return f.bytes + (f.planned-f.source)*fragmentSize + f.planned*congestion.PacketOverhead
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

// stream is the sender's state of one tile.
type stream struct {
	schedule pacing.Schedule
	held     pacing.Flow[fragment]
	next     int64 // sequence number
	sent     [maxSent]sentFragment
	repeated uint16 // sequence number of the next packet of its RTX stream
}

// server is the server towards one receiver. It uses the same sender.Sender as the real server.
type server struct {
	*sender.Sender[fragment, repair]
	id      uint64
	path    time.Duration // round trip of the empty path
	byRFC   bool          // reports are in the format of RFC 8888
	history *sender.History
	results []feedback.PacketResult
	plan    pacing.Plan
	streams [tiles]*stream
	link    *netem.Link
	ledger  *ledger

	counter PacketCounter // nil unless the estimator is one

	noRTX   bool          // the receiver does not accept RTX
	latest  time.Duration // departure of the latest packet of a frame
	dropped int           // frames dropped since the last allocation
	// housekeeping is the time of the next check for changes over time.
	housekeeping time.Duration
}

func newServer(
	id uint64, o *Options, estimator congestion.Estimator, plan pacing.Plan, link *netem.Link, l *ledger,
	begins time.Duration,
) *server {
	s := &server{
		Sender: sender.New[fragment, repair](sender.Options{Plan: plan}, epoch), history: sender.NewNumbered(1),
		id: id, path: o.RTT, plan: plan, link: link, ledger: l, noRTX: o.NoRTX, housekeeping: begins,
	}
	if s.byRFC = o.Feedback == FeedbackCCFB; s.byRFC {
		s.history = sender.NewByStream()
	}
	s.counter, _ = estimator.(PacketCounter)
	s.Start(s.history, estimator, at(begins))
	for t := range s.streams {
		s.streams[t] = &stream{schedule: pacing.NewSchedule(plan, clockRate)}
	}
	return s
}

// frame accepts a complete frame of a tile.
func (s *server) frame(f *outgoing, now time.Duration) {
	st := s.streams[f.tile]
	for index := range f.planned {
		due := st.schedule.Due(pacing.Packet{
			Framed: true, Frame: f.number, Index: index, Packets: f.planned, Timestamp: timestamp(f.captured),
		}, now)
		p, offer := fragment{f, index}, pacing.Offer{Arrived: now, Due: due, Begins: index == 0}
		if offer.Begins {
			offer.Frame, offer.Expires = f.wireSize(), f.captured+s.budget()+1
		}
		if s.Admit(&st.held, offer, now) {
			s.release(p, now)
		} else {
			s.Hold(&st.held, p, offer)
		}
	}
}

// budget is the time for which a frame may wait to begin.
func (s *server) budget() time.Duration { return max(frameInterval, s.plan.Span(frameInterval)) }

// release sends a packet that is due, unless its frame has waited too long.
func (s *server) release(p fragment, now time.Duration) {
	f := p.frame
	if !f.begun && !f.dropped {
		if now-f.captured > s.budget() {
			f.dropped = true
			s.dropped++
			s.ledger.droppedWhole++
		} else {
			f.begun, f.left = true, now
			s.Begin(&s.streams[f.tile].held)
			s.ledger.begin(f)
		}
	}
	if f.begun && !f.dropped && now-f.left > s.frameLifetime() {
		s.end(p)
	}
	if f.dropped {
		return
	}
	s.latest = now
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

// end drops a packet and the queued packets of its frame, which can no longer be complete in time.
func (s *server) end(p fragment) {
	f := p.frame
	f.dropped = true
	s.dropped++
	s.ledger.end(f, p.index)
	s.Filter(&s.streams[f.tile].held, func(other fragment) bool { return other.frame != f })
}

// transmit puts a packet on the link, with the codepoint that the estimator has selected.
func (s *server) transmit(p fragment, sequence int64, kind feedback.PacketKind, size int, now time.Duration) {
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
	number := s.Sent(h.ssrc(), h.number, size, kind, at(now))
	if s.counter != nil {
		s.counter.SentPacket(number)
	}
	if !s.byRFC {
		h.number = uint16(number)
	}
	s.Spend(size)
	s.ledger.sent(kind, size)
	codepoint := s.Stats().ECN
	s.ledger.left(codepoint, now)
	s.link.Send(&netem.Packet{Payload: h.marshal(), Size: size, Flow: s.id, ECN: codepoint}, at(now))
}

// rtcp handles an RTCP compound from the receiver.
func (s *server) rtcp(compound []byte, now time.Duration) {
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

// report handles an arrival report.
func (s *server) report(packet []byte, now time.Duration) {
	s.results = s.Report(packet, at(now), at(now), s.results[:0])
	s.Consult(at(now))
}

// next returns the time when run is due.
func (s *server) next() time.Duration {
	next := min(s.StepDue(), s.housekeeping)
	if due, ok := s.Next(); ok {
		next = min(next, due)
	}
	return next
}

// run performs the work that is due. As in the real server, packets leave before the step of the estimator.
func (s *server) run(now time.Duration) {
	if due, ok := s.Next(); ok && due <= now {
		s.tick(now)
	}
	if s.StepDue() <= now {
		s.Step(at(now))
	}
	if s.housekeeping <= now {
		s.housekeeping = now + sender.LookInterval
		s.Consult(at(now))
	}
}

// tick sends the packets that are due, retransmissions first.
func (s *server) tick(now time.Duration) {
	s.Tick(now)
	for r, ok := s.PopRepair(); ok; r, ok = s.PopRepair() {
		s.resend(r, now)
	}
	for {
		p, ok := s.Pop(now)
		if !ok {
			break
		}
		s.release(p, now)
	}
	s.pad(now)
}
