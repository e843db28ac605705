package egress

import (
	"math"
	"sync/atomic"

	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/forward/turn"
)

// follower is one writer's place in the log of one track, for all slots of that writer that take the track. The reader signals it; everything
// else in it is its writer's.
type follower struct {
	writer *writer
	track  *track.Track
	// signalled is set while the follower is in the writer's hands: on the stack of the signalled, or among the ready. It keeps a reader
	// from signalling for every packet of a burst.
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
	// cursor is the first attachment that has not got the packets of the burst yet, -1 while none of them is the follower's. end is behind those of the receiver that gets them at present.
	cursor, end int
	// broken counts frames that were hurt between the burst and the packet at hand.
	broken int
	// readyIndex is the place in the heap of the ready, -1 outside.
	readyIndex int
	// gaps is the change of the track's gaps that the slots have been told of last; gapped is set while there may be another, and the writer's inbox guards it.
	gaps   uint64
	gapped bool
	// gone is set when the writer has given the track up; the follower may still be on the stack of the signalled.
	gone bool
}

// cacheLine keeps what one core reads often away from what another writes often: two lines of 64 bytes, because processors fetch pairs of them.
type cacheLine [128]byte

// passed is what is left to know of a packet that a follower has passed. A follower that has passed none knows nothing.
type passed struct {
	known   bool
	ordinal int64
	// ends tells that the packet was the last of its frame.
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

// drop lets go of the packet at hand.
func (f *follower) drop() {
	if f.next != nil {
		f.next.Release()
		f.next = nil
	}
}

// peek makes sure that the follower holds its next packet, if there is one. It returns false at the head of the log. Where the log has lost
// packets that the follower had not passed, it goes on behind them, and tells how many frames were hurt.
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

// audioLead is subtracted from the order of audio, so that it goes before everything else. The order of arrival counts nanoseconds since
// the engine's start and stays below it for 146 years.
const audioLead = math.MaxInt64 / 2

// turnOf gives the order in which followers are served: audio first, and otherwise by arrival, oldest first, across all tracks.
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

// signalStack is where readers put followers for their writer: many push, one takes all. A follower is on it once at most, because whoever
// pushes it has first set its flag.
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
