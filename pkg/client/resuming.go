package client

import (
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// unannouncedShare is the part of the patience that others have with a resumed quality of which the program has not learned yet that it is wanted: a program
// that asks before it encodes each quality, from the lowest on, asks for the next one as soon as it has written one.
const unannouncedShare = 4

// resumption is what is known of a track that is wanted again. Whoever is to be switched to it sees the first of its frames that leaves before the others of its
// tile: a frame that has begun at another quality is not begun anew. So the others wait for it, once.
type resumption struct {
	// due says that no frame of it has been written since, announced that the program was told.
	due, announced bool
	// until is how long the others wait, zero where none has had to.
	until time.Time
}

// patience is how long other qualities of a tile wait for a resumed one: a frame interval, since the next frame is there then.
func (p *Publisher) patience() time.Duration { return min(p.interval, maxBudget) }

// announce notes that the program was told that a track is wanted.
func (p *Publisher) announce(track int, now time.Time) {
	r := &p.tracks[track].resumption
	if !r.due || r.announced {
		return
	}
	r.announced = true
	if !now.Before(r.until) {
		r.until = time.Time{}
		return
	}
	r.until = r.until.Add(p.patience() - p.patience()/unannouncedShare)
	p.reorder(track, now)
}

// awaitResumed is when a frame of a track may begin to leave: now, unless another quality of its tile is to leave first.
func (p *Publisher) awaitResumed(track int, now time.Time) time.Time {
	if p.publication.Mode != volumetric.ModeAlternatives {
		return now
	}
	first, last := p.tile(track)
	for i := first; i < last; i++ {
		if r := &p.tracks[i].resumption; i != track && r.due && r.until.IsZero() {
			r.until = now.Add(p.patience() / unannouncedShare)
			if r.announced {
				r.until = now.Add(p.patience())
			}
		}
	}
	return p.awaited(track, now)
}

// awaited is when the last quality of a track's tile that is waited for is not any more, now if that has passed.
func (p *Publisher) awaited(track int, now time.Time) time.Time {
	until := now
	first, last := p.tile(track)
	for i := first; i < last; i++ {
		if t := &p.tracks[i]; t.resumption.due && !t.gaveUp && t.resumption.until.After(until) {
			until = t.resumption.until
		}
	}
	return until
}

// reorder lets the frames of a track's tile that wait for another quality leave after those that are under way, once there is none to wait for.
func (p *Publisher) reorder(track int, now time.Time) {
	first, last := p.tile(track)
	p.session.media.uplink.resume(p, first, last, p.awaited(track, now))
}

// tile gives the first track of a track's tile, and the one after its last.
func (p *Publisher) tile(track int) (first, last int) {
	qualities := len(p.publication.Qualities)
	first = track - track%qualities
	return first, first + qualities
}
