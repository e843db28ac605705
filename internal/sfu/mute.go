package sfu

import (
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu/presence"
	"github.com/volsfu/volsfu/pkg/signal"
)

// mute mutes a publication of the client, or of another participant if the client is an operator.
func (q messageRequest) mute(r *Room, m *signal.Mute) *signal.Error {
	p := q.participant
	target, refused := q.target(r, m.Participant)
	if refused != nil {
		return refused
	}
	if !p.publishing.AllowN(r.now, 1) {
		return refuse(signal.CodeLimit, "the limit is %g publications and mutings per second (rooms.publish_rate)",
			r.node.config.PublishRate)
	}
	if target == nil {
		change := &signal.Mute{Publication: m.Publication, Muted: m.Muted}
		return r.span.operate(p, m.Participant, Operate{Mute: change})
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
		return nil, refuse(signal.CodeForbidden, "the token does not grant changes to other participants (admin)")
	}
	if target := r.participants[name]; target != nil || r.Get(name) != nil {
		return target, nil
	}
	return nil, refuse(signal.CodeNotFound, "there is no participant %q in the room", name)
}

// mute sets whether the publisher, or an operator, has muted a publication, and tells all participants. The publisher
// cannot end the muting of an operator. The slots of a muted publication are free for others.
func (r *Room) mute(p *participant, name string, muted, byOperator bool) *signal.Error {
	found := p.Publication(name)
	if found == nil {
		return refuse(signal.CodeNotFound, "there is no publication %q of %q", name, p.Identity)
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
