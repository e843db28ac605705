package client

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/congestion/sender"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/pkg/client/internal/frametrace"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// wireOverhead is the size of a packet on the wire beside its RTP header of 12 bytes and its payload, in bytes.
	wireOverhead = congestion.PacketOverhead - 12
	// foreignBudget is how long frames of real video wait for the uplink. Each frame that is dropped costs all frames up
	// to the next key frame.
	foreignBudget = 500 * time.Millisecond
)

// uplink sends frames and retransmissions to the server. It is pure, stepped with now, and belongs to media's lock.
//
// The packets of a frame get their sequence numbers when they leave, so that a frame that is dropped leaves no gap.
type uplink struct {
	sender  *sender.Sender[heldPacket, repair]
	started time.Time
	// extension identifies the header extension with the transport-wide number, 0 if packets are not numbered: then the
	// Sender has no estimator, and arriving packets have no numbers either.
	extension uint8
	// audio holds frames of audio, which are never held back. delayed holds frames that wait for another quality of their
	// tile.
	audio, delayed []*heldFrame
	// leaving are the packets that leave in this call of depart, stepped is the time of the last one.
	leaving []outgoing
	stepped time.Time
	// dropped are the tracks of the frames that were dropped and not counted yet.
	dropped []ownTrack
	padding padding
	// probeBytes is the number of bytes of padding sent so far.
	probeBytes int64
	results    []feedback.PacketResult
}

// ownTrack is one track of a publisher.
type ownTrack struct {
	publisher *Publisher
	track     int
}

// heldFrame is a frame whose packets leave evenly from begin on, the last one at begin + spread.
type heldFrame struct {
	line      *line
	publisher *Publisher
	track     int
	timestamp uint32
	// capture is by this host's clock, serverCapture the same instant by the server's.
	capture, serverCapture time.Time
	payloads               [][]byte
	// times is nil if the frame is not traced.
	times  *frametrace.Sent
	begin  time.Time
	spread time.Duration
	// budget is how long after begin the first packet may still leave, 0 for no limit.
	budget time.Duration
	// payloadType is set when the first packet leaves.
	payloadType uint8
	dropped     bool
}

// heldPacket is one packet of a frame that waits for its time.
type heldPacket struct {
	frame *heldFrame
	index int
}

// repair is a packet that the server has asked for again.
type repair struct {
	line     *line
	sequence uint16
}

// padding says which packet a probe repeats next: of the packets of a line up to newest, the one before the last.
type padding struct {
	line     *line
	newest   uint16
	repeated uint16
}

func newUplink(plan pacing.Plan, now time.Time) uplink {
	options := sender.Options{Plan: plan, Grace: sender.UsualGrace, Idle: sender.UsualIdle}
	return uplink{sender: sender.New[heldPacket, repair](options, now), started: now}
}

// number sets the identifier of the header extension that numbers packets, and starts the estimate with the first one.
func (u *uplink) number(extension uint8, config congestion.Config, now time.Time) {
	if extension == u.extension {
		return
	}
	u.extension = extension
	u.sender.Stop(now)
	if extension != 0 {
		u.sender.Start(sender.NewNumbered(uint16(rand.Uint32())), congestion.New(congestion.GCC, config, now), now)
	}
}

// at converts a time to that of the Sender's pacer.
func (u *uplink) at(t time.Time) time.Duration { return t.Sub(u.started) }

// estimate is the estimated rate of the uplink, 0 until the server has reported.
func (u *uplink) estimate() volumetric.Bitrate {
	if !u.sender.Reported() {
		return 0
	}
	return u.sender.Stats().Estimate
}

// reported processes transport-wide feedback of the server, and reports whether the feedback had results.
func (u *uplink) reported(packet []byte, now time.Time) bool {
	u.results = u.sender.Report(packet, now, now, u.results[:0])
	if len(u.results) == 0 {
		return false
	}
	u.sender.Consult(now)
	return true
}

// numbers reports whether packets are numbered, and the uplink estimated.
func (u *uplink) numbers() bool { return u.extension != 0 }

// stepDue is the time until the estimate's next step, 0 or less if the step is due.
func (u *uplink) stepDue(now time.Time) time.Duration { return u.sender.StepDue() - u.at(now) }

// asked queues the packets that a NACK names, if they are still known and can have been lost. The server asks again for
// packets beyond those that the pacer has room for.
func (u *uplink) asked(l *line, nack *rtcp.TransportLayerNack, now time.Time, rtt time.Duration) {
	if !l.repeats() {
		return
	}
	for _, pair := range nack.Nacks {
		pair.Range(func(sequence uint16) bool {
			sent, known := l.history.Get(sequence)
			return !known || !feedback.Answerable(sent.At, now, rtt) || u.sender.HoldRepair(repair{l, sequence})
		})
	}
}

// isAudio reports whether the frame leaves at once, whatever the rate.
func (f *heldFrame) isAudio() bool { return f.publisher.publication.Kind == volumetric.KindAudio }

// abandoned reports whether the line now carries another track.
func (f *heldFrame) abandoned() bool {
	return f.line.publisher != f.publisher || f.line.track != f.track
}

// add queues a frame. Delayed frames of the line begin before the frame.
func (u *uplink) add(f *heldFrame) {
	u.delayed = slices.DeleteFunc(u.delayed, func(d *heldFrame) bool {
		if d.line != f.line {
			return false
		}
		d.begin = f.begin
		u.hold(d)
		return true
	})
	u.hold(f)
}

// hold queues the packets of a frame: packet i of n is due at begin + spread * i / (n - 1).
func (u *uplink) hold(f *heldFrame) {
	if f.isAudio() {
		u.audio = append(u.audio, f)
		return
	}
	begin, gap := u.at(f.begin), time.Duration(0)
	if gaps := len(f.payloads) - 1; gaps > 0 {
		gap = f.spread / time.Duration(gaps)
	}
	for i := range f.payloads {
		offer := pacing.Offer{Arrived: begin, Due: begin + time.Duration(i)*gap, Begins: i == 0}
		u.sender.Hold(&f.line.held, heldPacket{f, i}, offer)
	}
}

// delay queues a frame that waits for another quality of its tile until its begin, or until resume. Delayed frames of
// the line begin no later than the frame.
func (u *uplink) delay(f *heldFrame) {
	for _, d := range u.delayed {
		if d.line == f.line && f.begin.Before(d.begin) {
			d.begin = f.begin
		}
	}
	u.delayed = append(u.delayed, f)
}

// resume makes the delayed frames of a publisher's tracks from first to before last begin right after the given time.
func (u *uplink) resume(p *Publisher, first, last int, begin time.Time) {
	for _, f := range u.delayed {
		if f.publisher == p && f.track >= first && f.track < last {
			// The frame that they waited for begins at that time.
			f.begin = begin.Add(time.Nanosecond)
		}
	}
}

// depart appends the packets that leave now: audio, then retransmissions, then frames, then the padding of a probe.
func (u *uplink) depart(now time.Time, packets []outgoing) []outgoing {
	u.leaving = packets
	u.delayed = slices.DeleteFunc(u.delayed, func(f *heldFrame) bool {
		begins := !f.begin.After(now)
		if begins {
			u.hold(f)
		}
		return begins
	})
	for _, f := range u.audio {
		for i := range f.payloads {
			u.leave(heldPacket{f, i}, now)
		}
	}
	clear(u.audio)
	u.audio = u.audio[:0]
	if next, ok := u.sender.Next(); ok && next <= u.at(now) {
		u.tick(now)
	}
	u.stepped = now
	packets, u.leaving = u.leaving, nil
	return packets
}

// tick lets the packets of one tick of the pacer leave.
func (u *uplink) tick(now time.Time) {
	at := u.at(now)
	u.sender.Tick(at)
	for r, ok := u.sender.PopRepair(); ok; r, ok = u.sender.PopRepair() {
		u.repeat(r, feedback.Retransmission, now)
	}
	for p, ok := u.sender.Pop(at); ok; p, ok = u.sender.Pop(at) {
		u.leave(p, now)
	}
	u.sender.Pad(func() bool { return u.pad(now) })
}

// leave lets a packet of a frame leave, unless the frame is dropped.
func (u *uplink) leave(p heldPacket, now time.Time) {
	f := p.frame
	if p.index == 0 {
		f.dropped = !u.begin(f, now)
	}
	if f.dropped {
		return
	}
	o := f.line.packet(f, p.index)
	kind := feedback.Media
	if f.isAudio() {
		kind = feedback.Audio
	}
	o.keep(now)
	u.send(o, kind, now)
	if f.line.repeats() {
		u.padding = padding{line: f.line, newest: o.header.SequenceNumber}
	}
}

// begin begins to send a frame, and reports whether the frame may leave.
func (u *uplink) begin(f *heldFrame, now time.Time) bool {
	if f.abandoned() {
		return false
	}
	if u.expired(f, now) {
		u.dropped = append(u.dropped, ownTrack{f.publisher, f.track})
		return false
	}
	if !f.line.begin(f) {
		return false
	}
	u.sender.Begin(&f.line.held)
	return true
}

// expired reports whether a frame has waited for the path for longer than its budget. A frame that began after the last
// step has not waited for the path, however late this step is.
func (u *uplink) expired(f *heldFrame, now time.Time) bool {
	waited := u.sender.Limit() > 0 && f.begin.Before(u.stepped)
	return waited && f.budget > 0 && now.Sub(f.begin) > f.budget
}

// send numbers a packet, accounts for its size on the wire in bytes, and returns the size.
func (u *uplink) send(o outgoing, kind feedback.PacketKind, now time.Time) (size int) {
	size = o.size()
	if u.numbers() {
		number := u.sender.Sent(o.header.SSRC, o.header.SequenceNumber, size, kind, now)
		// The identifier was negotiated. A packet that could not be numbered would leave all the same.
		_ = feedback.SetTransportSequence(&o.header, u.extension, uint16(number))
	}
	u.sender.Spend(size)
	u.leaving = append(u.leaving, o)
	return size
}

// repeat sends the retransmission of a packet, and reports whether the packet is still known.
func (u *uplink) repeat(r repair, kind feedback.PacketKind, now time.Time) bool {
	sent, known := r.line.history.Get(r.sequence)
	if !known {
		return false
	}
	o, ok := r.line.again(sent)
	if !ok {
		return false
	}
	size := u.send(o, kind, now)
	if kind == feedback.Probe {
		u.probeBytes += int64(size)
	} else {
		u.sender.SpendRepair(size)
	}
	return true
}

// pad sends a recent packet again, and reports whether there is one. The repetition is a retransmission that the server
// has not asked for, and repairs a loss that the server has not noticed yet.
func (u *uplink) pad(now time.Time) bool {
	p := &u.padding
	if p.line == nil {
		return false
	}
	if p.repeated < sender.MaxPadding && u.repeat(repair{p.line, p.newest - p.repeated}, feedback.Probe, now) {
		p.repeated++
		return true
	}
	p.repeated = 1
	return u.repeat(repair{p.line, p.newest}, feedback.Probe, now)
}

// due is when the next packet leaves, and is not ok if none waits and no probe is under way.
func (u *uplink) due() (at time.Time, ok bool) {
	if len(u.audio) > 0 {
		return u.started, true
	}
	next, ok := u.sender.Next()
	if ok {
		at = u.started.Add(next)
	}
	for _, f := range u.delayed {
		if !ok || f.begin.Before(at) {
			at, ok = f.begin, true
		}
	}
	return at, ok
}
