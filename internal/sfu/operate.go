package sfu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/internal/sfu/directory"
	"github.com/volsfu/volsfu/internal/sfu/roomevent"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrNotFound reports that there is no such room, or no participant with the name in the room.
var ErrNotFound = errors.New("not found")

// removeRequest removes one participant, or all participants if the identity is empty. Whether a participant was found
// is sent to result.
type removeRequest struct {
	identity string
	// session and before restrict the participants to a session, if it is not empty, and to joins before a time, if it
	// is not zero.
	session string
	before  time.Time
	code    signal.Code
	reason  string
	// until is the time until which the participant's token is banned from the room, zero for no ban.
	until  time.Time
	result chan<- bool
}

// The reasons of removals by an operator.
const (
	kickedReason = "removed by an operator"
	closedReason = "an operator closed the room"
)

// apply implements request. Other nodes remove their participants themselves.
func (q removeRequest) apply(r *Room) { q.result <- q.remove(r) || r.span.shown(q.identity) != nil }

// remove removes the local participants that the request names, and reports whether there was one.
func (q removeRequest) remove(r *Room) bool {
	found := false
	for _, p := range r.participants.others(nil) {
		if q.names(p) {
			found = true
			if !q.until.IsZero() {
				q.banToken(r, p)
			}
			r.expel(p, q.code, q.reason)
		}
	}
	return found
}

// banToken bans the token of a participant that is removed, on all nodes.
func (q removeRequest) banToken(r *Room, p *participant) {
	if p.token.ID == "" {
		return
	}
	ban := admission.Ban{Room: r.name, Identity: p.Identity, TokenID: p.token.ID, Until: q.until}
	if err := r.node.exclusions.Ban(ban, r.now); err != nil {
		p.log.Warn("the token of a removed participant could not be banned from the room", errorField(err))
	}
	r.span.tell(roomevent.Kick{Identity: p.Identity, Session: p.Session, TokenID: p.token.ID, Until: q.until})
}

// names reports whether a request names a participant.
func (q *removeRequest) names(p *participant) bool {
	return (q.identity == "" || p.Identity == q.identity) && (q.session == "" || p.Session == q.session) &&
		(q.before.IsZero() || p.joined.Before(q.before))
}

// CloseRoom removes all participants from a room, and ends a room of the API. The error wraps ErrNotFound if the room
// does not exist.
func (n *Node) CloseRoom(ctx context.Context, room string) error {
	n.tell(room, roomevent.Close{})
	switch exists, ended := n.rooms.Release(room); {
	case !exists:
		return fmt.Errorf("%w: room %q", ErrNotFound, room)
	case ended:
		return nil
	}
	return n.removeFrom(ctx, room, removeRequest{code: signal.CodeClosed, reason: closedReason})
}

func (n *Node) removeFrom(ctx context.Context, name string, q removeRequest) error {
	room, exists := n.rooms.Room(name)
	if !exists {
		return fmt.Errorf("%w: room %q", ErrNotFound, name)
	}
	result := make(chan bool, 1)
	q.result = result
	room.post(q)
	found, answered := await(ctx, room, result)
	if found {
		return nil
	}
	if err := ctx.Err(); err != nil && !answered {
		return err
	}
	if q.identity == "" {
		return fmt.Errorf("%w: room %q", ErrNotFound, name)
	}
	return fmt.Errorf("%w: %q in room %q", ErrNotFound, q.identity, name)
}

// Bans returns the bans in force.
func (n *Node) Bans() []admission.Ban { return n.exclusions.Bans(time.Now()) }

// Unban ends a ban. The error wraps ErrNotFound if there is none.
func (n *Node) Unban(room, identity string) error {
	if !n.exclusions.Unban(room, identity, time.Now()) {
		return fmt.Errorf("%w: a ban of %q in room %q", ErrNotFound, identity, room)
	}
	return nil
}

// Revoke revokes a token by its id and ends the sessions of the token with the code revoked. When the server knows the
// expiry of the token, the revocation lasts until then; otherwise it lasts for the given time, or for
// admission.DefaultRevocation if the time is 0. The error wraps admission.ErrExclusion or admission.ErrFull.
func (n *Node) Revoke(id string, lasts time.Duration) error {
	if err := admission.CheckRevocation(id, lasts); err != nil {
		return err
	}
	if lasts == 0 {
		lasts = admission.DefaultRevocation
	}
	now := time.Now()
	if err := n.exclusions.Revoke(id, now.Add(lasts), now); err != nil {
		return err
	}
	// A join that has not seen the revocation is already in its room's channel, before this request.
	n.toAll(revokedRequest{id})
	return nil
}

// Revoked reports whether a token is revoked.
func (n *Node) Revoked(t admission.Token) bool { return n.exclusions.Revoked(t, time.Now()) }

// Revocations returns the revocations in force.
func (n *Node) Revocations() []admission.Revocation { return n.exclusions.Revocations(time.Now()) }

// Restore ends the revocation of a token. The error wraps ErrNotFound if the token is not revoked.
func (n *Node) Restore(id string) error {
	if !n.exclusions.Restore(id, time.Now()) {
		return fmt.Errorf("%w: a revocation of token %q", ErrNotFound, id)
	}
	return nil
}

// revokedRequest removes the participants whose token was revoked.
type revokedRequest struct{ id string }

// apply implements request.
func (q revokedRequest) apply(r *Room) {
	for _, p := range r.participants.others(nil) {
		if p.token.ID == q.id && r.node.exclusions.Revoked(p.token, r.now) {
			p.log.Info("the participant's token was revoked", zap.String("token_id", q.id))
			r.expel(p, signal.CodeRevoked, "an operator revoked the token")
		}
	}
}

// Kick removes a participant from a room; the client does not return by itself. If ban is greater than 0, the identity
// and the participant's token are excluded from the room for that time, even if the participant is not present. The
// error wraps ErrNotFound if there is no such participant and no ban, or admission.ErrExclusion or admission.ErrFull.
func (n *Node) Kick(ctx context.Context, room, identity string, ban time.Duration) error {
	if identity == "" {
		return fmt.Errorf("%w: a participant without a name", ErrNotFound)
	}
	q := removeRequest{identity: identity, code: signal.CodeKicked, reason: kickedReason}
	if ban != 0 {
		if err := admission.CheckBan(room, identity, ban); err != nil {
			return err
		}
		now := time.Now()
		q.until = now.Add(ban)
		err := n.exclusions.Ban(admission.Ban{Room: room, Identity: identity, Until: q.until}, now)
		if err != nil {
			return err
		}
	}
	// The room looks for the participant before the other nodes are told. After the home has removed the participant,
	// the room does not find the participant.
	err := n.removeFrom(ctx, room, q)
	n.tell(room, roomevent.Kick{Identity: identity, Until: q.until})
	if ban != 0 && errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
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
			return asError(r.span.operate(nil, identity, remote))
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
	return n.operate(ctx, room, func(r *Room) error { return asError(r.setMetadata(nil, metadata)) })
}

// SetAttributes changes the attributes of a participant, as SetMetadata changes metadata.
func (n *Node) SetAttributes(ctx context.Context, room, identity string, attributes map[string]string) error {
	remote := roomevent.Operate{Attributes: &signal.Attributes{Attributes: attributes}}
	return n.operateOn(ctx, room, identity, remote, func(r *Room, p *participant) *signal.Error {
		return r.setAttributes(nil, p, attributes)
	})
}

// Mute mutes a publication of a participant, or ends this. The publisher cannot end the muting of an operator. The
// error wraps ErrNotFound.
func (n *Node) Mute(ctx context.Context, room, identity, publication string, muted bool) error {
	remote := roomevent.Operate{Mute: &signal.Mute{Publication: publication, Muted: muted}}
	return n.operateOn(ctx, room, identity, remote, func(r *Room, p *participant) *signal.Error {
		return r.mute(p, publication, muted, true)
	})
}

// SetPermissions changes the permissions of a participant that are not nil, for the rest of its session. The error
// wraps ErrNotFound.
func (n *Node) SetPermissions(
	ctx context.Context, room, identity string, permissions signal.SetPermissions,
) error {
	remote := roomevent.Operate{Permissions: &permissions}
	return n.operateOn(ctx, room, identity, remote, func(r *Room, p *participant) *signal.Error {
		r.setPermissions(p, &permissions)
		return nil
	})
}

// operate passes the change of a mirrored participant to its home. The error names what the room knows to be wrong.
// Whether the home makes the change is not known. requester is nil for the operator.
func (s *span) operate(requester *participant, identity string, e roomevent.Operate) *signal.Error {
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
			refused = s.room.checkDescriptions(identity, m.DescribedBytes()-m.AttributesBytes+bytes)
		}
		if refused == nil {
			refused = s.room.charge(requester, bytes)
		}
		if refused != nil {
			return refused
		}
	}
	e.Node, e.Identity = m.node, identity
	s.tell(e)
	return nil
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

// limitBitrate bounds the rate of a receiver by its own limits and those of the room.
func (p *participant) limitBitrate() {
	node := p.room.node
	p.subscriber.SetLimits(p.room.settings.Within(p.limits), node.config.ClaimedMin, node.engine.StartRate())
}
