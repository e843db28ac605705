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

// follower is one writer's place in the log of one track, for all slots of that writer that take the track. The reader
// signals it; everything else in it is its writer's.
type follower struct {
	writer *writer
	track  *track.Track
	// signalled is set while the follower is in the writer's hands: on the stack of the signalled, or among the ready.
	// It keeps a reader from signalling for every packet of a burst.
	signalled atomic.Bool
	// below is the next follower on the stack of the signalled.
	below *follower

	// The reader looks at the flag for every packet, the writer changes what follows for every packet.
	_ cacheLine

	// position is that of the next packet to forward.
	position int64
	// next is the packet at the position, with a reference, while the follower is ready.
	next *packetlog.Packet
	// turn is the key by which the ready are served, see turnOf.
	turn int64
	// last is what the follower knows of the packet before next.
	last passed
	// attachments are the slots that take the track, in the order of their receivers.
	attachments []*attachment
	// cursor is the first attachment that has not got the packets of the burst yet, -1 while none of them is the
	// follower's. end is behind those of the receiver that gets them at present.
	cursor, end int
	// broken counts frames that were hurt between the burst and the packet at hand.
	broken int
	// readyIndex is the place in the heap of the ready, -1 outside.
	readyIndex int
	// gaps is the change of the track's gaps that the slots have been told of last; gapped is set while there may be
	// another, and the writer's inbox guards it.
	gaps   uint64
	gapped bool
	// gone is set when the writer has given the track up; the follower may still be on the stack of the signalled.
	gone bool
}

// cacheLine keeps what one core reads often away from what another writes often: two lines of 64 bytes, because
// processors fetch pairs of them.
type cacheLine [128]byte

// passed is what is left to know of a packet that a follower has passed. A follower that has passed none knows nothing.
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

// pass moves past the packet at hand, and gives it away with the reference.
func (f *follower) pass() *packetlog.Packet {
	p := f.next
	f.last = passed{known: true, ordinal: p.Ordinal, ends: p.Ends()}
	f.next = nil
	f.position++
	return p
}

// drop releases the packet at hand.
func (f *follower) drop() {
	if f.next != nil {
		f.next.Release()
		f.next = nil
	}
}

// peek makes sure that the follower holds its next packet, if there is one. It returns false at the head of the log.
// Where the log has lost packets that the follower had not passed, it goes on behind them, and tells how many frames
// were hurt.
func (f *follower) peek() (ok bool, lost int) {
	if f.next != nil {
		return true, 0
	}
	overrun := false
	for f.position < f.track.Log().Head() {
		if f.next = f.track.Log().At(f.position); f.next != nil {
			f.turn = f.turnOf(f.next)
			if overrun {
				lost = hurt(f.last, f.next)
			}
			return true, lost
		}
		overrun = true
		f.position = max(f.position+1, f.track.Log().Tail())
	}
	return false, 0
}

// hurt counts the frames that miss packets when everything between two packets is lost.
func hurt(before passed, after *packetlog.Packet) int {
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

// audioLead is subtracted from the order of audio, so that it goes before everything else. The order of arrival counts
// nanoseconds since the engine's start and stays below it for 146 years.
const audioLead = math.MaxInt64 / 2

// turnOf gives the order in which followers are served: audio first, and otherwise by arrival, oldest first, across all
// tracks.
func (f *follower) turnOf(p *packetlog.Packet) int64 {
	if f.track.Audio() {
		return p.Order - audioLead
	}
	return p.Order
}

// readyHeap holds the followers that have a packet at hand, by turn. It implements heap.Interface.
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

// second is the turn of the follower after the first, or the end of time.
func (h readyHeap) second() int64 {
	turn := int64(math.MaxInt64)
	for i := 1; i < len(h) && i <= 2; i++ {
		turn = min(turn, h[i].turn)
	}
	return turn
}

// signalStack is where readers put followers for their writer: many push, one takes all. A follower is on it once at
// most, because the goroutine that pushes it has first set its flag.
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

// take gives the chain of all that were pushed, the last one first.
func (s *signalStack) take() *follower {
	if s.empty() {
		return nil
	}
	return s.top.Swap(nil)
}

// burst is what a writer takes at a time: the packets that its followers have at hand, in their turn, before any of
// them goes out. They go to one receiver after the other, and a receiver that has got them all is flushed before the
// next one begins: what is sealed for it is still in the processor's nearest cache when the kernel copies it, and the
// first of ten receivers does not wait until everything is sealed for all.
type burst struct {
	packets []taken
	// sources are the followers that the packets came from, each once.
	sources []*follower
	// writes is how many packets it is expected to make for all receivers.
	writes int
	// broken are followers whose next packet does not follow on the one that was taken last: their slots are to be told
	// after the burst.
	broken []*follower
}

// taken is a packet that a follower has passed, with a reference to it.
type taken struct {
	follower *follower
	packet   *packetlog.Packet
}

// burstWrites bounds a burst of many receivers: at 0.35 µs for sealing and 0.55 to 0.75 µs for sending each, they are
// half a millisecond, which is what audio that comes meanwhile waits.
const burstWrites = 512

// gather takes packets for a burst. It ends before a packet that the slots may only see once they have been told of
// what is missing before it.
func (w *writer) gather() {
	b := &w.burst
	for len(w.ready) > 0 && len(b.packets) < runPackets && b.writes < burstWrites && len(b.broken) == 0 {
		f := w.ready[0]
		if f.waited() {
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
				f.turn > second || f.waited() {
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

// spread writes the burst to all receivers.
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

// receiver is the first that has not been served yet, nil after the last one. Its attachments are found once for all
// packets of the burst: each is in another place of the memory.
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

// pass moves past the receiver that has been served.
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

// hold makes sure that the follower has a packet at hand, and that its slots are told of frames that were lost on the
// way: now, or after the burst that is being gathered.
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

// requeue puts the follower that stands first among the ready where it belongs now.
func (w *writer) requeue(f *follower) {
	if f.hold() {
		heap.Fix(&w.ready, f.readyIndex)
		return
	}
	heap.Remove(&w.ready, f.readyIndex)
	w.resume(f)
}

// insert adds an attachment, behind those of receivers that came before.
func (f *follower) insert(a *attachment) {
	at, _ := slices.BinarySearchFunc(f.attachments, a.slot.receiver.serial+1, func(a *attachment, number uint64) int {
		return cmp.Compare(a.slot.receiver.serial, number)
	})
	f.attachments = slices.Insert(f.attachments, at, a)
}
