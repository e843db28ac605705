package demand

import (
	"slices"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Queue lists the publications of a room whose demand has changed since the last message to their publishers.
type Queue struct{ publications []*Publication }

// Len returns the number of listed publications.
func (q *Queue) Len() int { return len(q.publications) }

// Each calls f for each listed publication and empties the list. f must not change any demand.
func (q *Queue) Each(f func(*Publication)) {
	list := q.publications
	for _, p := range list {
		p.queued = false
		f(p)
	}
	clear(list)
	q.publications = list[:0]
}

// Publication is the demand for one publication: the needs of its receivers, and the tracks and the parity that its
// publisher is asked for.
type Publication struct {
	// Ref names the publication.
	Ref volumetric.PublicationRef
	// Parity is the share of parity packets that the publisher is asked for.
	Parity Parity

	tiles, qualities int
	needs            counts
	// suppression and queue are nil if the publisher does not pause tracks. queued is set while the publication is in
	// the queue.
	suppression *suppression
	// lowest is nil if the publisher has no second path.
	lowest *lowest
	// relay is nil if this node is the home of the publication. takes has the needs of other nodes.
	relay  *relay
	takes  map[string]Take
	queue  *Queue
	queued bool
	saving saving
}

// New returns the demand for a publication whose publisher does not pause tracks.
func New(ref volumetric.PublicationRef, tiles, qualities int) *Publication {
	return &Publication{Ref: ref, tiles: tiles, qualities: qualities, needs: newCounts(tiles, qualities)}
}

// Suppress enables suppression for a publisher that pauses tracks. Changes of the demand add the publication to queue.
func (p *Publication) Suppress(config Config, queue *Queue, now time.Time) {
	p.suppression = newSuppression(config, p.tiles, p.qualities)
	p.queue, p.saving.accounted = queue, now
	p.Changed()
}

// KeepAll makes every track count as used until the hold time has passed from now, under every policy: the nodes that
// take the publication state their needs within that time after its home has changed. The publication must be
// suppressible.
func (p *Publication) KeepAll(now time.Time) { p.suppression.keepAll(now) }

// ReportLowest includes in the messages the tiles of which a receiver takes the lowest quality. The publication must be
// suppressible.
func (p *Publication) ReportLowest() { p.lowest = newLowest(p.tiles) }

// Suppressible reports whether the publisher pauses tracks on request.
func (p *Publication) Suppressible() bool { return p.suppression != nil && p.relay == nil }

// Add states the need of a slot.
func (p *Publication) Add(need Need) {
	p.needs.add(need, 1)
	p.Changed()
}

// Remove ends the need of a slot.
func (p *Publication) Remove(need Need) {
	p.needs.add(need, -1)
	p.Changed()
}

// Changed queues the publication for a step because its demand may have changed.
func (p *Publication) Changed() {
	if p.suppression != nil && !p.queued {
		p.queued = true
		p.queue.publications = append(p.queue.publications, p)
	}
}

// Step updates the state of Message and Take, except parity, and reports whether the state has changed. The publication
// must be suppressible or relayed.
func (p *Publication) Step(now time.Time) (changed bool) {
	changed = p.suppression.step(now, &p.needs)
	if p.lowest != nil {
		changed = p.lowest.step(now, &p.needs) || changed
	}
	if p.relay != nil {
		changed = p.relay.step(&p.needs) || changed
	}
	return changed
}

// Resumed returns the tracks that became wanted in the last step, as tile × qualities + quality. The next step
// overwrites the slice.
func (p *Publication) Resumed() []int { return p.suppression.resumed }

// Dismissed returns the tracks that ceased to be wanted in the last step, in the same form.
func (p *Publication) Dismissed() []int { return p.suppression.dismissed }

// Due returns the time of the next step that is due without a change of a need, zero if there is none.
func (p *Publication) Due() time.Time {
	if p.suppression == nil {
		return time.Time{}
	}
	if p.lowest != nil {
		return earliest(p.suppression.due, p.lowest.due)
	}
	return p.suppression.due
}

// Paused reports whether a track is not wanted.
func (p *Publication) Paused(tile int, q volumetric.Quality) bool {
	return p.suppression != nil && p.suppression.paused(tile, q)
}

// AllPaused reports whether the publisher is asked for no track.
func (p *Publication) AllPaused() bool {
	return p.suppression != nil && p.suppression.pausedCount() >= p.tiles*p.qualities
}

// CheckParity queues the publication if another share of parity is due.
func (p *Publication) CheckParity(now time.Time) {
	if p.Parity.due(now) {
		p.Changed()
	}
}

// SettleParity records the needed share of parity as sent to the publisher if a change is due, and reports whether it
// was.
func (p *Publication) SettleParity(now time.Time) bool { return p.Parity.settle(now) }

// Message returns all wanted tracks, the share of parity and, after ReportLowest, the tiles of which a receiver takes
// the lowest quality. The publication must be suppressible.
func (p *Publication) Message() signal.WantedPublication {
	m := signal.WantedPublication{Publication: p.Ref.Publication, Parity: p.Parity.told}
	for _, wanted := range p.suppression.wanted {
		m.Tiles = append(m.Tiles, listed(wanted))
	}
	if p.lowest != nil {
		m.LowestTaken = slices.Clone(p.lowest.taken)
	}
	return m
}
