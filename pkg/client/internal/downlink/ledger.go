package downlink

import (
	"slices"
	"time"
)

// FrameCounts counts the frames of one tile while the tile was on. Each expected frame is counted in exactly one of the
// other counts after its deadline.
type FrameCounts struct {
	// Expected counts the frame numbers from the first frame received to the last, except the frames of times when the
	// tile was off.
	Expected int64
	// Complete counts frames that were delivered.
	Complete int64
	// Undecodable counts frames of which packets arrived and which were not complete by the deadline.
	Undecodable int64
	// Missing counts frames of which no packet arrived.
	Missing int64
	// Overflowed counts complete frames, and packets of tracks without payload v1, that the program did not read in
	// time.
	Overflowed int64
	// DroppedByServer counts whole frames that the server dropped.
	DroppedByServer int64
	// Refused counts complete frames that were not decrypted.
	Refused int64
}

// ledger counts the frames of one tile by frame number. Time is an argument of the methods.
type ledger struct {
	counts FrameCounts
	// on is set once a frame was received since the assignment of the tile. newest is the highest number since then.
	// begun is set once a frame was received since the numbers began.
	on, begun bool
	newest    int64
	// off is set while the tile is switched off, since offSince. Frames in transit may still arrive. Gaps detected
	// since then wait for the server's message about the frames for which the tile is off.
	off      bool
	offSince time.Time
	// offFrames are the frames for which the tile was off and which could still be counted as missing.
	offFrames []stretch
	// unseen are numbers below newest of which no packet has arrived, oldest first, with the time at which the gap was
	// detected.
	unseen []gap
	// left are the frames that were incomplete when their stream left the tile, with the times of their first packets.
	// A slot begins with the newest frame, and may complete it.
	left []gap
	// granted is the number of frames that the server reported as dropped and that are not matched with unseen numbers
	// yet.
	granted int64
}

type gap struct {
	number  int64
	noticed time.Time
}

// stretch is a range of consecutive frames, from first to before end.
type stretch struct{ first, end int64 }

// maxStretches bounds the stretches that are kept. A tile that is switched off more often within the delay of a queue
// has few frames to count.
const maxStretches = 8

// maxStretch is the largest jump of frame numbers that counts as missing frames: ten seconds at 100 frames per second.
// After a larger jump the publisher has restarted its numbers. maxStretch also bounds the number of gaps.
const maxStretch = 1000

// lateFrames is the largest distance behind the newest frame at which a frame may belong to the previous assignment. At
// 90 frames per second and the longest deadline, 0.5 s, 45 frames are in transit.
const lateFrames = 64

// seen counts the first packet of a frame.
func (l *ledger) seen(number int64, now time.Time) {
	switch {
	case !l.on && l.begun && number <= l.newest && number > l.newest-lateFrames:
		// The frame belongs to the previous assignment.
		l.found(number)
	case !l.on, number > l.newest+maxStretch, number < l.newest-maxStretch:
		l.forgetOff()
		l.begin(number)
	case number > l.newest:
		for n := l.newest + 1; n < number; n++ {
			l.unseen = append(l.unseen, gap{n, now})
		}
		if over := len(l.unseen) - maxStretch; over > 0 {
			for _, g := range l.unseen[:over] {
				l.lost(g.number)
			}
			l.unseen = slices.Delete(l.unseen, 0, over)
		}
		l.counts.Expected += number - l.newest
		l.newest = number
	default:
		l.found(number)
	}
}

// begin counts the first frame of an assignment or of new numbers.
func (l *ledger) begin(number int64) {
	l.on, l.begun, l.newest = true, true, number
	l.counts.Expected++
}

// restart ends the numbers: the next frame belongs to a publication that has replaced the tile's. Frames of the former
// publication that have not arrived are counted.
func (l *ledger) restart() {
	for _, g := range l.unseen {
		l.lost(g.number)
	}
	l.counts.Undecodable += int64(len(l.left))
	*l = ledger{counts: l.counts}
}

// found removes a frame from the unseen ones.
func (l *ledger) found(number int64) {
	if i := slices.IndexFunc(l.unseen, func(g gap) bool { return g.number == number }); i >= 0 {
		l.unseen = slices.Delete(l.unseen, i, i+1)
	}
}

func (l *ledger) complete()    { l.counts.Complete++ }
func (l *ledger) undecodable() { l.counts.Undecodable++ }
func (l *ledger) overflowed()  { l.counts.Overflowed++ }
func (l *ledger) refused()     { l.counts.Refused++ }

// dropped adds frames that the server reported as dropped. As many unseen frames count as dropped by the server.
func (l *ledger) dropped(frames int) { l.granted += int64(frames) }

// end ends the assignment: numbers until the next frame are not expected.
func (l *ledger) end() {
	l.on, l.off = false, false
	l.forgetOff()
}

// incomplete adds a frame that is incomplete when its stream leaves the tile.
func (l *ledger) incomplete(number int64, first time.Time) {
	l.left = append(l.left, gap{number, first})
}

// taken removes a frame that another stream completes or counts from those that were left incomplete.
func (l *ledger) taken(number int64) {
	if i := slices.IndexFunc(l.left, func(g gap) bool { return g.number == number }); i >= 0 {
		l.left = slices.Delete(l.left, i, i+1)
	}
}

// settled reports whether no frame waits for its deadline here.
func (l *ledger) settled() bool { return len(l.unseen) == 0 && len(l.left) == 0 }

// switched sets whether the tile is off.
func (l *ledger) switched(off bool, now time.Time) {
	if off && !l.off {
		l.offSince = now
	}
	l.off = off
}

// wasOff adds frames that do not arrive because the tile was off, beginning with first. Earlier frames may still arrive
// after the server's message, which does not wait in the queue of media.
func (l *ledger) wasOff(first, count int64) {
	if len(l.offFrames) == maxStretches {
		l.offFrames = slices.Delete(l.offFrames, 0, 1)
	}
	l.offFrames = append(l.offFrames, stretch{first, first + count})
}

// forgetOff counts the gaps for which the tile was off, and removes the stretches, because numbers may be used again.
func (l *ledger) forgetOff() {
	l.unseen = slices.DeleteFunc(l.unseen, func(g gap) bool {
		if !l.wasOffFor(g.number) {
			return false
		}
		l.lost(g.number)
		return true
	})
	l.offFrames = nil
}

// settle counts the gaps and the frames left incomplete that are older than the deadline.
func (l *ledger) settle(now time.Time, deadline time.Duration) {
	l.left = slices.DeleteFunc(l.left, func(g gap) bool {
		late := now.Sub(g.noticed) >= deadline
		if late {
			l.undecodable()
		}
		return late
	})
	n := 0
	for n < len(l.unseen) && now.Sub(l.unseen[n].noticed) >= deadline {
		if g := l.unseen[n]; l.off && !g.noticed.Before(l.offSince) && !l.wasOffFor(g.number) {
			break
		}
		l.lost(l.unseen[n].number)
		n++
	}
	l.unseen = slices.Delete(l.unseen, 0, n)
	if len(l.unseen) == 0 {
		l.offFrames = slices.DeleteFunc(l.offFrames, func(s stretch) bool { return s.end <= l.newest })
	}
}

// lost counts a frame of which no packet arrived.
func (l *ledger) lost(number int64) {
	switch {
	case l.wasOffFor(number):
		l.counts.Expected--
	case l.granted > 0:
		l.granted--
		l.counts.DroppedByServer++
	default:
		l.counts.Missing++
	}
}

func (l *ledger) wasOffFor(number int64) bool {
	return slices.ContainsFunc(l.offFrames, func(s stretch) bool { return s.first <= number && number < s.end })
}
