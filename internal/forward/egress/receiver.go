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
	peer   Peer
	events eventList
	closed atomic.Bool

	mu    sync.Mutex
	slots []*Slot
	// named are the slots by SSRC, unnamed those that have not had one yet.
	named   map[uint32]*Slot
	unnamed []*Slot
	// keyFrames is what it may ask for.
	keyFrames keyFrameBudget

	// want is one more than Want was told last, 0 before; limits is nil before SetLimits.
	want   atomic.Int64
	limits atomic.Pointer[congestion.Limits]
	// window is how many bytes may be under way to the receiver at once, where its estimator bounds that.
	window atomic.Int64
	path   pathBox
	frames *trace.Recorder[*Slot, *track.Track]
	// protection is the share of parity that its path calls for. bare receivers are sent none, whatever is lost.
	protection track.Protection
	bare       atomic.Bool

	// What follows is the writer's.

	// sender says what waits, and sends probes. tick is its pacer's next one, while the receiver stands among those that
	// have one, at pacedIndex, else -1.
	sender     *sender.Sender[heldPacket, repair]
	tick       time.Duration
	pacedIndex int
	// departed measures what is sent.
	departed sentRate
	// estimation is nil while packets are not numbered.
	estimation *estimation
	// protectDue is when the share of parity is looked at next.
	protectDue time.Duration
	// queued is how many packets the peer has been given since its last Post. place is where the receiver stands among the unsent while there are any.
	queued, place int
	// measured is the round-trip time by receiver reports.
	measured  feedback.RoundTrip
	adopted   bool
	reportDue time.Time
	// reporting is set while the receiver is on the list of those that get reports at once.
	reporting bool
	// credit is how many retransmissions the receiver may be sent, at most burst: each media packet earns one, so that requests never more than double
	// what is sent.
	credit, burst int
	// lookups is how many numbers may be looked up for the receiver, at most lookupsPerRepair times the burst; each media packet earns so many.
	lookups int
	// asked counts the pairs of numbers that wait in the mail of all slots; the writer's inbox guards it.
	asked int
	// chunks is what is held of frames that the receiver takes in chunks.
	chunks *packetlog.Allotment
	// deadline is how long after its arrival a packet is worth repairing.
	deadline time.Duration
	// reliable receivers are sent whole frames by a transport that repeats what is lost, and report what that acknowledges.
	reliable bool
	// departures number the packets to the receiver, nil before its peer has agreed on it.
	departures *departures
	// reports are those of their arrival; the writer's inbox guards them.
	reports reportBox
}

func newReceiver(w *writer, p Peer, deadline time.Duration) *Receiver {
	burst := w.set.cfg.RetransmissionBurst
	stamper, _ := p.(trace.Stamper)
	return &Receiver{
		writer: w, serial: w.set.lastReceiver.Add(1), peer: p, credit: burst, burst: burst, lookups: burst * lookupsPerRepair,
		deadline: deadline, events: eventList{notify: make(chan struct{}, 1)},
		frames:     trace.NewRecorder[*Slot, *track.Track](stamper),
		sender:     sender.New[heldPacket, repair](sender.Options{Plan: w.set.cfg.Plan}, w.set.clock.Started()),
		pacedIndex: -1, chunks: w.set.pieces.NewAllotment(),
	}
}

// SendBare makes the receiver one that is never sent parity. It must be called before AddSlot.
func (r *Receiver) SendBare() { r.bare.Store(true) }

// SendReliably makes the receiver one that is sent whole frames over a transport that repeats what is lost, and reports
// what that transport acknowledges. It is never sent parity. SendReliably must be called before AddSlot.
func (r *Receiver) SendReliably() {
	r.SendBare()
	r.reliable = true
}

// Window is how many bytes may be under way to the receiver at once, if its estimator bounds that. It is safe for any
// goroutine.
func (r *Receiver) Window() int64 { return r.window.Load() }

// Memory is what the receiver may hold of frames that it takes in chunks.
func (r *Receiver) Memory() *packetlog.Allotment { return r.chunks }

// Clock is the clock of the receiver's engine.
func (r *Receiver) Clock() *packetlog.Clock { return r.writer.set.clock }

// AddSlot adds an outgoing stream. It carries nothing until Select.
func (r *Receiver) AddSlot(o Outlet, kind volumetric.Kind) *Slot {
	s := newSlot(r, o, kind)
	if s.frameOutlet != nil {
		s.frameOutlet.Attach(s)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slots, r.unnamed = append(r.slots, s), append(r.unnamed, s)
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

// Close ends the receiver and its slots. It does not wait for the writer: what is being queued may still be, and what is queued may still be flushed.
func (r *Receiver) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed.Swap(true) {
		return
	}
	r.writer.load.Add(-int64(len(r.slots)) - receiverLoad)
	r.writer.set.slots.Add(-int64(len(r.slots)))
	r.writer.set.dismissed(r)
	r.writer.inbox.close(r)
	for _, s := range r.slots {
		if s.frameOutlet != nil {
			s.frameOutlet.End()
		}
	}
}

// RTCP takes one decrypted RTCP packet, and from it what concerns slots of the receiver: NACK, PLI, FIR, report blocks, and reports of arrivals.
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
	r.nameSlots()
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
	if s := r.slot(p.MediaSSRC); s != nil {
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
	granted := r.keyFrames.take(requests, len(r.slots), set.cfg.KeyFrameInterval, now)
	set.control.Add(counters.KeyFramesLimited, uint64(requests-granted))
	return granted
}

func (r *Receiver) keyFrameWanted(ssrc uint32) {
	if s := r.slot(ssrc); s != nil {
		r.writer.inbox.keyFrameWanted(s)
	}
}

// reported leaves the blocks about slots to the writer.
func (r *Receiver) reported(blocks []rtcp.ReceptionReport, now time.Time) {
	for _, block := range blocks {
		if s := r.slot(block.SSRC); s != nil {
			r.writer.inbox.reported(s, block, now)
		}
	}
}

// all gives the receiver's slots. The list is only ever appended to, so that what is given does not change.
func (r *Receiver) all() []*Slot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clip(r.slots)
}

// nameSlots finds out the SSRCs of slots that have been negotiated since the last call. A packet of RTCP names slots by hundreds, so this is done once for each packet.
func (r *Receiver) nameSlots() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.named == nil {
		r.named = make(map[uint32]*Slot)
	}
	r.unnamed = slices.DeleteFunc(r.unnamed, func(s *Slot) bool {
		ssrc := s.outlet.SSRC()
		if ssrc != 0 {
			r.named[ssrc] = s
		}
		return ssrc != 0
	})
}

// slot finds a slot by its SSRC.
func (r *Receiver) slot(ssrc uint32) *Slot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.named[ssrc]
}

// rtt is the round-trip time to the receiver as well as it is known, queues included, else 0. What reports say of the packets themselves comes first: connectivity
// checks are seconds apart, and do not notice that a queue has built up.
func (r *Receiver) rtt() time.Duration {
	if rtt := r.sender.Stats().RTT; r.sender.Reported() && rtt > 0 {
		return rtt
	}
	return r.checkedRTT()
}

// checkedRTT is the round-trip time as the peer's connection, or else receiver reports, measure it.
func (r *Receiver) checkedRTT() time.Duration {
	if rtt := r.peer.RTT(); rtt > 0 {
		return rtt
	}
	return r.measured.Value()
}

// earn allows the receiver one more retransmission, and what it may have looked up for it.
func (r *Receiver) earn() {
	if r.credit < r.burst {
		r.credit++
	}
	r.lookups = min(r.lookups+lookupsPerRepair, r.burst*lookupsPerRepair)
}

// spend takes one retransmission from what the receiver is allowed.
func (r *Receiver) spend() bool {
	if r.credit == 0 {
		return false
	}
	r.credit--
	return true
}
