package uplink

import (
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// unannouncedShare divides the patience for a restarted quality while the program has not learned that the quality is
// wanted. A program that asks before it encodes each quality, from the lowest on, asks for the next quality as soon as
// it has written one.
const unannouncedShare = 4

// restart is the state of a track that is wanted again. A receiver that is switched to the track receives the track's
// first frame only if that frame leaves before the frames of the tile's other qualities: a receiver does not begin a
// frame again at another quality. The other qualities therefore wait for this frame, once.
type restart struct {
	// due is set until a frame of the track is written. announced is set once the program was informed.
	due, announced bool
	// until is the end of the wait of the other qualities, zero if none has waited.
	until time.Time
}

// patience returns the longest wait of a tile's other qualities for a restarted one: a frame interval, after which the
// next frame is there.
func (p *Publication) patience() time.Duration { return min(p.interval, maxBudget) }

// announce records that the program was informed that a track is wanted. announce reports whether waiting frames of the
// track's tile may now leave at another time.
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

// awaitRestarted returns the time at which a frame of a track may begin to leave: now, unless another quality of its
// tile has to leave first.
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

// awaited returns the time at which the wait for qualities of a track's tile ends, now if there is no wait.
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
