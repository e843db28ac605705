package uplink

import "time"

const (
	// planShare is the part of the estimate that tracks may take. The rest is for retransmissions and for frames above
	// their mean.
	planShare = 0.95
	// planMargin is the margin with which a track that was given up has to fit: a track that returns and goes by turns
	// costs more than its quality is worth.
	planMargin = 1.1
	// planPatience ignores short dips of the estimate, as on a busy host: giving up and returning would cost more
	// frames than the pacer drops meanwhile. If the tracks take more than planExcess times the budget,
	// planShortPatience applies, three reports at 25 ms: the pacer would drop more.
	planPatience      = 200 * time.Millisecond
	planShortPatience = 75 * time.Millisecond
	planExcess        = 1.25
)

// planTrack is one track as the plan of the uplink sees it.
type planTrack struct {
	// publication tells publications apart, from 0.
	publication int
	// rate is the rate on the wire, in bit/s, 0 while unknown.
	rate float64
	// kept tracks are never given up: audio, and the lowest quality of each tile.
	kept bool
	// wanted is set if the server wants the track, gaveUp if it is not sent for lack of bandwidth.
	wanted, gaveUp bool
}

// plan decides which tracks are sent if the uplink cannot carry all that are wanted: of each publication the highest
// qualities are given up first. It is pure and stepped with now.
type plan struct {
	// exceeded is since when the tracks that are sent take more than the budget, the zero time while they do not.
	exceeded time.Time
	// fitted is the number of tracks that were sent after the last step. If more are wanted since, the excess is no dip
	// of the estimate.
	fitted int
	// closed are the publications of which nothing more fits, in one step.
	closed []bool
}

// step decides about all tracks, which are sorted by priority: lower qualities first, of all publications. budget is
// the rate that they may take in bit/s, 0 for no limit. It reports whether a decision has changed. A track that was
// given up returns once it fits beside all that is sent, with a margin. So does a track that is no longer wanted since
// it was given up, because it would be wanted again at once.
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

// giveUp gives up tracks that do not fit, or takes back tracks that fit.
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

// waits reports whether the tracks take more than the budget, and have not done so for long.
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

// open begins a step with every publication open. It returns the rate of the tracks that are sent in any case.
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
