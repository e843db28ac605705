package egress

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/sender"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/trace"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/redundancy"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Receiver is one receiving peer connection with its slots. One writer owns the Receiver.
type Receiver struct {
	writer *writer
	// serial is the order of creation of receivers, in which a burst is sent to them.
	serial uint64
	events eventList
	closed atomic.Bool
	// noParity is set if the receiver is sent no parity, regardless of loss.
	noParity atomic.Bool

	slots slotTable

	// mu guards control, and orders AddSlot and Close.
	mu      sync.Mutex
	control control

	// path is the state of the network path to the receiver.
	path   path
	frames trace.Recorder[*Slot, *track.Track]
	// protection is the share of parity that the path needs.
	protection track.Protection

	// The writer owns the fields below.

	// tick is the pacer's next tick, if the receiver is in the heap of paced receivers.
	tick time.Duration
	// padding is the source of the newest probe's packets beyond the media.
	padding padding
	// protectDue is the time of the next update of the share of parity.
	protectDue time.Duration
	run        run
	// listed is set while the receiver is on the writer's list of receivers, reporting while it is on the list of
	// receivers with urgent sender reports.
	listed, reporting bool
	// relay is set if the receiver is another server (NewRelay). It does not change.
	relay bool
	// pacedIndex is the index of the receiver in the heap of paced receivers, -1 if the receiver is not there.
	pacedIndex int32
	reportDue  time.Time
	// repairs limits the retransmissions to the receiver.
	repairs repairCredit
	// asked counts the pairs in the requests of all slots. The writer's inbox guards it.
	asked int
	// chunks is the allotment for chunked frames to the receiver.
	chunks *packetlog.Allotment
	// reports are the receiver's reports of arrivals. The writer's inbox guards them.
	reports reportBox
}

func newReceiver(w *writer, p Peer, cfg *Config, deadline time.Duration) *Receiver {
	burst := cfg.RetransmissionBurst
	stamper, _ := p.(trace.Stamper)
	return &Receiver{
		writer: w, serial: w.set.lastReceiver.Add(1), repairs: newRepairCredit(burst),
		run: run{peer: p},
		path: path{
			peer: p, cfg: cfg, deadline: deadline, routes: newRoutes(p),
			sender: sender.New[heldPacket, repair](
				sender.Options{Plan: cfg.Plan, Spacing: &w.spacing}, w.set.clock.Started()),
		},
		events: eventList{notify: make(chan struct{}, 1)}, frames: trace.MakeRecorder[*Slot, *track.Track](stamper),
		pacedIndex: -1, chunks: w.set.pieces.NewAllotment(),
	}
}

// SendBare disables parity to the receiver. SendBare must be called before AddSlot.
func (r *Receiver) SendBare() { r.noParity.Store(true) }

// SendReliably selects an estimator for a receiver that is sent whole frames over a transport that retransmits, and
// that reports the transport's acknowledgements. The receiver is sent no parity. SendReliably must be called before
// AddSlot.
func (r *Receiver) SendReliably() {
	r.SendBare()
	r.path.reliable = true
}

// Memory returns the allotment for chunked frames to the receiver.
func (r *Receiver) Memory() *packetlog.Allotment { return r.chunks }

// EngineTime returns the time of the clock of the receiver's engine.
func (r *Receiver) EngineTime() time.Time { return r.writer.set.clock.Now() }

// AddSlot adds an outgoing stream, which carries nothing until Select.
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

// SetRedundancy sets which packets to the receiver leave on its second path, too. Without a second path the mode has no
// effect. SetRedundancy is safe for any goroutine.
func (r *Receiver) SetRedundancy(mode redundancy.Mode) {
	if routes := r.path.routes; routes != nil {
		routes.mode.Store(uint32(mode))
	}
}

// Notify is signalled when events are available to TakeEvents.
func (r *Receiver) Notify() <-chan struct{} { return r.events.notify }

// TakeEvents appends the events since the last call to buf, in order.
func (r *Receiver) TakeEvents(buf []Event) []Event { return r.events.take(buf) }

// TraceFrames sets whether the times of the receiver's frames are wanted.
func (r *Receiver) TraceFrames(wanted bool) { r.frames.Want(wanted) }

// FrameTimesReady is signalled when times of frames are available to TakeFrameTimes.
func (r *Receiver) FrameTimesReady() <-chan struct{} { return r.frames.Ready() }

// TakeFrameTimes appends the times of the frames since the last call to buf.
func (r *Receiver) TakeFrameTimes(buf []FrameTimes) []FrameTimes {
	return r.frames.Take(buf, r.writer.set.clock)
}

// PacketSent adds the requested send stamps of a packet. hardware is the zero time if the network card does not report
// its time.
func (r *Receiver) PacketSent(ssrc uint32, sequence uint16, kernel, hardware time.Time) {
	clock := r.writer.set.clock
	now := clock.Now()
	r.frames.Sent(ssrc, sequence, clock.Stamp(kernel, now), clock.Stamp(hardware, now))
}

// Close ends the receiver and its slots. Close does not wait for the writer: a packet may still be queued, and queued
// packets may still be sent.
func (r *Receiver) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed.Swap(true) {
		return
	}
	r.writer.load.Add(-int64(r.slots.count()) - receiverLoad)
	r.writer.set.slots.Add(-int64(r.slots.count()))
	r.writer.set.remove(r)
	r.writer.inbox.close(r)
	for _, s := range r.slots.all() {
		if s.frameOutlet != nil {
			s.frameOutlet.End()
		}
	}
}

// Arrivals passes an unparsed report of arrivals to the writer. Reports that this process makes about a reliable
// transport are not limited, unlike the reports in RTCP packets.
func (r *Receiver) Arrivals(report []byte, now time.Time) {
	set := r.writer.set
	byStream := r.path.peer.ReportsByStream()
	switch {
	case feedback.IsCongestionReport(report) != byStream, !byStream && r.path.peer.TransportSequenceID() == 0:
		// No packets are sent to which the report could refer.
	case rtcpSize(report) != len(report):
		set.control.Add(counters.MalformedRTCP, 1)
	case len(report) > maxReportBytes/4:
		set.control.Add(counters.TransportDropped, 1)
	default:
		set.control.Add(counters.TransportDropped, uint64(r.writer.inbox.onReport(r, report, set.clock.Since(now))))
	}
}

// reception returns the last published counts, and reports whether there are any.
func (r *Receiver) reception() (latest Reception, known bool) {
	p := &r.path
	c := p.reception.Load()
	if c == nil {
		p.reception.CompareAndSwap(nil, &reception{})
		return Reception{}, false
	}
	p.mu.Lock()
	latest, known = c.published, c.known
	latest.QueueDelay = p.latest.QueueDelay
	p.mu.Unlock()
	latest.Receiver = r.serial
	if peer, ok := p.peer.(located); ok {
		latest.Remote = peer.RemoteAddress()
	}
	return latest, known
}

// queued counts a packet with that number of payload bytes that was queued on the receiver's peer.
func (r *Receiver) queued(bytes int) {
	w := r.writer
	bytes += congestion.PacketOverhead
	r.path.departed.bytes += uint64(bytes)
	if c := r.path.reception.Load(); c != nil {
		c.sent++
	}
	if r.path.sender.Spend(bytes) {
		w.stepDue = min(w.stepDue, r.path.sender.StepDue())
	}
	w.outbox.queued(&r.run)
}

// slotTable holds the slots of a receiver. slotTable is safe for any goroutine.
type slotTable struct {
	mu   sync.Mutex
	list []*Slot
	// named are the slots by SSRC, unnamed the slots without a negotiated SSRC.
	named   map[uint32]*Slot
	unnamed []*Slot
}

func (t *slotTable) add(s *Slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list, t.unnamed = append(t.list, s), append(t.unnamed, s)
}

// all returns the slots. Slots are only appended, so the returned list does not change.
func (t *slotTable) all() []*Slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clip(t.list)
}

func (t *slotTable) count() int { return len(t.all()) }

// name records the SSRCs of slots that were negotiated since the last call. An RTCP packet may name hundreds of slots,
// so name is called once per packet.
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

// find returns the slot with an SSRC, or nil if there is none.
func (t *slotTable) find(ssrc uint32) *Slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.named[ssrc]
}

// parityInterval is the minimum time between two changes of a receiver's share of parity. Losses are counted over
// seconds.
const parityInterval = 500 * time.Millisecond

// ParityShare returns the number of parity packets per source packet that the receiver's own path needs, 0 to 0.25. It
// follows from the loss and the round-trip time of the path: 0 if retransmissions arrive in time, or if the loss is
// unknown. ParityShare is safe for any goroutine.
func (r *Receiver) ParityShare() float64 {
	if r.noParity.Load() {
		return 0
	}
	return r.protection.Share()
}

// ParityOf returns the number of parity packets per source packet of a track that the receiver is sent if the publisher
// makes them: the sum needed by the receiver's path and the publisher's path, at most 0.25. ParityOf is safe for any
// goroutine.
func (r *Receiver) ParityOf(t *track.Track) float64 {
	if r.noParity.Load() {
		return 0
	}
	return feedback.JoinParity(r.protection.Share(), t.UplinkParity())
}

// protect updates the share of parity of the receiver's slots from its path and the paths of the publishers.
func (r *Receiver) protect() {
	w := r.writer
	if r.noParity.Load() || w.at < r.protectDue {
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

// protect updates the slot's share of parity.
func (s *Slot) protect() {
	share := s.receiver.ParityOf(s.selection.track)
	if s.receiver.relay {
		share = max(share, float64(s.passed.Load())/passedUnit)
	}
	s.switcher.SetParity(share)
}

// PassParity sets the share of parity that the receivers of another server need, 0 to 0.25. A slot of NewRelay sends at
// least this share, within half a second. PassParity is safe for any goroutine.
func (s *Slot) PassParity(share float64) { s.passed.Store(uint32(math.Ceil(share * passedUnit))) }

// passedUnit is the number of steps of a share of parity of 1.
const passedUnit = 1000

// endParity disables parity because the receiver's peer cannot use it.
func (r *Receiver) endParity() {
	if r.noParity.Swap(true) {
		return
	}
	for _, s := range r.slots.all() {
		s.switcher.SetParity(0)
	}
}
