package uplink

import (
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// unannouncedShare divides the patience with a restarted quality if the program has not learned yet that the quality is
// wanted. A program that asks before it encodes each quality, from the lowest on, asks for the next one as soon as it
// has written one.
const unannouncedShare = 4

// restart is the state of a track that is wanted again. A receiver that is to be switched to the track sees the track's
// first frame if the frame leaves before the others of its tile: a frame that has begun at another quality is not begun
// again. So the others wait for it, once.
type restart struct {
	// due is set until a frame of the track is written. announced is set once the program was told.
	due, announced bool
	// until is when the others no longer wait, zero if none has waited.
	until time.Time
}

// patience returns how long other qualities of a tile wait for a restarted one: a frame interval, since the next frame
// is there then.
func (p *Publication) patience() time.Duration { return min(p.interval, maxBudget) }

// announce notes that the program was told that a track is wanted. It reports whether frames of the track's tile that
// wait may now leave at another time.
func (p *Publication) announce(track int, now time.Time) bool {
	r := &p.tracks[track].restart
	if !r.due || r.announced {
		return false
	}
	r.announced = true
	if !now.Before(r.until) {
		r.until = time.Time{}
		return false
	}
	r.until = r.until.Add(p.patience() - p.patience()/unannouncedShare)
	return true
}

// awaitRestarted returns when a frame of a track may begin to leave: now, unless another quality of its tile is to
// leave first.
func (p *Publication) awaitRestarted(track int, now time.Time) time.Time {
	if p.description.Mode != volumetric.ModeAlternatives {
		return now
	}
	first, last := p.tile(track)
	for i := first; i < last; i++ {
		if r := &p.tracks[i].restart; i != track && r.due && r.until.IsZero() {
			r.until = now.Add(p.patience() / unannouncedShare)
			if r.announced {
				r.until = now.Add(p.patience())
			}
		}
	}
	return p.awaited(track, now)
}

// awaited returns when no quality of a track's tile is waited for, now if that has passed.
func (p *Publication) awaited(track int, now time.Time) time.Time {
	until := now
	first, last := p.tile(track)
	for i := first; i < last; i++ {
		if t := &p.tracks[i]; t.restart.due && !t.gaveUp && t.restart.until.After(until) {
			until = t.restart.until
		}
	}
	return until
}
