package sfu

import (
	"maps"
	"slices"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/sfu/presence"
	"github.com/volsfu/volsfu/internal/sfu/roomevent"
	"github.com/volsfu/volsfu/internal/sfu/sessionrecord"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// mirror is a participant whose home is another node. The home alone changes the state of the participant. The
// publications of a mirror have tracks of this node, which the trunk to the home feeds.
type mirror struct {
	presence.Presence
	// node is the home.
	node string
	// state is the last state that the home has told.
	state roomevent.Participant
	// received is the number of the last reliable data message that this node has received from the participant.
	received int64
	// offers limits the changes of the participant's given-up tracks after which receivers decide at once.
	offers *subscriber.OfferLimit
	// remotes are the publications that the home has told. A mirror that is not shown has no other publications.
	remotes []*remotePublication
	// presented is set once the home has told its state since it has become the home.
	presented bool
	// shown is set if the participants of the room see the mirror. A mirror with the identity of a local participant is
	// not shown until the cluster has decided between both.
	shown bool
}

// remotePublication is a publication as its home has told it.
type remotePublication struct {
	checked
	// node is the last home that has told the publication, and id the publication's id there. bound is set while the
	// trunk to that node may feed the tracks. former is set until the present home has told the publication.
	node          string
	id            uint64
	bound, former bool
	rates         []volumetric.Bitrate
	// gaveUp has the qualities that the publisher cannot send, masked those that the trunk cannot carry, by tile. Both
	// are empty if there are none.
	gaveUp, masked []allocate.QualitySet
}

// fits reports whether the publication has the id and a list has an entry for each of its tiles. d may be nil.
func (d *remotePublication) fits(id uint64, tiles []allocate.QualitySet) bool {
	return d != nil && d.id == id && len(tiles) == len(d.Tiles)
}

// find returns the publication of the home with a name, nil if there is none.
func (m *mirror) find(name string) *remotePublication {
	if i := slices.IndexFunc(m.remotes, func(d *remotePublication) bool { return d.Name == name }); i >= 0 {
		return m.remotes[i]
	}
	return nil
}

// show announces the mirror and its publications to the participants of the room.
func (m *mirror) show(s *span) {
	if m.shown {
		return
	}
	r := s.room
	m.shown = true
	r.present.Add(&m.Presence)
	for _, d := range m.remotes {
		m.add(s, d)
	}
	r.audience.joined(&m.Presence, nil)
	r.announce(&m.Presence, m.Publications)
}

// hide ends the publications of the mirror, and tells the participants of the room that the mirror has left.
func (m *mirror) hide(s *span, reason string) {
	if !m.shown {
		return
	}
	r := s.room
	for _, p := range slices.Clone(m.Publications) {
		m.retract(s, p, false)
	}
	m.shown = false
	r.present.Remove(&m.Presence)
	r.audience.left(&m.Presence, nil, reason)
}

// add creates the tracks of a publication.
func (m *mirror) add(s *span, d *remotePublication) *presence.Publication {
	p := presence.NewPublication(s.room.node.engine, m.Identity, d.Publication, false)
	p.Number, p.Encoded = m.Number, d.encoded
	p.Mute = m.muteOf(d.Name)
	p.Demand.Relay(&s.room.demands.unsettled)
	p.Levels.SetMeasured(d.rates)
	p.Levels.GiveUp(d.unavailable())
	m.Publications = append(m.Publications, p)
	m.PlacePictures()
	m.bind(s, p, d)
	return p
}

// retract ends a publication. If announce is set, the participants of the room receive a message.
func (m *mirror) retract(s *span, p *presence.Publication, announce bool) {
	s.room.recorder.current.Unpublished(s.room.now, p)
	s.room.retract(&m.Presence, p, announce)
	m.unbind(s, m.find(p.Ref.Publication))
}

// unavailable returns the qualities that this node cannot receive, by tile.
func (d *remotePublication) unavailable() []allocate.QualitySet {
	list := make([]allocate.QualitySet, len(d.Tiles))
	for _, sets := range [][]allocate.QualitySet{d.gaveUp, d.masked} {
		for tile, set := range sets {
			list[tile] |= set
		}
	}
	return list
}

// move follows a participant to another home, or back to the home that answers again. Tracks are bound to the trunk of
// another home when that home tells the publication. Until then the trunk to the former home feeds them, if that home
// answers.
func (m *mirror) move(s *span, node string) {
	moved, lost := m.node != node, m.Detached
	if !moved && !lost {
		return
	}
	m.node, m.Detached = node, false
	for _, p := range m.Publications {
		switch d := m.find(p.Ref.Publication); {
		case !moved:
			m.bind(s, p, d)
			s.take(p)
		case lost:
			m.unbind(s, d)
		}
	}
}

// bind tells the trunk to the home the tracks of a publication.
func (m *mirror) bind(s *span, p *presence.Publication, d *remotePublication) {
	d.bound, d.node = true, m.node
	delete(s.ending, m.feed(d))
	s.tell(roomevent.Mirrored{
		Ref: p.Ref, Node: d.node, ID: d.id, Qualities: len(d.Qualities), Tracks: slices.Clone(p.Tracks),
	})
}

// unbind tells the trunks to the home and to former homes to end the feeding of the tracks of a publication.
func (m *mirror) unbind(s *span, d *remotePublication) {
	if d.bound {
		d.bound = false
		s.tell(m.feed(d).unmirrored())
	}
	for f := range s.ending {
		if f.ref.Participant == m.Identity && f.ref.Publication == d.Name {
			delete(s.ending, f)
			s.tell(f.unmirrored())
		}
	}
}

// feed returns the feed of a publication.
func (m *mirror) feed(d *remotePublication) feed {
	return feed{volumetric.PublicationRef{Participant: m.Identity, Publication: d.Name}, d.node, d.id}
}

// update applies the state that the home has told.
func (m *mirror) update(s *span, state roomevent.Participant) {
	attributes, bytes, refused := mergeAttributes("attributes", nil, state.Attributes)
	if refused != nil {
		s.room.log.Warn("attributes of another node are left out", zap.String("participant", m.Identity),
			errorField(refused))
		attributes, bytes = m.Attributes, m.AttributesBytes
	}
	changed := !maps.Equal(m.Attributes, attributes)
	m.state, m.Attributes, m.AttributesBytes = state, attributes, bytes
	if m.Numbered = state.Number != nil; m.Numbered {
		m.Number = *state.Number
	}
	if m.Audience && !state.Audience {
		if m.shown {
			s.room.audience.name(&m.Presence)
		}
		m.Audience = false
	}
	if changed && m.shown {
		s.room.sendAttributes(&m.Presence)
	}
	for _, p := range m.Publications {
		p.Number = m.Number
		if mute := m.muteOf(p.Ref.Publication); p.Mute != mute {
			before := p.Muted()
			p.Mute = mute
			s.room.sendMuted(&m.Presence, p, before)
		}
	}
}

// muteOf returns the muting of a publication as the home has told it.
func (m *mirror) muteOf(name string) signal.MuteState {
	return sessionrecord.MuteOf(m.state.Muted, name)
}

// publish adds a publication. If there is one with the same description, its tracks are bound to the present home, and
// receivers keep their slots.
func (m *mirror) publish(s *span, e roomevent.Published) {
	r := s.room
	added, refused := r.node.config.check(Grants{Publish: true}, nil, []volumetric.Publication{e.Description})
	limit := r.node.config.PublicationsPerParticipant
	if refused == nil && len(m.remotes) >= limit && m.find(e.Description.Name) == nil {
		refused = signal.Errorf(signal.CodeLimit, "the limit is %d publications per participant", limit)
	}
	if refused == nil && e.Ref.Publication != e.Description.Name {
		refused = signal.Errorf(signal.CodeInvalid, "the description has the name %q", e.Description.Name)
	}
	if refused != nil {
		r.log.Warn("a publication of another node is left out", zap.Stringer("publication", e.Ref), errorField(refused))
		return
	}
	if former := m.find(e.Description.Name); former != nil {
		if sameDescription(&former.Publication, &e.Description) {
			m.rebind(s, former, e.ID)
			return
		}
		m.unpublish(s, e.Description.Name)
	}
	if mute := e.Mute; mute.Publication == e.Description.Name {
		same := func(other signal.MuteState) bool { return other.Publication == mute.Publication }
		m.state.Muted = append(slices.DeleteFunc(slices.Clone(m.state.Muted), same), mute)
	}
	d := &remotePublication{checked: added[0], node: m.node, id: e.ID}
	m.remotes = append(m.remotes, d)
	if !m.shown {
		return
	}
	p := m.add(s, d)
	r.participants.share(nil, &signal.Published{Participant: m.Identity, Publication: p.Description})
	r.announce(&m.Presence, []*presence.Publication{p})
}

// complete ends the publications of former homes that the present home has not told.
func (m *mirror) complete(s *span) {
	for _, d := range slices.Clone(m.remotes) {
		if d.former {
			m.unpublish(s, d.Name)
		}
	}
}

// rebind binds the tracks of a publication to the present home, where it has another id. The former home feeds the
// tracks until the publisher sends to the present one. The masks are those of the former trunk.
func (m *mirror) rebind(s *span, d *remotePublication, id uint64) {
	d.former = false
	same := d.id == id && d.node == m.node
	if same && (d.bound || !m.shown) {
		return
	}
	if d.bound && d.node != m.node {
		s.endLater(m.feed(d))
		d.bound = false
	} else {
		m.unbind(s, d)
	}
	d.node, d.id, d.gaveUp, d.masked = m.node, id, nil, nil
	if p := m.Publication(d.Name); p != nil {
		m.bind(s, p, d)
		if m.limit(s.room, d) {
			s.room.scheduler.Changes.Offered++
		}
		s.take(p)
	}
}

// unpublish ends a publication.
func (m *mirror) unpublish(s *span, name string) {
	if p := m.Publication(name); p != nil {
		m.retract(s, p, true)
	}
	m.remotes = slices.DeleteFunc(m.remotes, func(d *remotePublication) bool { return d.Name == name })
}

// rated stores the rates that the home has measured.
func (m *mirror) rated(r *Room, e roomevent.Rates) {
	d := m.find(e.Ref.Publication)
	if d == nil || d.id != e.ID || len(e.Rates) != d.TrackCount() {
		return
	}
	d.rates = e.Rates
	if p := m.Publication(e.Ref.Publication); p != nil && p.Levels.SetMeasured(e.Rates) {
		r.scheduler.Changes.Rates++
	}
}

// limit applies the qualities of a publication that this node cannot receive, and reports whether they have changed.
func (m *mirror) limit(r *Room, d *remotePublication) (changed bool) {
	p := m.Publication(d.Name)
	if p == nil || !p.Levels.GiveUp(d.unavailable()) {
		return false
	}
	r.recorder.current.Select(r.now, p)
	return true
}

// pose stores the pose of an object and forwards the pose.
func (m *mirror) pose(r *Room, e roomevent.Posed) {
	p := m.Publication(e.Ref.Publication)
	if p == nil || e.Pose.Validate() != nil || !p.Fits(e.Pose) {
		return
	}
	if p.Place.Take(e.Pose) {
		r.scheduler.Changes.Motion++
	}
	r.forwardPose(p)
}
