package uplink

import "time"

const (
	// planShare is the part of the estimate that tracks may take: the rest is for retransmissions and for frames above their mean.
	planShare = 0.95
	// planMargin is what a track that was given up has to fit with beside it: who returns and goes by turns costs more than the quality is worth.
	planMargin = 1.1
	// planPatience lets an estimate dip for a moment, as it does where a host is busy: giving up and returning would cost more frames than the pacer drops
	// out meanwhile. Tracks that take more than planExcess times what there is have less of it, three reports at 25 ms: more would be left out.
	planPatience      = 200 * time.Millisecond
	planShortPatience = 75 * time.Millisecond
	planExcess        = 1.25
)

// planTrack is one track as the plan of the uplink sees it.
type planTrack struct {
	// publication tells publications apart, from 0.
	publication int
	// rate is what it takes on the wire, in bit/s, 0 as long as it is not known.
	rate float64
	// kept tracks are never given up: audio, and the lowest quality of each tile.
	kept bool
	// wanted says that the server wants it, gaveUp that it is not sent for want of bandwidth.
	wanted, gaveUp bool
}

// plan decides which tracks are sent when the uplink cannot carry all that is wanted: of each publication the highest qualities are given up first. It is
// pure and stepped with now.
type plan struct {
	// exceeded is since when the tracks that are sent take more than there is, the zero time while they do not.
	exceeded time.Time
	// fitted is how many tracks were sent after the last step: where more are wanted since, it is no dip of the estimate that is to be waited for.
	fitted int
	// closed are the publications of which nothing more fits, in one step.
	closed []bool
}

// step decides about all tracks, which come in the order of their worth: lower qualities first, whatever publication they are of. budget is what
// they may take in bit/s, 0 for everything. It tells whether anything has changed.
//
// What was given up returns once it fits beside all that is sent, with a margin: also what nobody wants any more since it was given up, because it
// would be wanted again at once.
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

// giveUp gives up what does not fit, or takes back what fits.
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

// waits tells whether tracks take more than there is, and have not done so for long.
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

// open begins a step with every publication open. It returns the rate of what is sent in any case.
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
