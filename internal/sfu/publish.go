package sfu

import (
	"encoding/json"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/internal/sfu/demand"
	"github.com/volsfu/volsfu/internal/sfu/presence"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/switching"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/webhook"
)

// muteBytes is the length of signal.MuteState as JSON without the name, in bytes.
const muteBytes = 50

// checked is a description that passed the checks that need no room.
type checked struct {
	volumetric.Publication
	// encoded is the length of the description as JSON, in bytes.
	encoded int
}

// check checks new publications of a participant in addition to its present publications. check needs no room and is
// safe for concurrent use.
func (c *Config) check(
	grants Grants, present []*presence.Publication, added []volumetric.Publication,
) ([]checked, *signal.Error) {
	list := make([]checked, 0, len(added))
	own := presence.DescribedBytes(present)
	for i, description := range added {
		name := description.Name
		exists := slices.ContainsFunc(present, func(p *presence.Publication) bool {
			return p.Description.Name == name
		}) || slices.ContainsFunc(added[:i], func(p volumetric.Publication) bool { return p.Name == name })
		switch {
		case !grants.Publish:
			return nil, signal.Errorf(signal.CodeForbidden, "the participant has no permission to publish")
		case exists:
			return nil, signal.Errorf(signal.CodeExists, "publication %q already exists", description.Name)
		case len(present)+i >= c.PublicationsPerParticipant:
			return nil, signal.Errorf(signal.CodeLimit,
				"the limit is %d publications per participant (rooms.publications_per_participant)",
				c.PublicationsPerParticipant)
		}
		if err := description.Validate(); err != nil {
			return nil, signal.Errorf(signal.CodeInvalid, "%v", err)
		}
		if n := description.TrackCount(); n > c.TracksPerPublication {
			return nil, signal.Errorf(signal.CodeLimit,
				"publication %q has %d tracks, the limit is %d (rooms.tracks_per_publication)", description.Name, n,
				c.TracksPerPublication)
		}
		text, err := json.Marshal(&description)
		if err != nil {
			return nil, signal.Errorf(signal.CodeInvalid, "%v", err)
		}
		// The reply to a join has the name of a muted publication once more.
		encoded := len(text) + len(name) + muteBytes
		if own += encoded; own > c.DescriptionBytes/descriptionShare {
			return nil, signal.Errorf(signal.CodeLimit,
				"the descriptions of this participant's publications would have %d bytes, the limit is %d",
				own, c.DescriptionBytes/descriptionShare)
		}
		list = append(list, checked{description, encoded})
	}
	return list, nil
}

// checkRoom returns an error if a participant would have too many publications for the room, or if the descriptions of
// all publications would no longer fit in the reply to a join. If p replaces a participant with the same identity, the
// publications of the replaced participant are not counted.
func (r *Room) checkRoom(p *participant, added []checked) *signal.Error {
	if len(added) == 0 {
		return nil
	}
	if refused := r.settings.CheckPublications(len(p.Publications) + len(added)); refused != nil {
		return refused
	}
	return r.checkDescriptions(p.Identity, p.DescribedBytes()+encodedBytes(added))
}

// publish checks and adds a publication. Others receive no message before announce.
func (r *Room) publish(p *participant, description volumetric.Publication) *signal.Error {
	added, refused := r.node.config.check(p.grants, p.Publications, []volumetric.Publication{description})
	if refused == nil {
		refused = r.checkRoom(p, added)
	}
	if refused == nil {
		refused = r.announces(p.bearer, encodedBytes(added))
	}
	if refused != nil {
		return refused
	}
	r.add(p, added[0])
	return nil
}

// add adds a checked publication.
func (r *Room) add(p *participant, description checked) {
	if description.VR2Gather {
		r.present.AssignNumber(&p.Presence)
	}
	converted := p.profile.Converted
	publication := presence.NewPublication(r.node.engine, p.Identity, description.Publication, converted)
	publication.Number, publication.Silent, publication.Encoded = p.Number, converted, description.encoded
	if p.epoch > 0 && !p.complete {
		// Other nodes have the frames up to the first one here, which is the first one that they take from this node.
		for _, t := range publication.Tracks {
			t.TakeOver()
		}
	}
	p.suppress(publication)
	p.Publications = append(p.Publications, publication)
	p.PlacePictures()
	p.attachData(publication)
	r.census.Store(r.participants.census())
	r.wakeBy(r.now.Add(unwatchedInterval))
	p.log.Info("published", zap.String("publication", description.Name),
		zap.String("codec", description.Codec.MIMEType),
		zap.Int("tiles", len(description.Tiles)), zap.Int("qualities", len(description.Qualities)))
	r.emitPublication(p, publication, webhook.Published)
}

// encodedBytes returns the length of the descriptions of new publications as JSON, in bytes.
func encodedBytes(added []checked) (sum int) {
	for _, c := range added {
		sum += c.encoded
	}
	return sum
}

// announce requests slots of the others for publications that have been announced.
func (r *Room) announce(p *presence.Presence, publications []*presence.Publication) {
	for _, other := range r.othersThan(p) {
		other.subscribe(publications)
	}
	r.recorder.current.Published(r.now, publications)
}

// unpublish ends a publication. announce is false if the owner leaves; then the others receive no message about the
// publication.
func (r *Room) unpublish(p *participant, publication *presence.Publication, announce bool) {
	r.recorder.current.Unpublished(r.now, publication)
	if p.carriesByData(publication) {
		p.connection.DetachData(publication.Publication)
	}
	for _, track := range publication.Tracks {
		p.connection.Ingress.Unbind(track)
	}
	r.emitPublication(p, publication, webhook.Unpublished)
	r.retract(&p.Presence, publication, announce)
	r.census.Store(r.participants.census())
	if announce {
		p.updateLines()
		r.span.unpublished(publication)
	}
}

// retract closes the tracks of a publication and ends its slots. If announce is set, the others receive a message.
func (r *Room) retract(owner *presence.Presence, publication *presence.Publication, announce bool) {
	successors := r.successors(owner, publication)
	owner.Publications = slices.DeleteFunc(owner.Publications, func(other *presence.Publication) bool {
		return other == publication
	})
	owner.PlacePictures()
	publication.Close()
	r.demands.end(publication.Demand)
	for _, other := range r.othersThan(owner) {
		other.unsubscribe(publication)
		if announce {
			other.send(&signal.Unpublished{PublicationRef: publication.Ref})
		}
	}
	if announce {
		succeed(owner, successors, publication.Description.Kind)
	}
}

// announces charges the bytes of messages to the others to the budget of a bearer. announces returns an error if the
// budget has less. An empty room costs nothing.
func (r *Room) announces(b admission.Bearer, bytes int) *signal.Error {
	if len(r.participants) == 0 {
		return nil
	}
	return r.announcements.Take(b, bytes, r.now)
}

// readable returns the publications that the participant can receive. The others are counted and logged once.
func (p *participant) readable(publications []*presence.Publication) []*presence.Publication {
	if p.profile.Withheld == nil && p.profile.Wants == nil && !p.takesChunks {
		return publications
	}
	var readable []*presence.Publication
	for _, publication := range publications {
		if p.watched != "" && publication.Ref.Participant != p.watched {
			continue
		}
		reason := p.withheld(publication)
		switch {
		case reason == "":
			readable = append(readable, publication)
			continue
		case p.watched != "":
			// The client has asked for what it can receive.
			continue
		}
		p.room.node.withheld.Add(1)
		p.warnOnce("publication withheld from a "+p.profile.Name+" peer: "+reason,
			zap.Stringer("publication", publication.Ref))
	}
	return readable
}

// withheld returns the reason why the participant cannot receive a publication, empty if it can.
func (p *participant) withheld(publication *presence.Publication) string {
	description := &publication.Description
	switch {
	case p.takesChunks && switching.NeedsKey(description.Codec.MIMEType):
		return "the client receives over data channels, and frames of " + description.Codec.MIMEType +
			" are decoded on media lines only"
	case !p.profile.wants(publication):
		return "the client asks for other publications"
	case p.profile.Withheld == nil:
		return ""
	}
	reason := p.profile.Withheld(description)
	if reason == "" && p.profile.OnePerKind && p.room.second(p.profile, publication) {
		return p.profile.Name + " can receive only one publication of this kind from each publisher"
	}
	return reason
}

// beginningInterval is the interval at which the room checks converted publications for a first frame.
const beginningInterval = 50 * time.Millisecond

// announceBegun announces a converted publication when its first frame, which names its codec, has arrived. Users
// without a point cloud or a microphone publish streams that never start.
func (r *Room) announceBegun(owner *participant, p *presence.Publication) {
	for _, track := range p.Tracks {
		codec, ok := track.FrameCodec()
		if !ok {
			continue
		}
		p.Silent = false
		if codec != (volumetric.FourCC{}) {
			p.Description.Codec.Format = "codec=" + printable(codec)
		}
		owner.log.Info("converted publication has begun", zap.String("publication", p.Ref.Publication),
			zap.String("codec", printable(codec)))
		r.emitPublication(owner, p, webhook.Published)
		r.participants.broadcast(owner, func() signal.Message {
			return &signal.Published{Participant: owner.Identity, Publication: p.Description}
		})
		r.announce(&owner.Presence, []*presence.Publication{p})
		r.span.published(p)
		return
	}
	r.wakeBy(r.now.Add(beginningInterval))
}

// printable returns a codec's name and replaces each character that is neither letter nor digit by a dot. The name
// comes from the network and is sent to others.
func printable(codec volumetric.FourCC) string {
	text := codec[:]
	for i, c := range text {
		if c < '0' || c > '9' && c < 'A' || c > 'Z' && c < 'a' || c > 'z' {
			codec[i] = '.'
		}
	}
	return string(text)
}

// succeed subscribes participants to the next publication of a kind after the owner's first publication has ended. The
// clients can receive only one publication of a kind.
func succeed(owner *presence.Presence, successors []*participant, kind volumetric.Kind) {
	for _, other := range successors {
		if next := other.profile.first(owner.Publications, kind); next >= 0 {
			other.subscribe(presence.Announced(owner.Publications[next : next+1]))
		}
	}
}

// demands are the demand for the publications of a room. The room's goroutine owns them.
type demands struct {
	room *Room
	// unsettled has the publications whose demand may have changed.
	unsettled demand.Queue
}

// settle sends publishers the changes of the demand. settle runs after every request, so that a suppressed quality is
// requested as soon as a receiver needs the quality.
func (s *demands) settle() {
	r := s.room
	if s.unsettled.Len() == 0 {
		return
	}
	told := make(map[*participant][]signal.WantedPublication)
	s.unsettled.Each(func(d *demand.Publication) {
		p := r.present.Publication(d.Ref)
		if p == nil || p.Demand != d {
			return
		}
		changed := d.Step(r.now)
		for _, track := range d.Resumed() {
			p.Tracks[track].Expect()
		}
		for _, track := range d.Dismissed() {
			p.Tracks[track].Pause()
		}
		if d.Relayed() {
			if d.SettleParity(r.now) || changed {
				r.span.take(p)
			}
			return
		}
		if changed {
			s.account(d)
			r.node.metrics.TracksPaused(d.CountPaused(p.Levels.Rate))
		}
		if d.SettleParity(r.now) || changed {
			owner := r.participants[d.Ref.Participant]
			told[owner] = append(told[owner], d.Message())
		}
		if due := d.Due(); !due.IsZero() {
			r.wakeBy(due)
		}
	})
	for owner, publications := range told {
		owner.send(&signal.Wanted{Publications: publications})
	}
}

// account adds the bits that a publisher did not send to the metrics.
func (s *demands) account(d *demand.Publication) {
	r := s.room
	if !d.Suppressible() {
		return
	}
	if bits := d.Account(r.now); bits > 0 {
		r.node.metrics.Suppressed(bits)
	}
	if d.Saves() {
		r.wakeBy(r.now.Add(demand.AccountInterval))
	}
}

// end ends the accounting of a publication that ends.
func (s *demands) end(d *demand.Publication) {
	s.account(d)
	s.room.node.metrics.TracksPaused(d.EndPausing())
}

// update performs the steps that are due in the demand for a publication.
func (s *demands) update(d *demand.Publication) {
	r := s.room
	if !d.Suppressible() {
		return
	}
	switch due := d.Due(); {
	case due.IsZero():
	case r.now.Before(due):
		r.wakeBy(due)
	default:
		d.Changed()
	}
	if d.Saves() {
		if due := d.AccountDue(); r.now.Before(due) {
			r.wakeBy(due)
		} else {
			s.account(d)
		}
	}
}

// sendWanted repeats the wanted tracks of suppressible publications to a publisher that has resumed.
func (p *participant) sendWanted() {
	var all []signal.WantedPublication
	for _, publication := range p.Publications {
		if publication.Demand.Suppressible() {
			all = append(all, publication.Demand.Message())
		}
	}
	if len(all) > 0 {
		p.send(&signal.Wanted{Publications: all})
	}
}

// reportUplink stores the qualities that a publisher's uplink cannot carry. Tracks of ended publications are ignored.
func (q messageRequest) reportUplink(r *Room, m *signal.Uplink) *signal.Error {
	p := q.participant
	for _, track := range m.GaveUp {
		publication := p.Publication(track.Publication)
		if publication == nil {
			continue
		}
		if d := &publication.Description; track.Tile >= len(d.Tiles) || track.Quality > d.Highest() {
			return signal.Errorf(signal.CodeNotFound, "publication %q has no tile %d of quality %d", track.Publication,
				track.Tile, track.Quality)
		}
	}
	changed := false
	for _, publication := range p.Publications {
		gaveUp := make([]allocate.QualitySet, len(publication.Description.Tiles))
		for _, track := range m.GaveUp {
			if track.Publication == publication.Ref.Publication {
				gaveUp[track.Tile] |= allocate.Qualities(track.Quality)
			}
		}
		if publication.Levels.GiveUp(gaveUp) {
			changed = true
			r.recorder.current.Select(r.now, publication)
			r.span.gaveUp(publication)
		}
	}
	if changed {
		r.wakeBy(r.scheduler.OffersChanged(r.now, p.offers))
	}
	return nil
}
