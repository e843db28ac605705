package sfu

import (
	"encoding/json"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/internal/sfu/peer"
	"github.com/volsfu/volsfu/internal/sfu/presence"
	"github.com/volsfu/volsfu/internal/sfu/roomevent"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Session is one client's place in a room over one websocket. The methods are safe for concurrent use.
type Session struct {
	room        *Room
	participant *participant
	outbox      Outbox
}

// Handle handles a message that was read at the given time. Replies are sent to the outbox. Handle blocks while the
// queue of the room is full.
func (s *Session) Handle(m signal.Message, at time.Time) {
	s.room.post(messageRequest{participant: s.participant, outbox: s.outbox, message: m, at: at})
}

// Choose handles quality choices of another protocol in the same way.
func (s *Session) Choose(c Chooser, at time.Time) {
	s.room.post(chooseRequest{participant: s.participant, outbox: s.outbox, chooser: c, at: at})
}

// Detach reports that the websocket has ended. The participant may resume within the grace time.
func (s *Session) Detach() {
	s.room.post(detachRequest{participant: s.participant, outbox: s.outbox})
}

// messageRequest carries a message of a joined client.
type messageRequest struct {
	participant *participant
	outbox      Outbox
	message     signal.Message
	// at is the time when the message was read from the websocket.
	at time.Time
}

// apply implements request.
func (q messageRequest) apply(r *Room) {
	p := q.participant
	if p.gone || p.outbox != q.outbox {
		return
	}
	// A client that sends a message has read the reply to its join.
	p.former = ""
	id := q.message.Head().ID
	switch m := q.message.(type) {
	case *signal.Publish:
		p.reply(id, q.publish(r, m))
	case *signal.Unpublish:
		p.reply(id, q.unpublish(r, m))
	case *signal.Answer:
		p.connection.Do(peer.Answer{ID: id, Offer: m.Offer, SDP: m.SDP})
	case *signal.Candidate:
		candidate := transport.Candidate{Candidate: m.Candidate, MID: m.MID, LineIndex: m.LineIndex}
		p.connection.Do(peer.AddCandidate{ID: id, Candidate: candidate})
	case *RestartICE:
		p.connection.Do(peer.RestartRemote{ID: id, Ufrag: m.Ufrag, Password: m.Password})
	case *signal.SetQuality:
		p.reply(id, q.choose(r, m))
	case *signal.Acknowledge:
		p.reply(id, q.acknowledge(m))
	case *signal.Viewpoint:
		r.span.looked(p, m)
		viewpoint := r.node.config.viewpoint(m, q.at)
		if p.subscriber.Look(r.now, viewpoint, r.node.config.AllocationInterval) && p.receives() {
			p.decide()
		}
		p.reply(id, nil)
	case *signal.Pose:
		p.reply(id, q.pose(r, m))
	case *signal.Arrange:
		if r.span != nil {
			p.arrangement = m.Objects
		}
		p.subscriber.Arrange(m.Objects)
		p.reply(id, nil)
	case *signal.SetLimits:
		p.limits = m.BitrateLimits
		p.limitBitrate()
		p.reply(id, nil)
	case *signal.Uplink:
		p.reply(id, q.reportUplink(r, m))
	case *signal.Trace:
		p.reply(id, q.requestTimes(r, m))
	case *signal.Data:
		q.data(r, m)
	case *signal.Attributes:
		p.reply(id, q.changeAttributes(r, m))
	case *signal.Metadata:
		p.reply(id, q.changeMetadata(r, m))
	case *signal.Mute:
		p.reply(id, q.mute(r, m))
	case *signal.SetPermissions:
		p.reply(id, q.changePermissions(r, m))
	case *signal.FrameTimes:
		q.forwardTimes(r, m)
		p.reply(id, nil)
	case *signal.Time:
		config := &r.node.config
		p.send(&signal.TimeReply{
			Header: signal.Header{ID: id}, T0: m.T0, T1: config.clock(q.at), T2: config.clock(time.Now()),
		})
	case *signal.Leave:
		// A reply that finds the queue full clears p.outbox.
		outbox := p.outbox
		p.reply(id, nil)
		r.remove(p, "left")
		outbox.Close("", "left")
	case *signal.Join:
		p.reply(id, signal.Errorf(signal.CodeAlreadyJoined, "this connection has already joined"))
	default:
		p.reply(id, signal.Errorf(signal.CodeUnknownType, "a client may not send messages of type %q",
			q.message.Head().Type))
	}
	if changesState(q.message) {
		r.span.stateChanged(p)
	}
}

// chargeChange charges a change of which others are notified, and returns an error if the client makes such changes too
// often.
func (p *participant) chargeChange() *signal.Error {
	if p.publishing.AllowN(p.room.now, 1) {
		return nil
	}
	return signal.Errorf(signal.CodeLimit,
		"the limit of publications, mutings and requests for times of frames together is %g per second and %d at once",
		p.room.node.config.PublishRate, p.publishing.Burst())
}

func (q messageRequest) publish(r *Room, m *signal.Publish) *signal.Error {
	p := q.participant
	if refused := p.chargeChange(); refused != nil {
		return refused
	}
	if former := p.Publication(m.Publication.Name); former != nil && former.Unconfirmed {
		former.Unconfirmed = false
		if sameDescription(&former.Description, &m.Publication) {
			return nil
		}
		r.unpublish(p, former, true)
	}
	if err := r.publish(p, m.Publication); err != nil {
		return err
	}
	added := p.Publication(m.Publication.Name)
	r.participants.share(p, &signal.Published{Participant: p.Identity, Publication: added.Description})
	r.announce(&p.Presence, []*presence.Publication{added})
	r.span.published(added)
	r.participants.askForTimes(r.span)
	p.updateLines()
	return nil
}

func (q messageRequest) unpublish(r *Room, m *signal.Unpublish) *signal.Error {
	p := q.participant
	publication := p.Publication(m.Publication)
	if publication == nil {
		return signal.Errorf(signal.CodeNotFound, "there is no publication %q", m.Publication)
	}
	r.unpublish(p, publication, true)
	p.log.Info("unpublished", zap.String("publication", m.Publication))
	return nil
}

// choose applies all choices of a message or none.
func (q messageRequest) choose(r *Room, m *signal.SetQuality) *signal.Error {
	p := q.participant
	for _, choice := range m.Choices {
		if publication := r.present.Publication(choice.PublicationRef); publication != nil {
			if err := subscriber.CheckChoice(choice, &publication.Description); err != nil {
				return signal.Errorf(signal.CodeNotFound, "%v", err)
			}
		}
	}
	changed, kept := p.subscriber.Choices.SetAllFor(m.Choices, r.present.Has)
	if !kept {
		return signal.Errorf(signal.CodeLimit,
			"the limit is %d stored quality choices of one participant", r.node.config.ChoicesPerParticipant)
	}
	if changed {
		p.refresh(q.at)
	}
	return nil
}

// acknowledge opens slots whose present assignment the client knows. Older generations are ignored, because a newer
// assignment is already sent.
func (q messageRequest) acknowledge(m *signal.Acknowledge) *signal.Error {
	p := q.participant
	opened := false
	defer func() {
		if opened {
			p.refresh(q.at)
		}
	}()
	for _, known := range m.Slots {
		ready, found := p.subscriber.Slots.Acknowledge(known)
		if !found {
			return signal.Errorf(signal.CodeNotFound, "there is no slot %q with generation %d", known.MID,
				known.Generation)
		}
		opened = opened || ready
	}
	return nil
}

// Choosable is a publication whose qualities a client may choose.
type Choosable struct {
	volumetric.PublicationRef
	// Number is the publisher's number.
	Number uint32
	// Tiles is the number of tiles, Highest the highest quality.
	Tiles   int
	Highest volumetric.Quality
}

// Chooser converts a message of another protocol to quality choices. A Chooser is called by the room's goroutine.
type Chooser interface {
	// Choose returns choices for the publications, and warnings, each of which is logged once.
	Choose([]Choosable) (choices []signal.Choice, warnings []string)
}

// chooseRequest carries a Chooser of a client.
type chooseRequest struct {
	participant *participant
	outbox      Outbox
	chooser     Chooser
	at          time.Time
}

// apply implements request.
func (q chooseRequest) apply(r *Room) {
	p := q.participant
	if p.gone || p.outbox != q.outbox {
		return
	}
	choices, warnings := q.chooser.Choose(r.choosable(p))
	for _, warning := range warnings {
		p.warnOnce(warning)
	}
	changed, kept := p.subscriber.Choices.SetAllFor(choices, r.present.Has)
	switch {
	case !kept:
		p.warnOnce("quality choices of the client exceed the limit",
			zap.Int("limit", r.node.config.ChoicesPerParticipant))
	case changed:
		p.refresh(q.at)
	}
}

// changeAttributes changes the attributes of the client, or of another participant if the client is an operator.
func (q messageRequest) changeAttributes(r *Room, m *signal.Attributes) *signal.Error {
	p := q.participant
	target, refused := q.target(r, m.Participant)
	if refused != nil {
		return refused
	}
	if target == nil {
		change := &signal.Attributes{Attributes: m.Attributes}
		return r.span.operate(p, m.Participant, roomevent.Operate{Attributes: change})
	}
	if target == p && !p.grants.Data {
		return signal.Errorf(signal.CodeForbidden, "the participant has no permission to change its attributes (data)")
	}
	return r.setAttributes(p, target, m.Attributes)
}

// setAttributes changes attributes of a participant and tells all participants, at the cost of the requester, nil for
// the operator.
func (r *Room) setAttributes(requester, p *participant, changed map[string]string) *signal.Error {
	merged, bytes, refused := mergeAttributes("attributes", p.Attributes, changed)
	if refused != nil {
		return refused
	}
	if refused := r.checkDescriptions(p.Identity, p.DescribedBytes()-p.AttributesBytes+bytes); refused != nil {
		return refused
	}
	if refused := r.charge(requester, bytes); refused != nil {
		return refused
	}
	p.Attributes, p.AttributesBytes = merged, bytes
	r.sendAttributes(&p.Presence)
	r.span.changed(p)
	return nil
}

// sendAttributes sends all participants the attributes of an announced participant.
func (r *Room) sendAttributes(p *presence.Presence) {
	if p.Audience {
		return
	}
	r.participants.share(nil, &signal.Attributes{Participant: p.Identity, Attributes: p.Attributes})
	r.recorder.current.Changed(r.now, p, &signal.Attributes{Participant: p.Identity, Attributes: p.Attributes})
}

// changeMetadata changes the metadata of the room for a client that is an operator.
func (q messageRequest) changeMetadata(r *Room, m *signal.Metadata) *signal.Error {
	p := q.participant
	if !p.grants.Admin {
		return signal.Errorf(signal.CodeForbidden, "the token does not grant changes to the room's metadata (admin)")
	}
	return r.setMetadata(p, m.Metadata)
}

// setMetadata changes the metadata of the room and tells all participants, at the cost of the requester, nil for the
// operator.
func (r *Room) setMetadata(requester *participant, changed map[string]string) *signal.Error {
	merged, bytes, refused := mergeAttributes("metadata", r.metadata, changed)
	if refused != nil {
		return refused
	}
	if refused := r.charge(requester, bytes); refused != nil {
		return refused
	}
	r.metadata = merged
	// The clocks of nodes differ. The last change wins also after a node with a fast clock.
	r.metadataAt = max(r.now.UnixMicro(), r.metadataAt+1)
	r.participants.share(nil, &signal.Metadata{Metadata: merged})
	r.recorder.current.Metadata(r.now, r.metadata)
	r.span.changedShared()
	return nil
}

// charge charges the bytes of a message to all participants to the budget of the requester.
func (r *Room) charge(requester *participant, bytes int) *signal.Error {
	if requester == nil {
		return nil
	}
	return r.announces(requester.bearer, admission.AnnounceOverhead+bytes)
}

// mergeAttributes returns the changed map and its length as JSON, in bytes.
func mergeAttributes(what string, present, changed map[string]string) (map[string]string, int, *signal.Error) {
	merged, err := signal.MergeAttributes(what, present, changed)
	if err != nil {
		return nil, 0, signal.Errorf(signal.CodeInvalid, "%v", err)
	}
	text, err := json.Marshal(merged)
	if err != nil {
		return nil, 0, signal.Errorf(signal.CodeInvalid, "%v", err)
	}
	return merged, len(text), nil
}

// mute mutes a publication of the client, or of another participant if the client is an operator.
func (q messageRequest) mute(r *Room, m *signal.Mute) *signal.Error {
	p := q.participant
	target, refused := q.target(r, m.Participant)
	if refused != nil {
		return refused
	}
	if refused := p.chargeChange(); refused != nil {
		return refused
	}
	if target == nil {
		change := &signal.Mute{Publication: m.Publication, Muted: m.Muted}
		return r.span.operate(p, m.Participant, roomevent.Operate{Mute: change})
	}
	return r.mute(target, m.Publication, m.Muted, target != p)
}

// target returns the participant that a request is about: the client itself if the name is empty, nil for a participant
// whose home is another node. Other participants need the grant admin.
func (q messageRequest) target(r *Room, name string) (*participant, *signal.Error) {
	p := q.participant
	if name == "" || name == p.Identity {
		return p, nil
	}
	if !p.grants.Admin {
		return nil, signal.Errorf(signal.CodeForbidden,
			"the token does not grant changes to other participants (admin)")
	}
	if target := r.participants[name]; target != nil || r.present.Get(name) != nil {
		return target, nil
	}
	return nil, signal.Errorf(signal.CodeNotFound, "there is no participant %q in the room", name)
}

// mute sets whether the publisher, or an operator, has muted a publication, and tells all participants. The publisher
// cannot end the muting of an operator. The slots of a muted publication are free for others.
func (r *Room) mute(p *participant, name string, muted, byOperator bool) *signal.Error {
	found := p.Publication(name)
	if found == nil {
		return signal.Errorf(signal.CodeNotFound, "there is no publication %q of %q", name, p.Identity)
	}
	before, state := found.Muted(), found.Mute
	if byOperator {
		state.Operator = muted
	} else {
		state.Own = muted
	}
	if state == found.Mute {
		return nil
	}
	found.Mute = state
	r.sendMuted(&p.Presence, found, before)
	r.span.changed(p)
	p.log.Info("muting changed", zap.String("publication", name), zap.Bool("own", state.Own),
		zap.Bool("operator", state.Operator))
	return nil
}

// sendMuted sends all participants the muting of a publication. before is set if the publication was muted before.
func (r *Room) sendMuted(owner *presence.Presence, p *presence.Publication, before bool) {
	r.participants.share(nil, &signal.Muted{Participant: owner.Identity, MuteState: p.Mute})
	r.recorder.current.Changed(r.now, owner, &signal.Muted{Participant: owner.Identity, MuteState: p.Mute})
	switch now := p.Muted(); {
	case now == before:
	case now:
		for _, other := range r.othersThan(owner) {
			other.unsubscribe(p)
		}
	case !p.Silent:
		r.announce(owner, []*presence.Publication{p})
	}
}

// changePermissions changes the permissions of a participant for a client that is an operator.
func (q messageRequest) changePermissions(r *Room, m *signal.SetPermissions) *signal.Error {
	p := q.participant
	if !p.grants.Admin {
		return signal.Errorf(signal.CodeForbidden, "the token does not grant changes of permissions (admin)")
	}
	target, refused := q.target(r, m.Participant)
	if refused != nil {
		return refused
	}
	if target == nil {
		change := &signal.SetPermissions{Publish: m.Publish, Subscribe: m.Subscribe, Data: m.Data}
		return r.span.operate(p, m.Participant, roomevent.Operate{Permissions: change})
	}
	r.setPermissions(target, m)
	return nil
}

// setPermissions changes the permissions of a participant for the rest of its session. Publications and slots without
// permission end.
func (r *Room) setPermissions(p *participant, changed *signal.SetPermissions) {
	set := &p.permissions
	for _, permission := range []struct{ to, from **bool }{
		{&set.Publish, &changed.Publish}, {&set.Subscribe, &changed.Subscribe}, {&set.Data, &changed.Data},
	} {
		if *permission.from != nil {
			*permission.to = *permission.from
		}
	}
	before := p.grants
	grants := p.granted.with(p.permissions)
	if grants == before {
		return
	}
	regranted := r.regrant(p, grants, false)
	regranted.reason = "an operator has withdrawn the permission"
	regranted.send(p)
	p.send(&signal.PermissionsChanged{Permissions: grants.permissions()})
	switch {
	case regranted.receiveRevoked:
		p.repeatSlots()
	case regranted.receives:
		p.subscribe(r.present.PublishedByOthers(&p.Presence))
	}
	p.updateLines()
	r.span.changed(p)
	p.log.Info("permissions changed", zap.Bool("publish", grants.Publish), zap.Bool("subscribe", grants.Subscribe),
		zap.Bool("data", grants.Data))
}

// with returns the grants of a token with the permissions that an operator has set.
func (g Grants) with(set signal.SetPermissions) Grants {
	for _, permission := range []struct {
		grant *bool
		set   *bool
	}{{&g.Publish, set.Publish}, {&g.Subscribe, set.Subscribe}, {&g.Data, set.Data}} {
		if permission.set != nil {
			*permission.grant = *permission.set
		}
	}
	return g
}

// permissions returns the permissions for the client.
func (g Grants) permissions() signal.Permissions {
	return signal.Permissions{Publish: g.Publish, Subscribe: g.Subscribe, Data: g.Data}
}
