package sfu

import (
	"context"
	"encoding/json"
	"fmt"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/internal/sfu/directory"
	"github.com/volsfu/volsfu/internal/sfu/presence"
	"github.com/volsfu/volsfu/internal/sfu/roomevent"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// change changes the attributes, the muting or the permissions of a participant, or the metadata of a room.
// Participants change themselves, and operators change everything. The room's goroutine makes changes.
type change struct {
	room *Room
	// requester is the participant that asks for the change, and is charged for the messages to all others. requester
	// is nil for the operator of the server.
	requester *participant
}

// request makes the change that a message of the requester asks for.
func (c change) request(m signal.Message) *signal.Error {
	switch m := m.(type) {
	case *signal.Attributes:
		return c.requestAttributes(m)
	case *signal.Metadata:
		return c.requestMetadata(m)
	case *signal.Mute:
		return c.requestMute(m)
	case *signal.SetPermissions:
		return c.requestPermissions(m)
	}
	panic("sfu: a message of another type as a change")
}

// target returns the participant that a request is about: the requester if the name is empty, nil for a participant
// whose home is another node. Other participants need the grant admin.
func (c change) target(name string) (*participant, *signal.Error) {
	p, r := c.requester, c.room
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

// forward passes the change of a mirrored participant to its home. The error names what the room knows to be wrong.
// Whether the home makes the change is not known.
func (c change) forward(identity string, e roomevent.Operate) *signal.Error {
	s := c.room.span
	m := s.mirrors[identity]
	if m.Detached {
		return noAnswer(identity)
	}
	switch {
	case e.Mute != nil && m.Publication(e.Mute.Publication) == nil:
		return signal.Errorf(signal.CodeNotFound, "there is no publication %q of %q", e.Mute.Publication, identity)
	case e.Attributes != nil:
		_, bytes, refused := mergeAttributes("attributes", m.Attributes, e.Attributes.Attributes)
		if refused == nil {
			refused = c.room.checkDescriptions(identity, m.DescribedBytes()-m.AttributesBytes+bytes)
		}
		if refused == nil {
			refused = c.charge(bytes)
		}
		if refused != nil {
			return refused
		}
	}
	e.Node, e.Identity = m.node, identity
	s.tell(e)
	return nil
}

// charge charges the bytes of a message to all participants to the budget of the requester.
func (c change) charge(bytes int) *signal.Error {
	if c.requester == nil {
		return nil
	}
	return c.room.announces(c.requester.bearer, admission.AnnounceOverhead+bytes)
}

func (c change) requestAttributes(m *signal.Attributes) *signal.Error {
	target, refused := c.target(m.Participant)
	if refused != nil {
		return refused
	}
	if target == nil {
		return c.forward(m.Participant, roomevent.Operate{Attributes: &signal.Attributes{Attributes: m.Attributes}})
	}
	if target == c.requester && !target.grants.Data {
		return signal.Errorf(signal.CodeForbidden, "the participant has no permission to change its attributes (data)")
	}
	return c.attributes(target, m.Attributes)
}

// attributes changes attributes of a participant and tells all participants.
func (c change) attributes(p *participant, changed map[string]string) *signal.Error {
	r := c.room
	merged, bytes, refused := mergeAttributes("attributes", p.Attributes, changed)
	if refused != nil {
		return refused
	}
	if refused := r.checkDescriptions(p.Identity, p.DescribedBytes()-p.AttributesBytes+bytes); refused != nil {
		return refused
	}
	if refused := c.charge(bytes); refused != nil {
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

// requestMetadata changes the metadata of the room for a requester that is an operator.
func (c change) requestMetadata(m *signal.Metadata) *signal.Error {
	if !c.requester.grants.Admin {
		return signal.Errorf(signal.CodeForbidden, "the token does not grant changes to the room's metadata (admin)")
	}
	return c.metadata(m.Metadata)
}

// metadata changes the metadata of the room and tells all participants.
func (c change) metadata(changed map[string]string) *signal.Error {
	r := c.room
	merged, bytes, refused := mergeAttributes("metadata", r.metadata, changed)
	if refused != nil {
		return refused
	}
	if refused := c.charge(bytes); refused != nil {
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

func (c change) requestMute(m *signal.Mute) *signal.Error {
	target, refused := c.target(m.Participant)
	if refused != nil {
		return refused
	}
	if refused := c.requester.chargeChange(); refused != nil {
		return refused
	}
	if target == nil {
		mute := &signal.Mute{Publication: m.Publication, Muted: m.Muted}
		return c.forward(m.Participant, roomevent.Operate{Mute: mute})
	}
	return c.mute(target, m.Publication, m.Muted)
}

// mute sets whether the publisher, or an operator, has muted a publication, and tells all participants. The publisher
// cannot end the muting of an operator. The slots of a muted publication are free for others.
func (c change) mute(p *participant, name string, muted bool) *signal.Error {
	r := c.room
	found := p.Publication(name)
	if found == nil {
		return signal.Errorf(signal.CodeNotFound, "there is no publication %q of %q", name, p.Identity)
	}
	before, state := found.Muted(), found.Mute
	if p == c.requester {
		state.Own = muted
	} else {
		state.Operator = muted
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

// requestPermissions changes the permissions of a participant for a requester that is an operator.
func (c change) requestPermissions(m *signal.SetPermissions) *signal.Error {
	if !c.requester.grants.Admin {
		return signal.Errorf(signal.CodeForbidden, "the token does not grant changes of permissions (admin)")
	}
	target, refused := c.target(m.Participant)
	if refused != nil {
		return refused
	}
	if target == nil {
		permissions := &signal.SetPermissions{Publish: m.Publish, Subscribe: m.Subscribe, Data: m.Data}
		return c.forward(m.Participant, roomevent.Operate{Permissions: permissions})
	}
	c.permissions(target, m)
	return nil
}

// permissions changes the permissions of a participant for the rest of its session. Publications and slots without
// permission end.
func (c change) permissions(p *participant, changed *signal.SetPermissions) {
	r := c.room
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

// operation carries a change of a room by an operator. The error is sent to result.
type operation struct {
	do     func(*Room) error
	result chan<- error
}

// apply implements request.
func (q operation) apply(r *Room) { q.result <- q.do(r) }

// operate changes a room. The error of the change is returned.
func (n *Node) operate(ctx context.Context, name string, do func(*Room) error) error {
	room, exists := n.rooms.Room(name)
	if !exists {
		return fmt.Errorf("%w: room %q", ErrNotFound, name)
	}
	result := make(chan error, 1)
	room.post(operation{do, result})
	err, answered := await(ctx, room, result)
	if answered {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return fmt.Errorf("%w: room %q", ErrNotFound, name)
}

// operateOn changes a participant of a room. The home of a participant of another node receives remote. Whether the
// home makes the change is not known.
func (n *Node) operateOn(
	ctx context.Context, name, identity string, remote roomevent.Operate, do func(*Room, *participant) *signal.Error,
) error {
	return n.operate(ctx, name, func(r *Room) error {
		p := r.participants[identity]
		switch {
		case p != nil:
			return asError(do(r, p))
		case r.span.shown(identity) != nil:
			return asError(change{room: r}.forward(identity, remote))
		}
		return fmt.Errorf("%w: %q in room %q", ErrNotFound, identity, name)
	})
}

// asError returns a refusal as an error. A refusal with the code not_found wraps ErrNotFound.
func asError(refused *signal.Error) error {
	switch {
	case refused == nil:
		return nil
	case refused.Code == signal.CodeNotFound:
		return fmt.Errorf("%w: %s", ErrNotFound, refused.Message)
	}
	return refused
}

// SendData sends a reliable data message in the name of the operator: to all participants, or to those that m.To names.
// The error wraps ErrNotFound if the room or a recipient does not exist, or is a *signal.Error. The other recipients
// receive the message.
func (n *Node) SendData(ctx context.Context, room string, m signal.Data) error {
	m.Lossy = false
	if err := m.Validate(); err != nil {
		return err
	}
	return n.operate(ctx, room, func(r *Room) error {
		recipients, missing := r.recipients(nil, m.To)
		if refused := r.deliver("", recipients, &m); refused != nil {
			return asError(refused)
		}
		return asError(missing)
	})
}

// SetMetadata changes the metadata of a room. Entries that are not named stay, and an entry with an empty value is
// deleted. The error wraps ErrNotFound, or is a *signal.Error.
func (n *Node) SetMetadata(ctx context.Context, room string, metadata map[string]string) error {
	return n.operate(ctx, room, func(r *Room) error { return asError(change{room: r}.metadata(metadata)) })
}

// SetAttributes changes the attributes of a participant, as SetMetadata changes metadata.
func (n *Node) SetAttributes(ctx context.Context, room, identity string, attributes map[string]string) error {
	remote := roomevent.Operate{Attributes: &signal.Attributes{Attributes: attributes}}
	return n.operateOn(ctx, room, identity, remote, func(r *Room, p *participant) *signal.Error {
		return change{room: r}.attributes(p, attributes)
	})
}

// Mute mutes a publication of a participant, or ends this. The publisher cannot end the muting of an operator. The
// error wraps ErrNotFound.
func (n *Node) Mute(ctx context.Context, room, identity, publication string, muted bool) error {
	remote := roomevent.Operate{Mute: &signal.Mute{Publication: publication, Muted: muted}}
	return n.operateOn(ctx, room, identity, remote, func(r *Room, p *participant) *signal.Error {
		return change{room: r}.mute(p, publication, muted)
	})
}

// SetPermissions changes the permissions of a participant that are not nil, for the rest of its session. The error
// wraps ErrNotFound.
func (n *Node) SetPermissions(
	ctx context.Context, room, identity string, permissions signal.SetPermissions,
) error {
	remote := roomevent.Operate{Permissions: &permissions}
	return n.operateOn(ctx, room, identity, remote, func(r *Room, p *participant) *signal.Error {
		change{room: r}.permissions(p, &permissions)
		return nil
	})
}

// SetRoom creates a room that lasts until it has been empty for a time, or replaces the settings of a present room.
// If onlyNew is set, a present room is an error that wraps directory.ErrExists. Other errors wrap
// admission.ErrSettings or directory.ErrRooms.
// Participants who are present beyond a new limit stay.
func (n *Node) SetRoom(
	ctx context.Context, name string, settings admission.RoomSettings, onlyNew bool,
) (created bool, err error) {
	if err := volumetric.ValidateName("room", name); err != nil {
		return false, fmt.Errorf("%w: %w", admission.ErrSettings, err)
	}
	if settings, err = settings.Check(); err != nil {
		return false, err
	}
	room, created, err := n.rooms.Hold(name, settings, onlyNew)
	if created || err != nil {
		return created, err
	}
	result := make(chan struct{}, 1)
	room.post(settingsRequest{settings, result})
	if _, answered := await(ctx, room, result); !answered {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		return false, fmt.Errorf("%w: the room %q has just ended", directory.ErrRooms, name)
	}
	return false, nil
}

// settingsRequest replaces the settings of a room.
type settingsRequest struct {
	settings admission.RoomSettings
	result   chan<- struct{}
}

// apply implements request.
func (q settingsRequest) apply(r *Room) {
	r.settings = &q.settings
	for _, p := range r.participants {
		p.limitBitrate()
	}
	q.result <- struct{}{}
}
