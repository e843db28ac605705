package sfu

import (
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/pkg/signal"
)

// changePermissions changes the permissions of a participant for a client that is an operator.
func (q messageRequest) changePermissions(r *Room, m *signal.SetPermissions) *signal.Error {
	p := q.participant
	if !p.grants.Admin {
		return refuse(signal.CodeForbidden, "the token does not grant changes of permissions (admin)")
	}
	target, refused := q.target(r, m.Participant)
	if refused != nil {
		return refused
	}
	if target == nil {
		change := &signal.SetPermissions{Publish: m.Publish, Subscribe: m.Subscribe, Data: m.Data}
		return r.span.operate(p, m.Participant, Operate{Permissions: change})
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
		p.subscribe(r.PublishedByOthers(&p.Presence))
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
