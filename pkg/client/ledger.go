package client

import (
	"slices"
	"time"
)

// FrameCounts say what became of the frames of one tile while it was on. Each expected frame is counted under exactly one of the others
// once its time is over, except those that are still on their way.
type FrameCounts struct {
	// Expected are the frame numbers from the first frame seen to the last, without those of times when the tile was off: it falls by these once the deadline of the first frame
	// after them is over.
	Expected int64 `json:"frames_expected"`
	// Complete frames were handed over.
	Complete int64 `json:"frames_complete"`
	// Undecodable frames came in part, and were not complete by the deadline.
	Undecodable int64 `json:"frames_undecodable"`
	// Missing frames did not come at all.
	Missing int64 `json:"frames_missing"`
	// Overflowed frames were complete, but the program did not read them in time.
	Overflowed int64 `json:"frames_overflowed"`
	// DroppedByServer frames were dropped whole by the server.
	DroppedByServer int64 `json:"frames_dropped_by_server"`
}

// ledger books the frames of one tile by their numbers. It is stepped with now.
type ledger struct {
	counts FrameCounts
	// on says that a frame was seen since the tile was assigned; newest is the newest number of this stretch.
	on     bool
	newest int64
	// off says that the tile is switched off, since when: frames that were begun may still come, and gaps noticed since wait for word of the frames that it is off for.
	off      bool
	offSince time.Time
	// offFrames are those that the tile was off for, and that may yet be taken for missing.
	offFrames []stretch
	// unseen are numbers below newest of which nothing has come yet, oldest first, with the time at which the gap was noticed.
	unseen []gap
	// granted are frames that the server said it dropped, not yet matched with unseen numbers.
	granted int64
}

type gap struct {
	number  int64
	noticed time.Time
}

// stretch is consecutive frames, from first to before end.
type stretch struct{ first, end int64 }

// maxStretches bounds the stretches that are remembered: a tile that was off more often than that within the time of a queue was not worth counting.
const maxStretches = 8

// maxStretch bounds one jump of frame numbers that is taken for missing frames: ten seconds at 100 frames per second. A publisher that
// jumps further has begun anew. As many gaps are kept at most.
const maxStretch = 1000

// lateFrames is how far behind the newest a frame may be that still comes of a stretch that has ended: at 90 frames per second and the longest deadline, 0.5 s, those of
// 45 are on their way.
const lateFrames = 64

// seen books the first packet of a frame.
func (l *ledger) seen(number int64, now time.Time) {
	switch {
	case !l.on && number <= l.newest && number > l.newest-lateFrames && l.counts.Expected > 0:
		// It is of the stretch before, and begins no other.
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

// found takes a frame that was taken for missing.
func (l *ledger) found(number int64) {
	if i := slices.IndexFunc(l.unseen, func(g gap) bool { return g.number == number }); i >= 0 {
		l.unseen = slices.Delete(l.unseen, i, i+1)
	}
}

func (l *ledger) complete()    { l.counts.Complete++ }
func (l *ledger) undecodable() { l.counts.Undecodable++ }
func (l *ledger) overflowed()  { l.counts.Overflowed++ }

// dropped takes the server's word that it dropped frames: so many of the unseen ones are its doing.
func (l *ledger) dropped(frames int) { l.granted += int64(frames) }

// end ends the stretch: numbers until the next frame are not expected.
func (l *ledger) end() {
	l.on, l.off = false, false
	l.forgetOff()
}

// switched says whether the tile is off.
func (l *ledger) switched(off bool, now time.Time) {
	if off && !l.off {
		l.offSince = now
	}
	l.off = off
}

// wasOff takes the server's word that so many frames from the first on do not come because the tile was off. Those from before may still come after the word, which does not wait in the
// queue that they wait in.
func (l *ledger) wasOff(first, count int64) {
	if len(l.offFrames) == maxStretches {
		l.offFrames = slices.Delete(l.offFrames, 0, 1)
	}
	l.offFrames = append(l.offFrames, stretch{first, first + count})
}

// forgetOff counts the gaps that the tile was off for, and forgets when that was: numbers may come again.
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

// settle counts gaps that are older than the deadline.
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
