package egress

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/volsfu/volsfu/internal/forward/packetlog"
)

// burst is what a writer takes at a time: the packets that its followers have at hand, in their turn, before any of them goes out. They go to one receiver after
// the other, and a receiver that has got them all is flushed before the next one begins: what is sealed for it is still in the processor's nearest cache when
// the kernel copies it, and the first of ten receivers does not wait until everything is sealed for all.
type burst struct {
	packets []taken
	// sources are the followers that the packets came from, each once.
	sources []*follower
	// writes is how many packets it is expected to make for all receivers.
	writes int
	// broken are followers whose next packet does not follow on the one that was taken last: their slots are to be told after the burst.
	broken []*follower
}

// taken is a packet that a follower has passed, with a reference to it.
type taken struct {
	follower *follower
	packet   *packetlog.Packet
}

// burstWrites bounds a burst of many receivers: at 0.35 µs for sealing and 0.55 to 0.75 µs for sending each, they are half a millisecond, which is what audio that
// comes meanwhile waits.
const burstWrites = 512

// gather takes packets for a burst. It ends before a packet that the slots may only see once they have been told of what is missing before it.
func (w *writer) gather() {
	b := &w.burst
	for len(w.ready) > 0 && len(b.packets) < runPackets && b.writes < burstWrites && len(b.broken) == 0 {
		f := w.ready[0]
		if w.waited(f) {
			if len(b.packets) > 0 {
				return
			}
			if w.skip(f) {
				w.requeue(f)
				continue
			}
		}
		second := w.ready.second()
		for {
			b.take(f)
			if len(b.packets) == runPackets || b.writes >= burstWrites || !w.hold(f) || f.broken > 0 || f.turn > second || w.waited(f) {
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
	// A packet that nobody takes costs time, too.
	b.writes += max(len(f.attachments), 1)
}

// spread writes the burst to all receivers.
func (w *writer) spread() {
	b := &w.burst
	w.readClock()
	for r := b.receiver(); r != nil; r = b.receiver() {
		for _, t := range b.packets {
			f := t.follower
			for _, a := range f.attachments[f.cursor:f.end] {
				if w.offer(a, t.packet) {
					w.arrived = append(w.arrived, t.packet.Order)
					if w.set.paced && !f.track.Audio() {
						w.stats.hold.Observe(0, 1)
					}
				}
			}
		}
		b.pass()
		w.depart(r)
	}
	w.dispatch()
	w.writes += len(b.packets)
	w.gathered += len(b.packets)
	b.end()
	for i, f := range b.broken {
		lost := f.broken
		f.broken, b.broken[i] = 0, nil
		w.overrun(f, lost)
	}
	b.broken = b.broken[:0]
}

// receiver is the first that has not been served yet, nil after the last one. Its attachments are found once for all packets of the burst: each is in another place of the memory.
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

// end lets go of the packets.
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

// hold makes sure that the follower has a packet at hand, and that its slots are told of frames that were lost on the way: now, or after the burst that is
// being gathered.
func (w *writer) hold(f *follower) bool {
	ok, lost := f.peek()
	switch {
	case lost == 0:
	case f.cursor < 0:
		w.overrun(f, lost)
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
	if w.hold(f) {
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
