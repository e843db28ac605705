package uplink

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/congestion/sender"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/redundancy"
	"github.com/volsfu/volsfu/pkg/client/internal/frametrace"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// wireOverhead is the size of a packet on the wire beside its RTP header of 12 bytes and its payload, in bytes.
const wireOverhead = congestion.PacketOverhead - 12

// queue holds the frames and retransmissions of one peer connection until their packets leave, at the rate of the
// Sender.
//
// Packets receive their sequence numbers when they leave, so a dropped frame leaves no gap.
type queue struct {
	sender  *sender.Sender[heldPacket, repair]
	started time.Time
	// byStream is set if the server reports arrivals by SSRC and sequence number. extension identifies the header
	// extension with the transport-wide number, 0 if packets are not numbered. If the server reports in neither form,
	// the Sender has no estimator.
	byStream  bool
	extension uint8
	// reportLimit limits the reports that are read.
	reportLimit feedback.ReportLimit
	// audio holds audio frames, which are never delayed. delayed holds frames that wait for another quality of their
	// tile.
	audio, delayed []*heldFrame
	// leaving are the packets that leave in this call of depart. stepped is the time of the last call.
	leaving []Outgoing
	stepped time.Time
	// dropped are the tracks of the frames that were dropped and not counted yet.
	dropped []ownTrack
	padding padding
	// probeBytes is the number of bytes of padding sent so far, reportsDropped the number of reports that were not
	// read.
	probeBytes, reportsDropped int64
	results                    []feedback.PacketResult
	copies                     copies
}

// ownTrack is one track of a publication.
type ownTrack struct {
	publication *Publication
	track       int
}

// heldFrame is a frame whose packets leave evenly from begin on, the last one at begin + spread.
type heldFrame struct {
	line        *line
	publication *Publication
	track       int
	timestamp   uint32
	// capture is by this host's clock, serverCapture the same instant by the server's.
	capture, serverCapture time.Time
	payloads               [][]byte
	// times is nil if the frame is not traced.
	times  *frametrace.Sent
	begin  time.Time
	spread time.Duration
	// budget is the time after begin within which the first packet has to leave, 0 for no limit.
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

// repair is a packet that the server has requested again.
type repair struct {
	line     *line
	sequence uint16
}

// padding selects the packet that a probe repeats next: number newest - repeated of the line. Probes repeat the packets
// of the line backwards from newest on.
type padding struct {
	line     *line
	newest   uint16
	repeated uint16
}

func newQueue(plan pacing.Plan, now time.Time) queue {
	options := sender.Options{Plan: plan, Grace: sender.UsualGrace, Idle: sender.UsualIdle}
	return queue{sender: sender.New[heldPacket, repair](options, now), started: now}
}

// number sets the form of the server's reports. extension is 0 if reports are by stream. The estimate starts with the
// first form, and starts again with another one.
func (q *queue) number(extension uint8, byStream bool, config congestion.Config, now time.Time) {
	if extension == q.extension && byStream == q.byStream {
		return
	}
	q.extension, q.byStream = extension, byStream
	q.sender.Stop(now)
	if !q.estimates() {
		return
	}
	history := sender.NewByStream()
	if !byStream {
		history = sender.NewNumbered(uint16(rand.Uint32()))
	}
	q.sender.Start(history, congestion.New(config.Algorithm(byStream), config, now), now)
}

// at converts a time to that of the Sender's pacer.
func (q *queue) at(t time.Time) time.Duration { return t.Sub(q.started) }

// estimate returns the estimated rate of the uplink, 0 until the server has reported.
func (q *queue) estimate() volumetric.Bitrate {
	if !q.sender.Reported() {
		return 0
	}
	return q.sender.Stats().Estimate
}

// reported processes a report of the server, and reports whether the report had results.
func (q *queue) reported(packet []byte, now time.Time) bool {
	if !q.reportLimit.Take(now) {
		q.reportsDropped++
		return false
	}
	if feedback.IsCongestionReport(packet) != q.byStream || q.copies.suspended(now) {
		return false
	}
	q.results = q.sender.Report(packet, now, now, q.results[:0])
	if len(q.results) == 0 {
		return false
	}
	q.consult(now)
	return true
}

// consult consults the Sender.
func (q *queue) consult(now time.Time) {
	q.sender.Suspend(q.copies.suspended(now), now)
	q.sender.Consult(now)
}

// estimates reports whether the server reports arrivals and the uplink is estimated.
func (q *queue) estimates() bool { return q.byStream || q.extension != 0 }

// stepDue returns the time until the estimate's next step, 0 or less if the step is due.
func (q *queue) stepDue(now time.Time) time.Duration { return q.sender.StepDue() - q.at(now) }

// asked queues the packets that a NACK names, if they are in the history and can have been lost. Packets for which the
// pacer has no room are dropped, and the server requests them again.
func (q *queue) asked(l *line, nack *rtcp.TransportLayerNack, now time.Time, rtt time.Duration) {
	if !l.repeats() {
		return
	}
	for _, pair := range nack.Nacks {
		pair.Range(func(sequence uint16) bool {
			sent, known := l.history.Get(sequence)
			return !known || !feedback.Answerable(sent.At, now, rtt) || q.sender.HoldRepair(repair{l, sequence})
		})
	}
}

// isAudio reports whether the frame leaves at once, at any rate.
func (f *heldFrame) isAudio() bool { return f.publication.description.Kind == volumetric.KindAudio }

// abandoned reports whether the line now carries another track.
func (f *heldFrame) abandoned() bool {
	return f.line.publication != f.publication || f.line.track != f.track
}

// add queues a frame. Delayed frames of the line begin before the frame.
func (q *queue) add(f *heldFrame) {
	q.delayed = slices.DeleteFunc(q.delayed, func(d *heldFrame) bool {
		if d.line != f.line {
			return false
		}
		d.begin = f.begin
		q.hold(d)
		return true
	})
	q.hold(f)
}

// hold queues the packets of a frame: packet i of n is due at begin + spread * i / (n - 1).
func (q *queue) hold(f *heldFrame) {
	if f.isAudio() {
		q.audio = append(q.audio, f)
		return
	}
	begin, gap := q.at(f.begin), time.Duration(0)
	if gaps := len(f.payloads) - 1; gaps > 0 {
		gap = f.spread / time.Duration(gaps)
	}
	for i := range f.payloads {
		offer := pacing.Offer{Arrived: begin, Due: begin + time.Duration(i)*gap, Begins: i == 0}
		if offer.Begins {
			offer.Frame = PacketsSize(f.payloads)
			if f.budget > 0 {
				offer.Expires = begin + f.budget + 1
			}
		}
		q.sender.Hold(&f.line.held, heldPacket{f, i}, offer)
	}
}

// delay queues a frame that waits for another quality of its tile until its begin, or until resume. Delayed frames of
// the line begin no later than the frame.
func (q *queue) delay(f *heldFrame) {
	for _, d := range q.delayed {
		if d.line == f.line && f.begin.Before(d.begin) {
			d.begin = f.begin
		}
	}
	q.delayed = append(q.delayed, f)
}

// resume makes the delayed frames of the tracks from first to before last of a publication begin right after the given
// time.
func (q *queue) resume(p *Publication, first, last int, begin time.Time) {
	for _, f := range q.delayed {
		if f.publication == p && f.track >= first && f.track < last {
			// The frame that was waited for begins at that time.
			f.begin = begin.Add(time.Nanosecond)
		}
	}
}

// depart appends the packets that leave now: audio, then retransmissions, then frames, then the padding of a probe.
func (q *queue) depart(now time.Time, packets []Outgoing) []Outgoing {
	q.leaving = packets
	q.delayed = slices.DeleteFunc(q.delayed, func(f *heldFrame) bool {
		begins := !f.begin.After(now)
		if begins {
			q.hold(f)
		}
		return begins
	})
	for _, f := range q.audio {
		for i := range f.payloads {
			q.leave(heldPacket{f, i}, now)
		}
	}
	clear(q.audio)
	q.audio = q.audio[:0]
	if next, ok := q.sender.Next(); ok && next <= q.at(now) {
		q.tick(now)
	}
	q.stepped = now
	packets, q.leaving = q.leaving, nil
	return packets
}

// tick sends the packets of one tick of the pacer.
func (q *queue) tick(now time.Time) {
	at := q.at(now)
	q.sender.Tick(at)
	for r, ok := q.sender.PopRepair(); ok; r, ok = q.sender.PopRepair() {
		q.repeat(r, feedback.Retransmission, now)
	}
	for p, ok := q.sender.Pop(at); ok; p, ok = q.sender.Pop(at) {
		q.leave(p, now)
	}
	q.sender.Pad(func() bool { return q.pad(now) })
}

// leave sends a packet of a frame, unless the frame is dropped.
func (q *queue) leave(p heldPacket, now time.Time) {
	f := p.frame
	if p.index == 0 {
		f.dropped = !q.begin(f, now)
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
	if q.copies.active {
		q.copyMedia(p, &o, now)
	} else {
		o.Doubled = q.copies.failed && f.isAudio()
	}
	q.send(o, kind, now)
	if f.line.repeats() {
		q.padding = padding{line: f.line, newest: o.Header.SequenceNumber}
	}
}

// begin starts sending a frame, and reports whether the frame may leave.
func (q *queue) begin(f *heldFrame, now time.Time) bool {
	if f.abandoned() {
		return false
	}
	if q.expired(f, now) {
		q.dropped = append(q.dropped, ownTrack{f.publication, f.track})
		return false
	}
	if !f.line.begin(f) {
		return false
	}
	q.sender.Begin(&f.line.held)
	return true
}

// expired reports whether a frame has waited for the path for longer than its budget. A frame that began after the last
// step has not waited for the path, however late this step is.
func (q *queue) expired(f *heldFrame, now time.Time) bool {
	waited := q.sender.Limit() > 0 && f.begin.Before(q.stepped)
	return waited && f.budget > 0 && now.Sub(f.begin) > f.budget
}

// send numbers a packet, accounts for its size on the wire in bytes, and returns the size.
func (q *queue) send(o Outgoing, kind feedback.PacketKind, now time.Time) (size int) {
	size = o.size()
	if q.estimates() {
		number := q.sender.Sent(o.Header.SSRC, o.Header.SequenceNumber, size, kind, now)
		if q.extension != 0 {
			// The identifier was negotiated. A packet that cannot be numbered leaves without a number.
			_ = feedback.SetTransportSequence(&o.Header, q.extension, uint16(number))
		}
	}
	q.sender.Spend(size)
	q.leaving = append(q.leaving, o)
	return size
}

// repeat sends the retransmission of a packet, and reports whether the packet is still in the history. A retransmission
// that would be lost is not sent.
func (q *queue) repeat(r repair, kind feedback.PacketKind, now time.Time) bool {
	sent, known := r.line.history.Get(r.sequence)
	if !known {
		return false
	}
	o, ok := r.line.again(sent)
	if !ok {
		return false
	}
	class := redundancy.Repair
	if kind == feedback.Probe {
		class = redundancy.Padding
	} else if q.copies.active && q.copies.selector.RepairsLost(now) {
		return true
	}
	if q.copies.active {
		q.copyRepair(&o, class, now)
	}
	size := q.send(o, kind, now)
	if kind == feedback.Probe {
		q.probeBytes += int64(size)
	} else {
		q.sender.SpendRepair(size)
	}
	return true
}

// pad sends a recent packet again, and reports whether there is one. The repetition is a retransmission that the server
// has not asked for, and repairs a loss that the server has not noticed yet.
func (q *queue) pad(now time.Time) bool {
	p := &q.padding
	if p.line == nil {
		return false
	}
	if p.repeated < sender.MaxPadding && q.repeat(repair{p.line, p.newest - p.repeated}, feedback.Probe, now) {
		p.repeated++
		return true
	}
	p.repeated = 1
	return q.repeat(repair{p.line, p.newest}, feedback.Probe, now)
}

// due returns the time at which the next packet leaves. ok is false if no packet is queued and no probe is active.
func (q *queue) due() (at time.Time, ok bool) {
	if len(q.audio) > 0 {
		return q.started, true
	}
	next, ok := q.sender.Next()
	if ok {
		at = q.started.Add(next)
	}
	for _, f := range q.delayed {
		if !ok || f.begin.Before(at) {
			at, ok = f.begin, true
		}
	}
	return at, ok
}
