package uplink

import "time"

const (
	// planShare is the part of the estimate that tracks may take. The rest is for retransmissions and for frames above
	// their mean.
	planShare = 0.95
	// planMargin is the margin with which a track that was given up has to fit. A track that alternates costs more than
	// its quality is worth.
	planMargin = 1.1
	// planPatience is the time for which excess is tolerated, so that short dips of the estimate, as on a busy host,
	// have no effect: giving up tracks and returning to them would cost more frames than the pacer drops meanwhile. If
	// the tracks exceed planExcess times the budget, planShortPatience applies, three reports at 25 ms: the pacer would
	// drop more frames.
	planPatience      = 200 * time.Millisecond
	planShortPatience = 75 * time.Millisecond
	planExcess        = 1.25
	// A quality that was given up and that the server does not want beside the others replaces the next lower one of
	// its tile: a receiver takes one quality of a tile. It returns if the difference fits, with replaceMargin.
	// Otherwise an uplink would need room for both, and would stay one or two qualities below its rate after each dip
	// of the estimate. Until the server has switched its receivers, and for at most replaceTime, both are sent: up to
	// gaveUpInterval until the message leaves, a tick of the room, two round trips and two frame intervals. During that
	// time no other track returns.
	replaceMargin = 1.01
	replaceTime   = 500 * time.Millisecond
	// Other receivers may still take the lower quality, or the estimate may fall again: replaceRetry after a track was
	// given up qualities are replaced again. The time doubles up to replaceLongest if a replacement lasted for less
	// than replaceLasting.
	replaceRetry   = 2 * time.Second
	replaceLongest = 64 * time.Second
	replaceLasting = 10 * time.Second
)

// planTrack is the input and the decision of the plan for one track.
type planTrack struct {
	// publication is the index of the publication, and tile the number of the tile among those of all publications,
	// from 0.
	publication, tile int
	// rate is the rate on the wire, in bit/s, 0 while unknown.
	rate float64
	// kept tracks are never given up: audio, and the lowest quality of each tile.
	kept bool
	// alternative is set if a receiver takes one quality of the tile.
	alternative bool
	// wanted is set if the server wants the track, gaveUp if it is not sent for lack of bandwidth.
	wanted, gaveUp bool
}

// plan decides which tracks are sent if the uplink cannot carry all wanted tracks. The highest qualities of each
// publication are given up first. plan is pure. Time is an argument of step.
type plan struct {
	// exceeded is the time since which the sent tracks have exceeded the budget, zero while they do not.
	exceeded time.Time
	// fitted is the number of tracks that were sent after the last step. If more tracks are wanted since, the excess is
	// not a dip of the estimate.
	fitted int
	// closed are the publications of which nothing more fits, and highest has for each tile the rate of the highest
	// quality that is sent, in one step.
	closed    []bool
	highest   []float64
	replacing replacements
}

// replacements are the tracks that replace others of their tiles.
type replacements struct {
	// begun is the time of the latest replacement, and until the end of the time in which both tracks may be sent.
	// tracks is the number of tracks that have returned, and rate the rate of the replaced ones.
	begun, until time.Time
	tracks       int
	rate         float64
	// retry is the time of the next replacement at the earliest, and interval the time from giving up a track to it.
	retry    time.Time
	interval time.Duration
}

// permitted reports whether tracks may be replaced.
func (r *replacements) permitted(now time.Time) bool { return !now.Before(r.retry) }

// active reports whether both tracks of a replacement may be sent.
func (r *replacements) active(now time.Time) bool { return now.Before(r.until) }

// begin begins the replacement of tracks with the given rate.
func (r *replacements) begin(now time.Time, tracks int, rate float64) {
	r.begun, r.until, r.tracks, r.rate = now, now.Add(replaceTime), tracks, rate
}

// failed defers the next replacement, because a track was given up.
func (r *replacements) failed(now time.Time) {
	if r.interval = 2 * r.interval; r.tracks == 0 || now.Sub(r.begun) >= replaceLasting {
		r.interval = 0
	}
	r.interval = min(max(r.interval, replaceRetry), replaceLongest)
	r.until, r.tracks, r.retry = time.Time{}, 0, now.Add(r.interval)
}

// step decides for all tracks, which are sorted by priority: lower qualities first, of all publications. budget is the
// highest rate of all tracks in bit/s, 0 for no limit. step reports whether a decision has changed. A track that was
// given up returns once it fits beside all sent tracks, with a margin. An unwanted track returns in the same way, or
// once it fits in place of a lower quality, because the server would want it again at once.
func (p *plan) step(now time.Time, budget float64, tracks []planTrack) (changed bool) {
	if budget == 0 {
		p.exceeded, p.replacing = time.Time{}, replacements{}
		for i := range tracks {
			changed = changed || tracks[i].gaveUp
			tracks[i].gaveUp = false
		}
		return changed
	}
	if p.waits(now, budget, tracks) {
		return false
	}
	changed = p.giveUp(now, budget, tracks)
	p.fitted = 0
	for i := range tracks {
		if t := &tracks[i]; t.wanted && !t.gaveUp {
			p.fitted++
		}
	}
	return changed
}

// giveUp gives up tracks that do not fit or, if there are none, restores tracks that fit.
func (p *plan) giveUp(now time.Time, budget float64, tracks []planTrack) (changed bool) {
	total := p.open(tracks)
	for i := range tracks {
		t := &tracks[i]
		switch {
		case t.kept || !t.wanted:
		case t.gaveUp:
			p.closed[t.publication] = true
		case p.closed[t.publication] || total+t.rate > budget:
			p.closed[t.publication], t.gaveUp, changed = true, true, true
		default:
			total += t.rate
		}
	}
	switch {
	case changed:
		p.replacing.failed(now)
		return true
	case p.replacing.active(now):
		return false
	}
	return p.restore(now, total, budget, tracks)
}

// restore restores tracks that fit beside the sent tracks, whose rate is total.
func (p *plan) restore(now time.Time, total, budget float64, tracks []planTrack) (changed bool) {
	clear(p.closed)
	permitted, returned, replaced := p.replacing.permitted(now), 0, 0.0
	for i := range tracks {
		t := &tracks[i]
		highest := &p.highest[t.tile]
		if !t.gaveUp {
			if t.wanted {
				*highest = t.rate
			}
			continue
		}
		fits := planMargin*(total+t.rate) <= budget
		replaces := !fits && permitted && t.alternative && !t.wanted && *highest > 0 &&
			replaceMargin*(total-*highest+t.rate) <= budget
		if p.closed[t.publication] || !fits && !replaces {
			p.closed[t.publication] = true
			continue
		}
		if replaces {
			returned++
			replaced += *highest
			total -= *highest
		}
		total += t.rate
		*highest = t.rate
		t.gaveUp, changed = false, true
	}
	if returned > 0 {
		p.replacing.begin(now, returned, replaced)
	}
	return changed
}

// waits reports whether the tracks exceed the budget, but not for long enough to act, or because tracks are replaced.
func (p *plan) waits(now time.Time, budget float64, tracks []planTrack) bool {
	sum, sent := 0.0, 0
	for i := range tracks {
		if t := &tracks[i]; t.wanted && !t.gaveUp {
			sum += t.rate
			sent++
		}
	}
	if sum <= budget {
		if !p.exceeded.IsZero() {
			// The server has switched its receivers, or a dip is over.
			p.replacing.until = time.Time{}
		}
		p.exceeded = time.Time{}
		return false
	}
	if p.exceeded.IsZero() {
		p.exceeded = now
	}
	if r := &p.replacing; r.active(now) && sum <= budget+r.rate && sent <= p.fitted+r.tracks {
		return true
	}
	patience := planPatience
	if sum > planExcess*budget {
		patience = planShortPatience
	}
	return sent <= p.fitted && now.Sub(p.exceeded) < patience
}

// open marks every publication as open at the beginning of a step. open returns the rate of the tracks that are always
// sent.
func (p *plan) open(tracks []planTrack) (total float64) {
	p.closed, p.highest = p.closed[:0], p.highest[:0]
	for i := range tracks {
		t := &tracks[i]
		for t.publication >= len(p.closed) {
			p.closed = append(p.closed, false)
		}
		for t.tile >= len(p.highest) {
			p.highest = append(p.highest, 0)
		}
		if t.kept && t.wanted {
			total += t.rate
		}
	}
	return total
}
