package trunk

import (
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/forward/track"
)

// bindings bind the streams of another node to the tracks of mirrors.
type bindings struct {
	node    string
	catalog *catalog
	taking  *taking
	lanes   *lanes
	// waiting are offers with a lane that is not open here yet.
	waiting map[publication]*offer
	// confirmed are the confirmations of the offers that were bound since the last confirm.
	confirmed []*message
	// bound are the mirrors that this node takes next from the other node, and whose streams were bound since the Host
	// has taken them.
	bound []*mirror
}

func newBindings(node string, c *catalog, t *taking, l *lanes) bindings {
	return bindings{node: node, catalog: c, taking: t, lanes: l, waiting: map[publication]*offer{}}
}

// bind binds the streams of an offer to the tracks of the mirror.
func (b *bindings) bind(m *offer) {
	if slices.ContainsFunc(m.Streams, func(s stream) bool { return b.lanes.all[s.Lane] == nil }) {
		// The handshake of the lane has ended at the other node, and ends here at once.
		b.waiting[m.publication] = m
		return
	}
	delete(b.waiting, m.publication)
	mirror := b.catalog.mirrorOf(b.node, m.publication)
	changes, known := b.taking.offered(m)
	if !known || mirror == nil {
		return
	}
	for _, c := range changes {
		t, lane := mirror.tracks[c.Track], b.lanes.all[c.Lane]
		switch {
		case t == nil:
		case c.unbind:
			lane.ingress.Unbind(t)
		case !mirror.feed.binds(b.node):
		default:
			lane.ingress.BindFrom(c.SSRC, c.Retransmission, t, mirror.number)
		}
	}
	b.confirmed = append(b.confirmed, &message{Bound: &bound{m.publication, m.Offer}})
	if mirror.feed.next == b.node {
		b.bound = append(b.bound, mirror)
	}
}

// retry binds the streams of offers whose lanes are open by now.
func (b *bindings) retry() {
	for _, m := range b.waiting {
		b.bind(m)
	}
}

// remove removes the offer of a publication that waits for a lane.
func (b *bindings) remove(p publication) { delete(b.waiting, p) }

// confirm returns the confirmations of the offers that were bound since the last call. The streams of all of them were
// permitted before.
func (b *bindings) confirm() []*message {
	confirmed := b.confirmed
	b.confirmed = nil
	return confirmed
}

// permit passes the SSRCs that may arrive to the lanes, if they have changed.
func (b *bindings) permit(now time.Time) {
	if permitted, changed := b.taking.permit(now); changed {
		b.lanes.permit.ssrcs.Store(&permitted)
	}
}

// exchange replaces the tracks of a mirror. Their streams are bound to the new tracks, nil to none. A track may have
// been bound to another trunk meanwhile.
func (b *bindings) exchange(m *mirror, tracks []*track.Track) {
	for index, s := range b.taking.streams(m.keyAt(b.node)) {
		lane, former, next := b.lanes.all[s.Lane], m.tracks[index], tracks[index]
		if lane == nil {
			continue
		}
		if former != nil && former != next {
			lane.ingress.Unbind(former)
		}
		if next != nil {
			lane.ingress.BindFrom(s.SSRC, s.Retransmission, next, m.number)
		}
	}
}

// carries reports whether tracks of a mirror are bound to its streams on this trunk.
func (b *bindings) carries(m *mirror) bool {
	for index, s := range b.taking.streams(m.keyAt(b.node)) {
		if lane, t := b.lanes.all[s.Lane], m.tracks[index]; lane != nil && t != nil && lane.ingress.Carries(t) {
			return true
		}
	}
	return false
}

// succeed makes former nodes stop at a boundary of the frames of a mirror that this trunk carries, too.
func (b *bindings) succeed(m *mirror) {
	for index, s := range b.taking.streams(m.keyAt(b.node)) {
		if lane, t := b.lanes.all[s.Lane], m.tracks[index]; lane != nil && t != nil && !lane.ingress.Carries(t) {
			lane.ingress.Succeed(s.SSRC, t)
		}
	}
}
