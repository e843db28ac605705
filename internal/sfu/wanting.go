package sfu

import (
	"math"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// parityStep is what shares of parity are rounded up to: less changes no frame of 100 packets.
	parityStep = 0.01
	// parityHold is how long a share is asked for at least before it is lowered, so that an encoder does not follow every swing of the loss.
	parityHold = time.Second
	// accountInterval is how often what was saved is added to the metrics.
	accountInterval = time.Second
)

// unsettled lists the publications of a room whose demand has changed since their publishers were told.
type unsettled struct{ publications []*publication }

// wanting is what a publisher is asked for of one publication, beside its tracks: parity, and the books about what it need not send.
type wanting struct {
	// list is the room's; listed is set while the publication is on it.
	list   *unsettled
	listed bool
	// parity is the share that the publisher was told, since when; parityNeeded is what the receiver in greatest need asks for, the publisher's own way included.
	parity, parityNeeded float64
	parityTold           time.Time
	// pausedTracks are those that the publisher was told not to send, and pausedRate what they would take.
	pausedTracks int
	pausedRate   volumetric.Bitrate
	accounted    time.Time
}

// parityDue says whether another share of parity is to be asked for: a share rises at once, and falls after a while.
func (w *wanting) parityDue(now time.Time) bool {
	share := w.parityShare()
	return share > w.parity || share < w.parity && now.Sub(w.parityTold) >= parityHold
}

// parityShare is what is needed in whole steps.
func (w *wanting) parityShare() float64 {
	// A share that is a step but for rounding is that step.
	steps := math.Ceil(w.parityNeeded/parityStep - 1e-9)
	return min(steps/math.Round(1/parityStep), signal.MaxParity)
}

// settleParity brings what is asked for to what is needed, and reports whether the publisher has to be told.
func (w *wanting) settleParity(now time.Time) bool {
	if !w.parityDue(now) {
		return false
	}
	w.parity, w.parityTold = w.parityShare(), now
	return true
}

// saved gives the bits that the publisher did not send since the last call.
func (w *wanting) saved(now time.Time) float64 {
	elapsed := now.Sub(w.accounted)
	w.accounted = now
	if w.pausedRate == 0 {
		return 0
	}
	return float64(w.pausedRate) * elapsed.Seconds()
}

// message is what the publisher is asked for, whole.
func (p *publication) message() signal.WantedPublication {
	m := signal.WantedPublication{Publication: p.ref.Publication, Parity: p.wanting.parity}
	for _, wanted := range p.suppression.wanted {
		m.Tiles = append(m.Tiles, listed(wanted))
	}
	return m
}

// begin makes the publication one whose publisher pauses tracks.
func (p *publication) begin(config SuppressionConfig, list *unsettled, now time.Time) {
	p.suppression = newSuppression(config, len(p.description.Tiles), len(p.description.Qualities))
	p.wanting.list, p.wanting.accounted = list, now
	p.unsettle()
}

// unsettle notes that the demand for the publication may have changed.
func (p *publication) unsettle() {
	if p.suppression != nil && !p.wanting.listed {
		p.wanting.listed = true
		p.wanting.list.publications = append(p.wanting.list.publications, p)
	}
}

// needParity notes what the receiver needs of the publications that it takes, and what of that is for the sake of the ways to the server.
func (p *participant) needParity() {
	r := p.reception
	own := r.link.ParityShare()
	var video, added float64
	for _, s := range p.slots.slots {
		if s.target == nil || !s.selected || s.quality == volumetric.QualityOff || s.kind != volumetric.KindVideo {
			continue
		}
		publication := s.target.publication
		rate := float64(publication.levels.rate(s.target.tile.Tile, s.quality))
		video += rate
		track, _ := publication.track(s.target.tile.Tile, s.quality)
		share := r.link.ParityOf(track)
		if share <= 0 || !publication.description.Codec.Is(volumetric.MIMEVolumetric) {
			continue
		}
		w := &publication.wanting
		w.parityNeeded = max(w.parityNeeded, share)
		// What the publisher has not been asked for does not come.
		added += rate * max(min(share, w.parity)-own, 0)
	}
	if r.uplinkParity = 0; added > 0 {
		r.uplinkParity = added / video
	}
}

// checkParity has the publisher told if another share of parity is to be asked for.
func (p *publication) checkParity(now time.Time) {
	if p.wanting.parityDue(now) {
		p.unsettle()
	}
}

// settle tells publishers what has changed in what is wanted of them. It runs after every request, so that a quality that was suppressed
// is asked for as soon as somebody takes it.
func (r *Room) settle() {
	list := r.unsettled.publications
	if len(list) == 0 {
		return
	}
	told := make(map[*participant][]signal.WantedPublication)
	for _, p := range list {
		p.wanting.listed = false
		owner := r.participants[p.ref.Participant]
		if owner == nil || owner.publication(p.ref.Publication) != p {
			continue
		}
		changed := p.suppression.step(r.now, &p.demand)
		for _, track := range p.suppression.resumed {
			p.tracks[track].Expect()
		}
		for _, track := range p.suppression.dismissed {
			p.tracks[track].Pause()
		}
		if changed {
			r.account(p)
			p.pause(r.node.metrics)
		}
		if p.wanting.settleParity(r.now) || changed {
			told[owner] = append(told[owner], p.message())
		}
		if due := p.suppression.due; !due.IsZero() {
			r.wakeBy(due)
		}
	}
	clear(list)
	r.unsettled.publications = list[:0]
	for owner, publications := range told {
		owner.send(&signal.Wanted{Publications: publications})
	}
}

// pause counts the tracks that the publisher is not asked for.
func (p *publication) pause(m Metrics) {
	w := &p.wanting
	before := w.pausedTracks
	w.pausedTracks, w.pausedRate = p.suppression.pausedCount(), 0
	for tile := range p.description.Tiles {
		for q := range p.description.Qualities {
			if quality := volumetric.Quality(q); p.paused(tile, quality) {
				w.pausedRate += p.levels.rate(tile, quality)
			}
		}
	}
	m.TracksPaused(w.pausedTracks - before)
}

// account adds what a publisher did not send to the metrics.
func (r *Room) account(p *publication) {
	if p.suppression == nil {
		return
	}
	if bits := p.wanting.saved(r.now); bits > 0 {
		r.node.metrics.Suppressed(bits)
	}
	if p.wanting.pausedRate > 0 {
		r.wakeBy(r.now.Add(accountInterval))
	}
}

// end closes the books of a publication that ends.
func (r *Room) end(p *publication) {
	r.account(p)
	r.node.metrics.TracksPaused(-p.wanting.pausedTracks)
	p.wanting.pausedTracks, p.wanting.pausedRate = 0, 0
}

// tellWanted repeats to a publisher that came back what is wanted of it, if that is not everything.
func (p *participant) tellWanted() {
	var all []signal.WantedPublication
	for _, publication := range p.publications {
		if publication.suppression != nil {
			all = append(all, publication.message())
		}
	}
	if len(all) > 0 {
		p.send(&signal.Wanted{Publications: all})
	}
}
