package redundancy_test

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/internal/redundancy"
)

var start = time.Unix(1_000_000, 0)

const (
	tick = time.Millisecond
	// deadline is the time after its first departure within which a frame must be complete.
	deadline = 150 * time.Millisecond
	// rtxSSRC is added to the SSRC of a stream for its retransmissions.
	rtxSSRC = 1000
)

// world is a sender and a receiver, with two paths between them, in virtual time. The sender sends streams, answers
// requests for lost packets and obeys its Selector. The receiver requests lost packets and reports both paths.
type world struct {
	t        *testing.T
	now      time.Time
	selector *redundancy.Selector // nil copies nothing
	recorder *redundancy.Recorder
	paths    [redundancy.Paths]way
	streams  []*stream
	// packets are all packets sent, by netem.Packet.Number. messages are the messages sent back.
	packets  []packet
	messages []message
	rtt      time.Duration
	// began is called when an outage begins.
	began       func(stranded int)
	sent, total uint64
	// primary is the path on which every packet leaves. alone is set while there is no second path. lastHeard and
	// firstHeard are the latest arrival on the first path, and the first one after a pause.
	primary uint8
	// fits is the rate that frames fit until fitsUntil.
	fits      float64
	fitsUntil time.Time
	// pending are retransmissions, which leave at one per tick, 9.6 Mbit/s.
	pending               []repair
	alone                 bool
	lastHeard, firstHeard time.Time
}

// way is the two directions of a path.
type way struct{ there, back *netem.Link }

// stream is a source of audio or of frames, and its receiver.
type stream struct {
	ssrc  uint32
	class redundancy.Class
	// every is the time between two frames, of packets of size bytes, spread over spread.
	every, spread time.Duration
	count, size   int

	state, repairs redundancy.Stream
	next           time.Time
	queued         []queued
	repairNumber   uint16
	frames         []frame
	// packets is the frame of each packet, by sequence number.
	packets []int
	nacks   *feedback.NACKGenerator
	arrived map[int64]bool
	// repeated has the time of the last retransmission of each packet.
	repeated map[int64]time.Time
}

type repair struct {
	stream   *stream
	sequence int64
}

type queued struct {
	due   time.Time
	frame int
	index int
}

type frame struct {
	begun, done time.Time
	first       int64
	count       int
	missing     int
}

// packet is a packet in transit: an original, or its retransmission.
type packet struct {
	stream   *stream
	ssrc     uint32
	number   uint16
	sequence int64
	frame    int
	received bool
}

// message is a report, or a request for packets of a stream.
type message struct {
	report   []byte
	stream   *stream
	asked    []int64
	received bool
}

func newWorld(t *testing.T, selector *redundancy.Selector, seed uint64, paths ...netem.Config) *world {
	t.Helper()
	// Message 0 is the answer to a check.
	w := &world{t: t, now: start, lastHeard: start, firstHeard: start, messages: make([]message, 1),
		selector: selector, began: func(int) {}, rtt: 40 * time.Millisecond}
	for i, config := range paths {
		for _, link := range []**netem.Link{&w.paths[i].there, &w.paths[i].back} {
			made, err := netem.NewLink(config, 4*seed+uint64(2*i+1), nil)
			if err != nil {
				t.Fatal(err)
			}
			*link = made
		}
	}
	return w
}

// add adds a stream.
func (w *world) add(s *stream) *stream {
	s.ssrc, s.next = uint32(len(w.streams)+1), w.now
	s.nacks, s.arrived = feedback.NewNACKGenerator(feedback.DefaultConfig().NACK), make(map[int64]bool)
	s.repeated = make(map[int64]time.Time)
	w.streams = append(w.streams, s)
	return s
}

// impair changes both directions of a path from now on.
func (w *world) impair(path int, config netem.Config) {
	w.t.Helper()
	for _, link := range []*netem.Link{w.paths[path].there, w.paths[path].back} {
		if err := link.Reconfigure(config, w.now); err != nil {
			w.t.Fatal(err)
		}
	}
}

// step advances the time by a tick.
func (w *world) step() {
	w.now = w.now.Add(tick)
	w.choosePrimary()
	if len(w.pending) > 0 {
		w.repeat(w.pending[0].stream, w.pending[0].sequence)
		w.pending = w.pending[1:]
	}
	for _, s := range w.streams {
		w.produce(s)
	}
	for i, path := range w.paths {
		for _, p := range path.there.Deliver(w.now) {
			w.receive(uint8(i), &w.packets[p.Number], p.Arrival)
		}
		for _, p := range path.back.Deliver(w.now) {
			if i == 0 {
				w.heardFirst()
			}
			if p.Number > 0 {
				w.hear(&w.messages[p.Number])
			}
		}
	}
	for _, s := range w.streams {
		if s.class == redundancy.Audio {
			continue
		}
		if asked, _ := s.nacks.Due(w.now, w.rtt, nil, nil); len(asked) > 0 {
			w.tell(message{stream: s, asked: asked})
		}
	}
	if w.now.Sub(start)%(100*time.Millisecond) == 0 {
		// The answer to a check of the first path.
		w.paths[0].back.Send(&netem.Packet{Size: 100}, w.now)
	}
	if w.recorder != nil {
		if report := w.recorder.AppendReport(nil, w.now); report != nil {
			w.tell(message{report: report})
		}
	}
}

// choosePrimary emulates the transport: the second path becomes the primary one when the first has been silent for a
// second, and the first becomes the primary one again when it has worked for a second.
func (w *world) choosePrimary() {
	silent := w.now.Sub(w.lastHeard)
	if w.alone = silent > time.Second; w.alone {
		w.primary = 1
	} else if silent < 300*time.Millisecond && w.now.Sub(w.firstHeard) > time.Second {
		w.primary = 0
	}
}

// heardFirst records that the first path works.
func (w *world) heardFirst() {
	if w.now.Sub(w.lastHeard) > 300*time.Millisecond {
		w.firstHeard = w.now
	}
	w.lastHeard = w.now
}

// fitting returns the number of packets of the next frame of a stream. During an outage, frames of high quality are
// shortened so that everything fits the second path, as the server chooses lower qualities then.
func (w *world) fitting(s *stream) int {
	if s.class != redundancy.Other || w.selector == nil {
		return s.count
	}
	rate, outage := w.selector.Outage()
	switch {
	case outage:
		w.fitsUntil, w.fits = w.now.Add(time.Second), rate
	case w.now.Before(w.fitsUntil):
		// The estimate of the first path increases slowly.
		rate = w.fits
	default:
		return s.count
	}
	fixed, high := 0.0, 0.0
	for _, other := range w.streams {
		bits := float64(other.count*other.size*8) / other.every.Seconds()
		if other.class == redundancy.Other {
			high += bits
		} else {
			fixed += bits
		}
	}
	return max(1, min(s.count, int(float64(s.count)*(0.9*rate-fixed)/high)))
}

// produce sends the packets of a stream that are due.
func (w *world) produce(s *stream) {
	if !w.now.Before(s.next) {
		count := w.fitting(s)
		for i := range count {
			due := w.now.Add(s.spread * time.Duration(i) / time.Duration(count))
			s.queued = append(s.queued, queued{due, len(s.frames), i})
		}
		s.frames = append(s.frames, frame{begun: w.now, count: count, missing: count})
		s.next = s.next.Add(s.every)
	}
	for len(s.queued) > 0 && !w.now.Before(s.queued[0].due) {
		q := s.queued[0]
		s.queued = s.queued[1:]
		sequence := int64(len(s.packets))
		p := redundancy.Packet{
			SSRC: s.ssrc, Sequence: uint16(sequence), Size: s.size, Class: s.class,
			Begins: q.index == 0, Ends: q.index == s.frames[q.frame].count-1,
		}
		if p.Begins {
			s.frames[q.frame].first = sequence
		}
		s.packets = append(s.packets, q.frame)
		w.send(p, &s.state, packet{stream: s, ssrc: p.SSRC, number: p.Sequence, sequence: sequence, frame: q.frame})
	}
}

// send sends a packet on the primary path, and on the second one if it is selected.
func (w *world) send(p redundancy.Packet, state *redundancy.Stream, sent packet) {
	w.packets = append(w.packets, sent)
	w.sent += uint64(p.Size)
	if w.selector == nil {
		w.primary = 0
	}
	copied := w.selector != nil && !w.alone && w.selector.Select(&p, state, w.primary, w.now)
	for i, path := range w.paths {
		times := 0
		if copied || i == int(w.primary) {
			times++
		}
		if i == int(w.primary) && (p.Doubled || w.selector != nil && w.alone && p.Class == redundancy.Audio) {
			times++
			w.sent += uint64(p.Size)
		}
		for range times {
			w.total += uint64(p.Size)
			path.there.Send(&netem.Packet{Size: p.Size, Number: uint64(len(w.packets) - 1)}, w.now)
		}
	}
}

// repeat retransmits a packet of a stream.
func (w *world) repeat(s *stream, sequence int64) {
	p := redundancy.Packet{
		SSRC: s.ssrc + rtxSSRC, Sequence: s.repairNumber, Size: s.size, Class: redundancy.Repair,
	}
	s.repairNumber++
	w.send(p, &s.repairs, packet{
		stream: s, ssrc: p.SSRC, number: p.Sequence, sequence: sequence, frame: s.packets[sequence],
	})
}

// receive processes an arrival. The second arrival of the same packet only counts for its path.
func (w *world) receive(path uint8, p *packet, at time.Time) {
	if w.recorder == nil && path > 0 {
		w.recorder = redundancy.NewRecorder(7, start)
	}
	if w.recorder != nil {
		w.recorder.Arrived(path, p.ssrc, p.number, at)
	}
	s := p.stream
	if p.received || s.arrived[p.sequence] {
		return
	}
	p.received, s.arrived[p.sequence] = true, true
	s.nacks.Received(p.sequence, at)
	f := &s.frames[p.frame]
	s.nacks.Expect(f.first+int64(f.count)-1, at)
	if f.missing--; f.missing == 0 {
		f.done = at
	}
}

// tell sends a message back, on both paths once the receiver knows both.
func (w *world) tell(m message) {
	w.messages = append(w.messages, m)
	for i, path := range w.paths {
		if i == 0 || w.recorder != nil {
			path.back.Send(&netem.Packet{Size: 100, Number: uint64(len(w.messages) - 1)}, w.now)
		}
	}
}

// hear processes a message at the sender.
func (w *world) hear(m *message) {
	if m.received {
		return
	}
	m.received = true
	for _, sequence := range m.asked {
		w.hold(m.stream, sequence)
	}
	if m.report == nil || w.selector == nil || w.alone {
		return
	}
	began, err := w.selector.Report(m.report, w.now)
	if err != nil {
		w.t.Fatal(err)
	}
	if !began {
		return
	}
	stranded := 0
	w.selector.Stranded(w.now, func(ssrc uint32, sequence uint16) {
		stranded++
		for _, s := range w.streams {
			if s.ssrc == ssrc && s.class != redundancy.Audio {
				newest := int64(len(s.packets))
				w.hold(s, newest-int64(uint16(newest)-sequence))
			}
		}
	})
	w.began(stranded)
}

// hold queues a retransmission, unless the packet was retransmitted within the last round-trip time or its frame has
// expired.
func (w *world) hold(s *stream, sequence int64) {
	last, repeated := s.repeated[sequence]
	if repeated && w.now.Sub(last) < w.rtt || w.now.Sub(s.frames[s.packets[sequence]].begun) > deadline {
		return
	}
	s.repeated[sequence] = w.now
	w.pending = append(w.pending, repair{s, sequence})
}

// outcome are the frames of a stream that were not complete in time, and the longest time between two frames that were.
type outcome struct {
	frames, lost int
	gap          time.Duration
}

// outcome returns the outcome of the frames whose deadline has passed, except those that are left out.
func (s *stream) outcome(now time.Time, leftOut func(begun time.Time) bool) (o outcome) {
	var last time.Time
	for _, f := range s.frames {
		if now.Sub(f.begun) < deadline {
			break
		}
		if leftOut(f.begun) {
			last = time.Time{}
			continue
		}
		o.frames++
		if f.missing > 0 || f.done.Sub(f.begun) > deadline {
			o.lost++
			continue
		}
		if f.done.Before(last) {
			continue
		}
		if !last.IsZero() {
			o.gap = max(o.gap, f.done.Sub(last))
		}
		last = f.done
	}
	return o
}
