package egress

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"sync/atomic"

	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/forward/turn"
)

// follower is the position of one writer in the log of one track, for all slots of the writer that take the track. The
// reader signals the follower; all other state belongs to the writer.
type follower struct {
	writer *writer
	track  *track.Track
	// signalled is set while the follower is on the stack of signalled followers or in the heap of ready followers. It
	// avoids a signal for every packet of a burst.
	signalled atomic.Bool
	// below is the next follower on the stack of signalled followers.
	below *follower

	// The reader reads the flag for every packet; the writer changes the fields below for every packet.
	_ cacheLine

	// position is the position of the next packet to forward.
	position int64
	// next is the packet at position, with a reference, while the follower is ready.
	next *packetlog.Packet
	// turn is the key in the heap of ready followers, see turnOf.
	turn int64
	// last describes the packet before next.
	last passed
	// attachments are the slots that take the track, in the order of their receivers.
	attachments []*attachment
	// cursor is the index of the first attachment that has not received the packets of the burst, -1 if the burst has
	// no packets of the follower. end is the index after the attachments of the receiver that is being served.
	cursor, end int
	// broken counts the frames that lost packets between the burst and the next packet.
	broken int
	// readyIndex is the index in the heap of ready followers, -1 if the follower is not ready.
	readyIndex int
	// gaps is the change of the track's gaps up to which the slots are informed. gapped is set if there may be a later
	// change; the writer's inbox guards gapped.
	gaps   uint64
	gapped bool
	// gone is set when the writer has stopped following the track. The follower may still be on the stack of signalled
	// followers.
	gone bool
}

// cacheLine separates a field that one core reads often from fields that another core writes often: two lines of 64
// bytes, because processors fetch pairs of lines.
type cacheLine [128]byte

// passed describes the last packet that a follower has passed. The zero value means no packet.
type passed struct {
	known   bool
	ordinal int64
	// ends is set if the packet was the last of its frame.
	ends bool
}

// Signal implements track.Follower.
func (f *follower) Signal() *turn.Turn {
	if f.signalled.Load() || !f.signalled.CompareAndSwap(false, true) {
		return nil
	}
	f.writer.signalled.push(f)
	return f.writer.turn
}

// Gapped implements track.Follower.
func (f *follower) Gapped() { f.writer.inbox.gapped(f) }

// Ended implements track.Follower.
func (f *follower) Ended() { f.writer.inbox.end(f) }

// pass advances past the next packet and returns the packet with the follower's reference.
func (f *follower) pass() *packetlog.Packet {
	p := f.next
	f.last = passed{known: true, ordinal: p.Ordinal, ends: p.Ends()}
	f.next = nil
	f.position++
	return p
}

// drop releases the next packet.
func (f *follower) drop() {
	if f.next != nil {
		f.next.Release()
		f.next = nil
	}
}

// peek loads the follower's next packet. peek returns false at the head of the log. If the log has removed packets that
// the follower had not passed, the follower continues after them, and lost is the number of frames affected.
func (f *follower) peek() (ok bool, lost int) {
	if f.next != nil {
		return true, 0
	}
	overrun := false
	for f.position < f.track.Log().Head() {
		if f.next = f.track.Log().At(f.position); f.next != nil {
			f.turn = f.turnOf(f.next)
			if overrun {
				lost = affectedFrames(f.last, f.next)
			}
			return true, lost
		}
		overrun = true
		f.position = max(f.position+1, f.track.Log().Tail())
	}
	return false, 0
}

// nextFrame returns the frame number of the next packet. known is false at the head of the log, if the next packet was
// removed, and if the track has no frame numbers.
func (f *follower) nextFrame() (frame int64, known bool) {
	if f.next != nil {
		return f.next.Facts.Frame, f.next.Facts.Framed
	}
	if f.position >= f.track.Log().Head() {
		return 0, false
	}
	p := f.track.Log().At(f.position)
	if p == nil {
		return 0, false
	}
	defer p.Release()
	return p.Facts.Frame, p.Facts.Framed
}

// affectedFrames returns the number of frames that lack packets when all packets between before and after are lost.
func affectedFrames(before passed, after *packetlog.Packet) int {
	if !before.known {
		return 1
	}
	first, last := before.ordinal, after.Ordinal
	if before.ends {
		first++
	}
	if after.Facts.Opens {
		last--
	}
	return int(max(last-first+1, 0))
}

// audioLead is subtracted from the order of audio, so that audio precedes all other packets. The order of arrival
// counts nanoseconds since the engine's start and stays below audioLead for 146 years.
const audioLead = math.MaxInt64 / 2

// turnOf returns the key by which followers are served: audio first, then the oldest arrival across all tracks.
func (f *follower) turnOf(p *packetlog.Packet) int64 {
	if f.track.Audio() {
		return p.Order - audioLead
	}
	return p.Order
}

// readyHeap holds the followers with a next packet, by turn. readyHeap implements heap.Interface.
type readyHeap []*follower

func (h readyHeap) Len() int           { return len(h) }
func (h readyHeap) Less(i, j int) bool { return h[i].turn < h[j].turn }

func (h readyHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].readyIndex, h[j].readyIndex = i, j
}

func (h *readyHeap) Push(x any) {
	f := x.(*follower)
	f.readyIndex = len(*h)
	*h = append(*h, f)
}

func (h *readyHeap) Pop() any {
	last := len(*h) - 1
	f := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	f.readyIndex = -1
	return f
}

// second returns the turn of the second follower, or the maximum if there is none.
func (h readyHeap) second() int64 {
	turn := int64(math.MaxInt64)
	for i := 1; i < len(h) && i <= 2; i++ {
		turn = min(turn, h[i].turn)
	}
	return turn
}

// signalStack holds the followers that readers have signalled: many goroutines push, one takes all. A follower is on
// the stack at most once, because the goroutine that pushes has set its flag first.
type signalStack struct{ top atomic.Pointer[follower] }

func (s *signalStack) push(f *follower) {
	for {
		f.below = s.top.Load()
		if s.top.CompareAndSwap(f.below, f) {
			return
		}
	}
}

func (s *signalStack) empty() bool { return s.top.Load() == nil }

// take removes and returns the chain of pushed followers, the latest first.
func (s *signalStack) take() *follower {
	if s.empty() {
		return nil
	}
	return s.top.Swap(nil)
}

// burst holds the packets that a writer takes at a time: the next packets of its followers, in order of their turns,
// before any of them is sent. Receivers are served in turn, and each is flushed before the next. The sealed packets are
// then still in the processor's nearest cache when the kernel copies them, and the first of ten receivers does not wait
// until packets are sealed for all receivers.
type burst struct {
	packets []taken
	// sources are the followers of the packets, each once.
	sources []*follower
	// writes is the expected number of packets to all receivers.
	writes int
	// broken are followers with lost packets after the last packet taken. Their slots are informed after the burst.
	broken []*follower
}

// taken is a packet that a follower has passed, with a reference.
type taken struct {
	follower *follower
	packet   *packetlog.Packet
}

// burstWrites bounds a burst to many receivers. At 0.35 µs for sealing and 0.55 to 0.75 µs for sending per packet, a
// burst takes half a millisecond, which is the delay of audio that arrives meanwhile.
const burstWrites = 512

// gather takes packets for a burst. It stops before a packet that follows lost packets, because the slots must be
// informed first.
func (w *writer) gather() {
	b := &w.burst
	for len(w.ready) > 0 && len(b.packets) < runPackets && b.writes < burstWrites && len(b.broken) == 0 {
		f := w.ready[0]
		if f.tooOld() {
			if len(b.packets) > 0 {
				return
			}
			if f.skip() {
				w.requeue(f)
				continue
			}
		}
		second := w.ready.second()
		for {
			b.take(f)
			if len(b.packets) == runPackets || b.writes >= burstWrites || !f.hold() || f.broken > 0 ||
				f.turn > second || f.tooOld() {
				break
			}
		}
		w.requeue(f)
	}
}

// take moves a packet from its follower to the burst.
func (b *burst) take(f *follower) {
	if f.cursor < 0 {
		f.cursor = 0
		b.sources = append(b.sources, f)
	}
	b.packets = append(b.packets, taken{f, f.pass()})
	// A packet that no slot takes costs time, too.
	b.writes += max(len(f.attachments), 1)
}

// spread offers the burst to all receivers.
func (w *writer) spread() {
	b := &w.burst
	w.read()
	for r := b.receiver(); r != nil; r = b.receiver() {
		for _, t := range b.packets {
			f := t.follower
			for _, a := range f.attachments[f.cursor:f.end] {
				if a.offer(t.packet) {
					w.outbox.arrived = append(w.outbox.arrived, t.packet.Order)
					if w.set.paced && !f.track.Audio() {
						w.stats.pacerHold.Observe(0, 1)
					}
				}
			}
		}
		b.pass()
		w.outbox.depart(&r.run)
	}
	w.outbox.dispatch()
	w.outbox.writes += len(b.packets)
	w.gathered += len(b.packets)
	b.end()
	for i, f := range b.broken {
		lost := f.broken
		f.broken, b.broken[i] = 0, nil
		f.overrun(lost)
	}
	b.broken = b.broken[:0]
}

// receiver returns the next receiver to serve, nil after the last. receiver finds the receiver's attachments once for
// all packets of the burst, because attachments are spread over memory.
func (b *burst) receiver() *Receiver {
	var first *Receiver
	for _, f := range b.sources {
		if f.cursor < len(f.attachments) {
			if r := f.attachments[f.cursor].slot.receiver; first == nil || r.serial < first.serial {
				first = r
			}
		}
	}
	for _, f := range b.sources {
		for f.end = f.cursor; f.end < len(f.attachments) && f.attachments[f.end].slot.receiver == first; f.end++ {
		}
	}
	return first
}

// pass advances past the receiver that has been served.
func (b *burst) pass() {
	for _, f := range b.sources {
		f.cursor = f.end
	}
}

// end releases the packets.
func (b *burst) end() {
	for i, t := range b.packets {
		t.packet.Release()
		b.packets[i] = taken{}
	}
	for i, f := range b.sources {
		f.cursor, b.sources[i] = -1, nil
	}
	b.packets, b.sources, b.writes = b.packets[:0], b.sources[:0], 0
}

// hold loads the follower's next packet, and informs the slots of frames that lost packets: now, or after the burst
// that is being gathered. hold returns false at the head of the log.
func (f *follower) hold() bool {
	w := f.writer
	ok, lost := f.peek()
	switch {
	case lost == 0:
	case f.cursor < 0:
		f.overrun(lost)
	default:
		if f.broken == 0 {
			w.burst.broken = append(w.burst.broken, f)
		}
		f.broken += lost
	}
	return ok
}

// requeue restores the position of the first ready follower in the heap.
func (w *writer) requeue(f *follower) {
	if f.hold() {
		heap.Fix(&w.ready, f.readyIndex)
		return
	}
	heap.Remove(&w.ready, f.readyIndex)
	w.resume(f)
}

// insert adds an attachment after the attachments of earlier receivers.
func (f *follower) insert(a *attachment) {
	at, _ := slices.BinarySearchFunc(f.attachments, a.slot.receiver.serial+1, func(a *attachment, number uint64) int {
		return cmp.Compare(a.slot.receiver.serial, number)
	})
	f.attachments = slices.Insert(f.attachments, at, a)
}
