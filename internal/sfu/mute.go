package sfu

import (
	"slices"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/pkg/signal"
)

// muted reports whether a publication is not forwarded.
func (p *publication) muted() bool { return p.mute.Own || p.mute.Operator }

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
	if name == "" || name == p.identity {
		return p, nil
	}
	if !p.grants.Admin {
		return nil, refuse(signal.CodeForbidden, "the token does not grant changes to other participants (admin)")
	}
	if target := r.participants[name]; target != nil || r.span.shown(name) != nil {
		return target, nil
	}
	return nil, refuse(signal.CodeNotFound, "there is no participant %q in the room", name)
}

// mute sets whether the publisher, or an operator, has muted a publication, and tells all participants. The publisher
// cannot end the muting of an operator. The slots of a muted publication are free for others.
func (r *Room) mute(p *participant, name string, muted, byOperator bool) *signal.Error {
	found := p.publication(name)
	if found == nil {
		return refuse(signal.CodeNotFound, "there is no publication %q of %q", name, p.identity)
	}
	before, state := found.muted(), found.mute
	if byOperator {
		state.Operator = muted
	} else {
		state.Own = muted
	}
	if state == found.mute {
		return nil
	}
	found.mute = state
	r.sendMuted(&p.presence, found, before)
	r.span.changed(p)
	p.log.Info("muting changed", zap.String("publication", name), zap.Bool("own", state.Own),
		zap.Bool("operator", state.Operator))
	return nil
}

// sendMuted sends all participants the muting of a publication. before is set if the publication was muted before.
func (r *Room) sendMuted(owner *presence, p *publication, before bool) {
	r.participants.share(nil, &signal.Muted{Participant: owner.identity, MuteState: p.mute})
	r.recorder.current.changed(r.now, owner, &signal.Muted{Participant: owner.identity, MuteState: p.mute})
	switch now := p.muted(); {
	case now == before:
	case now:
		for _, other := range r.othersThan(owner) {
			other.unsubscribe(p)
		}
	case !p.silent:
		r.announce(owner, []*publication{p})
	}
}

// audible returns the publications that are not muted.
func audible(publications []*publication) []*publication {
	return slices.DeleteFunc(slices.Clone(publications), (*publication).muted)
}
