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
)

// planTrack is the input and the decision of the plan for one track.
type planTrack struct {
	// publication is the index of the publication, from 0.
	publication int
	// rate is the rate on the wire, in bit/s, 0 while unknown.
	rate float64
	// kept tracks are never given up: audio, and the lowest quality of each tile.
	kept bool
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
	// closed are the publications of which nothing more fits, in one step.
	closed []bool
}

// step decides for all tracks, which are sorted by priority: lower qualities first, of all publications. budget is the
// highest rate of all tracks in bit/s, 0 for no limit. step reports whether a decision has changed. A track that was
// given up returns once it fits beside all sent tracks, with a margin. An unwanted track returns in the same way,
// because the server would want it again at once.
func (p *plan) step(now time.Time, budget float64, tracks []planTrack) (changed bool) {
	if budget == 0 {
		p.exceeded = time.Time{}
		for i := range tracks {
			changed = changed || tracks[i].gaveUp
			tracks[i].gaveUp = false
		}
		return changed
	}
	if p.waits(now, budget, tracks) {
		return false
	}
	changed = p.giveUp(budget, tracks)
	p.fitted = 0
	for i := range tracks {
		if t := &tracks[i]; t.wanted && !t.gaveUp {
			p.fitted++
		}
	}
	return changed
}

// giveUp gives up tracks that do not fit or, if there are none, restores tracks that fit.
func (p *plan) giveUp(budget float64, tracks []planTrack) (changed bool) {
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
	if changed {
		return true
	}
	clear(p.closed)
	for i := range tracks {
		t := &tracks[i]
		if !t.gaveUp {
			continue
		}
		if p.closed[t.publication] || planMargin*(total+t.rate) > budget {
			p.closed[t.publication] = true
			continue
		}
		total += t.rate
		t.gaveUp, changed = false, true
	}
	return changed
}

// waits reports whether the tracks exceed the budget, but not for long enough to act.
func (p *plan) waits(now time.Time, budget float64, tracks []planTrack) bool {
	sum, sent := 0.0, 0
	for i := range tracks {
		if t := &tracks[i]; t.wanted && !t.gaveUp {
			sum += t.rate
			sent++
		}
	}
	if sum <= budget {
		p.exceeded = time.Time{}
		return false
	}
	if p.exceeded.IsZero() {
		p.exceeded = now
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
	p.closed = p.closed[:0]
	for i := range tracks {
		t := &tracks[i]
		for t.publication >= len(p.closed) {
			p.closed = append(p.closed, false)
		}
		if t.kept && t.wanted {
			total += t.rate
		}
	}
	return total
}
