package downlink

import (
	"slices"
	"time"
)

// FrameCounts counts the frames of one tile while the tile was on. Each expected frame is counted under exactly one of
// the others after its deadline.
type FrameCounts struct {
	// Expected are the frame numbers from the first frame seen to the last, without those of times when the tile was
	// off.
	Expected int64
	// Complete frames were handed over.
	Complete int64
	// Undecodable frames came in part, and were not complete by the deadline.
	Undecodable int64
	// Missing frames did not come at all.
	Missing int64
	// Overflowed frames were complete, but the program did not read them in time.
	Overflowed int64
	// DroppedByServer frames were dropped whole by the server.
	DroppedByServer int64
}

// ledger counts the frames of one tile by their numbers. It is stepped with now.
type ledger struct {
	counts FrameCounts
	// on is set once a frame was seen since the tile was assigned. newest is the newest number since then.
	on     bool
	newest int64
	// off is set while the tile is switched off, since offSince. Frames that were begun may still come. Gaps that were
	// noticed since then wait for the server's message about the frames for which the tile is off.
	off      bool
	offSince time.Time
	// offFrames are the frames for which the tile was off, and that may yet be taken for missing.
	offFrames []stretch
	// unseen are numbers below newest of which nothing has come yet, oldest first, with the time at which the gap was
	// noticed.
	unseen []gap
	// granted is the number of frames that the server said it dropped, not yet matched with unseen numbers.
	granted int64
}

type gap struct {
	number  int64
	noticed time.Time
}

// stretch is consecutive frames, from first to before end.
type stretch struct{ first, end int64 }

// maxStretches bounds the stretches that are kept. A tile that was off more often within the time of a queue has few
// frames to count.
const maxStretches = 8

// maxStretch bounds one jump of frame numbers that is taken for missing frames: ten seconds at 100 frames per second. A
// publisher that jumps further has begun again. It is also the largest number of gaps.
const maxStretch = 1000

// lateFrames is how far behind the newest frame a frame of the former assignment may be: at 90 frames per second and
// the longest deadline, 0.5 s, 45 frames are on their way.
const lateFrames = 64

// seen counts the first packet of a frame.
func (l *ledger) seen(number int64, now time.Time) {
	switch {
	case !l.on && number <= l.newest && number > l.newest-lateFrames && l.counts.Expected > 0:
		// The frame belongs to the former assignment.
		l.found(number)
	case !l.on, number > l.newest+maxStretch, number < l.newest-maxStretch:
		l.forgetOff()
		l.on, l.newest = true, number
		l.counts.Expected++
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

// found removes a frame from the unseen ones.
func (l *ledger) found(number int64) {
	if i := slices.IndexFunc(l.unseen, func(g gap) bool { return g.number == number }); i >= 0 {
		l.unseen = slices.Delete(l.unseen, i, i+1)
	}
}

func (l *ledger) complete()    { l.counts.Complete++ }
func (l *ledger) undecodable() { l.counts.Undecodable++ }
func (l *ledger) overflowed()  { l.counts.Overflowed++ }

// dropped adds frames that the server said it dropped: as many of the unseen frames count as dropped by the server.
func (l *ledger) dropped(frames int) { l.granted += int64(frames) }

// end ends the assignment: numbers until the next frame are not expected.
func (l *ledger) end() {
	l.on, l.off = false, false
	l.forgetOff()
}

// switched sets whether the tile is off.
func (l *ledger) switched(off bool, now time.Time) {
	if off && !l.off {
		l.offSince = now
	}
	l.off = off
}

// wasOff adds frames that do not come because the tile was off, from the first on. Frames before them may still come
// after the server's message, which does not wait in the queue of media.
func (l *ledger) wasOff(first, count int64) {
	if len(l.offFrames) == maxStretches {
		l.offFrames = slices.Delete(l.offFrames, 0, 1)
	}
	l.offFrames = append(l.offFrames, stretch{first, first + count})
}

// forgetOff counts the gaps for which the tile was off, and removes the stretches: numbers may come again.
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

// settle counts the gaps that are older than the deadline.
func (l *ledger) settle(now time.Time, deadline time.Duration) {
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

// lost counts a frame of which nothing came.
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
