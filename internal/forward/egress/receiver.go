package egress

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/sender"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/trace"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Receiver is one receiving peer connection with its slots. It belongs to one writer.
type Receiver struct {
	writer *writer
	// serial is the order in which receivers came, and in which a burst goes to them.
	serial uint64
	events eventList
	closed atomic.Bool
	// bare receivers are sent no parity, whatever is lost.
	bare atomic.Bool

	slots slotTable

	mu sync.Mutex
	// keyFrames is what it may ask for.
	keyFrames keyFrameBudget

	// path is what is known of the way to the receiver.
	path   path
	frames trace.Recorder[*Slot, *track.Track]
	// protection is the share of parity that its path calls for.
	protection track.Protection

	// What follows is the writer's.

	// tick is the pacer's next one, while the receiver stands among those that have one, at pacedIndex, else -1.
	tick       time.Duration
	pacedIndex int
	// padding is where the packets of the newest probe come from that the media does not provide.
	padding padding
	// protectDue is when the share of parity is looked at next.
	protectDue time.Duration
	run        run
	// adopted is set while the receiver is on the writer's list, reporting while it is on the list of those that get
	// reports at once.
	adopted, reporting bool
	reportDue          time.Time
	// repairs is what the receiver may ask for.
	repairs repairCredit
	// asked counts the pairs of numbers that wait in the mail of all slots; the writer's inbox guards it.
	asked int
	// chunks is what is held of frames that the receiver takes in chunks.
	chunks *packetlog.Allotment
	// reports are those of their arrival; the writer's inbox guards them.
	reports reportBox
}

func newReceiver(w *writer, p Peer, deadline time.Duration) *Receiver {
	burst := w.set.cfg.RetransmissionBurst
	stamper, _ := p.(trace.Stamper)
	return &Receiver{
		writer: w, serial: w.set.lastReceiver.Add(1), repairs: newRepairCredit(burst),
		run: run{peer: p},
		path: path{
			peer: p, cfg: &w.set.cfg, deadline: deadline,
			sender: sender.New[heldPacket, repair](sender.Options{Plan: w.set.cfg.Plan}, w.set.clock.Started()),
		},
		events: eventList{notify: make(chan struct{}, 1)}, frames: trace.MakeRecorder[*Slot, *track.Track](stamper),
		pacedIndex: -1, chunks: w.set.pieces.NewAllotment(),
	}
}

// SendBare makes the receiver one that is never sent parity. It must be called before AddSlot.
func (r *Receiver) SendBare() { r.bare.Store(true) }

// SendReliably makes the receiver one that is sent whole frames over a transport that repeats what is lost, and reports
// what that transport acknowledges. It is never sent parity. SendReliably must be called before AddSlot.
func (r *Receiver) SendReliably() {
	r.SendBare()
	r.path.reliable = true
}

// Memory is what the receiver may hold of frames that it takes in chunks.
func (r *Receiver) Memory() *packetlog.Allotment { return r.chunks }

// EngineTime is the time by the clock of the receiver's engine.
func (r *Receiver) EngineTime() time.Time { return r.writer.set.clock.Now() }

// AddSlot adds an outgoing stream. It carries nothing until Select.
func (r *Receiver) AddSlot(o Outlet, kind volumetric.Kind) *Slot {
	s := newSlot(r, o, kind)
	if s.frameOutlet != nil {
		s.frameOutlet.Attach(s)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slots.add(s)
	if !r.closed.Load() {
		r.writer.load.Add(1)
		r.writer.set.slots.Add(1)
	}
	return s
}

// Notify is signalled when events wait to be taken.
func (r *Receiver) Notify() <-chan struct{} { return r.events.notify }

// TakeEvents appends the events since the last call to buf, in order.
func (r *Receiver) TakeEvents(buf []Event) []Event { return r.events.take(buf) }

// Close ends the receiver and its slots. It does not wait for the writer: what is being queued may still be, and what
// is queued may still be flushed.
func (r *Receiver) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed.Swap(true) {
		return
	}
	r.writer.load.Add(-int64(r.slots.count()) - receiverLoad)
	r.writer.set.slots.Add(-int64(r.slots.count()))
	r.writer.set.dismissed(r)
	r.writer.inbox.close(r)
	for _, s := range r.slots.all() {
		if s.frameOutlet != nil {
			s.frameOutlet.End()
		}
	}
}

// RTCP takes one decrypted RTCP packet, and from it what concerns slots of the receiver: NACK, PLI, FIR, report blocks,
// and reports of arrivals.
func (r *Receiver) RTCP(packet []byte, now time.Time) {
	if feedback.IsTransportFeedback(packet) || feedback.IsCongestionReport(packet) {
		r.arrivals(packet, now)
		return
	}
	packets, err := rtcp.Unmarshal(packet)
	if err != nil {
		r.writer.set.control.Add(counters.MalformedRTCP, 1)
		return
	}
	r.slots.name()
	for _, p := range packets {
		switch p := p.(type) {
		case *rtcp.TransportLayerNack:
			r.nacked(p)
		case *rtcp.PictureLossIndication:
			if r.keyFramesGranted(1, now) > 0 {
				r.keyFrameWanted(p.MediaSSRC)
			}
		case *rtcp.FullIntraRequest:
			for _, entry := range p.FIR[:r.keyFramesGranted(len(p.FIR), now)] {
				r.keyFrameWanted(entry.SSRC)
			}
		case *rtcp.ReceiverReport:
			r.reported(p.Reports, now)
		case *rtcp.SenderReport:
			r.reported(p.Reports, now)
		}
	}
}

// nacked leaves to the writer what a slot's receiver asks for.
func (r *Receiver) nacked(p *rtcp.TransportLayerNack) {
	if s := r.slots.find(p.MediaSSRC); s != nil {
		control := &r.writer.set.control
		control.Add(counters.NacksReceived, 1)
		ignored := r.writer.inbox.nacked(s, p.Nacks, r.writer.set.cfg.MaxNACKed)
		control.Add(counters.NackedLimited, uint64(ignored))
	}
}

// keyFramesGranted gives how many of so many requests for key frames are looked at.
func (r *Receiver) keyFramesGranted(requests int, now time.Time) int {
	set := r.writer.set
	r.mu.Lock()
	defer r.mu.Unlock()
	granted := r.keyFrames.take(requests, r.slots.count(), set.cfg.KeyFrameInterval, now)
	set.control.Add(counters.KeyFramesLimited, uint64(requests-granted))
	return granted
}

func (r *Receiver) keyFrameWanted(ssrc uint32) {
	if s := r.slots.find(ssrc); s != nil {
		r.writer.inbox.keyFrameWanted(s)
	}
}

// reported leaves the blocks about slots to the writer.
func (r *Receiver) reported(blocks []rtcp.ReceptionReport, now time.Time) {
	for _, block := range blocks {
		if s := r.slots.find(block.SSRC); s != nil {
			r.writer.inbox.reported(s, block, now)
		}
	}
}

// arrivals takes a report, as it is, for the writer to read.
func (r *Receiver) arrivals(report []byte, now time.Time) {
	set := r.writer.set
	byStream := r.path.peer.ReportsByStream()
	switch {
	case feedback.IsCongestionReport(report) != byStream, !byStream && r.path.peer.TransportSequenceID() == 0:
		// Nothing is known by what it could speak of.
	case rtcpSize(report) != len(report):
		set.control.Add(counters.MalformedRTCP, 1)
	case len(report) > maxReportBytes/4:
		set.control.Add(counters.TransportDropped, 1)
	default:
		set.control.Add(counters.TransportDropped, uint64(r.writer.inbox.heard(r, report, set.clock.Since(now))))
	}
}

// queued notes that the receiver's peer has been given a packet with so many bytes of payload.
func (r *Receiver) queued(bytes int) {
	w := r.writer
	bytes += congestion.PacketOverhead
	r.path.departed.bytes += uint64(bytes)
	if r.path.sender.Spend(bytes) {
		w.stepDue = min(w.stepDue, r.path.sender.StepDue())
	}
	w.outbox.queued(&r.run)
}

// slotTable is the slots of a receiver. It is safe for any goroutine.
type slotTable struct {
	mu   sync.Mutex
	list []*Slot
	// named are the slots by SSRC, unnamed those that have not had one yet.
	named   map[uint32]*Slot
	unnamed []*Slot
}

func (t *slotTable) add(s *Slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list, t.unnamed = append(t.list, s), append(t.unnamed, s)
}

// all returns the slots. The list is only ever appended to, so that what is returned does not change.
func (t *slotTable) all() []*Slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clip(t.list)
}

func (t *slotTable) count() int { return len(t.all()) }

// name finds out the SSRCs of slots that have been negotiated since the last call. A packet of RTCP names slots by
// hundreds, so this is done once for each packet.
func (t *slotTable) name() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.named == nil {
		t.named = make(map[uint32]*Slot)
	}
	t.unnamed = slices.DeleteFunc(t.unnamed, func(s *Slot) bool {
		ssrc := s.outlet.SSRC()
		if ssrc != 0 {
			t.named[ssrc] = s
		}
		return ssrc != 0
	})
}

// find returns a slot by its SSRC, nil if there is none.
func (t *slotTable) find(ssrc uint32) *Slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.named[ssrc]
}

// parityInterval is the shortest time between two changes of a receiver's share of parity. Losses are counted over
// seconds.
const parityInterval = 500 * time.Millisecond

// ParityShare is how many parity packets per source packet the receiver is sent for the sake of its own path, 0 to
// 0.25. It follows from what the way to the receiver loses and from its round trip: none where requests repair what is
// lost in time, nor where losses are not known. It is safe for any goroutine.
func (r *Receiver) ParityShare() float64 {
	if r.bare.Load() {
		return 0
	}
	return r.protection.Share()
}

// ParityOf is how many parity packets per source packet the receiver is sent of a track, as far as its publisher makes
// them: for the sake of its own path and of that of the publisher, 0.25 at most. It is safe for any goroutine.
func (r *Receiver) ParityOf(t *track.Track) float64 {
	if r.bare.Load() {
		return 0
	}
	return feedback.JoinParity(r.protection.Share(), t.UplinkParity())
}

// protect makes the share of parity of a receiver's slots follow its path and those of the publishers.
func (r *Receiver) protect() {
	w := r.writer
	if r.bare.Load() || w.at < r.protectDue {
		return
	}
	r.protectDue = w.at + parityInterval
	loss, rtt := 0.0, time.Duration(0)
	if r.path.sender.Reported() {
		stats := r.path.sender.Stats()
		loss, rtt = stats.Loss, stats.RTT
	}
	r.protection.Follow(loss, rtt, func(rtt time.Duration) time.Duration { return r.path.repairTime(rtt, 0) })
	for _, s := range r.slots.all() {
		s.protect()
	}
}

// protect makes the slot's share of parity follow the paths to it.
func (s *Slot) protect() { s.switcher.SetParity(s.receiver.ParityOf(s.selection.track)) }

// endParity says that the receiver's peer can do nothing with parity.
func (r *Receiver) endParity() {
	if r.bare.Swap(true) {
		return
	}
	for _, s := range r.slots.all() {
		s.switcher.SetParity(0)
	}
}
