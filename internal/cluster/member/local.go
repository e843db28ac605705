package member

import (
	"encoding/json"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/cluster"
	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/pkg/signal"
)

// perform writes what the rooms of this node have told to the replica and the trunks.
func (m *Member) perform(now time.Time) {
	m.mu.Lock()
	told, draining, shares := m.told, m.draining, m.shares
	m.told, m.shares = nil, nil
	clear(m.latest)
	m.mu.Unlock()
	for _, t := range told {
		if t.event != nil {
			m.write(now, t.room, t.event)
		}
	}
	for _, s := range shares {
		if sending, ok := m.sessions.Share(s.session, s.node); ok {
			m.replica.SendSession(sending.Nodes, sending.Record)
		}
	}
	participants := 0
	for _, r := range m.entered {
		participants += len(r.local)
	}
	status := cluster.Status{Draining: draining, Rooms: len(m.entered), Participants: participants}
	m.load.measure(now, m.processorTime())
	status.Load, status.JoinLoad = m.load.total(len(m.entered), participants)
	m.replica.SetStatus(now, status)
	m.status = status
}

// write writes an event of a room.
func (m *Member) write(now time.Time, name string, event sfu.Event) {
	if _, ok := event.(sfu.Entered); ok {
		m.enter(now, name)
		return
	}
	r := m.entered[name]
	if r == nil {
		m.operate(now, name, event)
		return
	}
	if m.writeMedia(now, r, event) {
		return
	}
	var err error
	switch e := event.(type) {
	case sfu.Exited:
		m.exit(now, r)
	case sfu.Present:
		err = m.writePresence(now, r, e.Presence)
	case sfu.Left:
		m.writeLeft(now, r, e.Identity, e.Session)
		m.sessions.End(e.Session)
	case sfu.Released:
		m.writeReleased(now, r, e)
	case sfu.SessionState:
		m.sessions.Set(cluster.SessionRecord{Room: name, Identity: e.Identity, Session: e.Session, Epoch: e.Epoch,
			State: json.RawMessage(e.State)})
	case sfu.Published:
		err = m.writePublished(now, r, e)
	case sfu.Unpublished:
		m.replica.Unpublish(now, name, e.Ref.Participant, e.Ref.Publication)
		m.withdraw(r, publication{e.Ref, e.ID})
	case sfu.Shared:
		err = m.replica.SetRoomState(name, cluster.RoomState{Metadata: e.Metadata, MetadataAt: e.MetadataAt,
			Recording: e.Recording, Ended: e.Ended})
	default:
		m.operate(now, name, event)
	}
	if err != nil {
		m.log.Warn("other nodes are not told of an event of a room", zap.String("room", name), zap.Error(err))
	}
}

// operate writes an event of the operator, who may name a room that this node does not have.
func (m *Member) operate(now time.Time, room string, event sfu.Event) {
	switch e := event.(type) {
	case sfu.Kick:
		m.replica.Kick(now, room, e.Identity, e.TokenID, e.Until)
	case sfu.Close:
		m.replica.CloseRoom(now, room)
	}
}

// enter begins to share a room. The subscription precedes the request for the state of the others, so that no change is
// between them.
func (m *Member) enter(now time.Time, name string) {
	m.entered[name] = newRoom(name)
	if err := errors.Join(m.fabric.Subscribe(subjectOfRoom(name)), m.replica.Enter(now, name)); err != nil {
		m.log.Error("a room is not shared with other nodes", zap.String("room", name), zap.Error(err))
	}
}

// exit ends everything of a room. A room that ends by a panic has not told that its participants have left.
func (m *Member) exit(now time.Time, r *room) {
	for _, l := range r.local {
		m.sessions.End(l.session)
	}
	for p := range r.offered {
		m.withdraw(r, p)
	}
	for p := range r.mirrored {
		m.trunks.Unmirror(p.node, r.name, p.ref, p.id)
	}
	delete(m.entered, r.name)
	m.fabric.Unsubscribe(subjectOfRoom(r.name))
	m.replica.Exit(now, r.name)
}

// writePresence writes the state of a participant, and which of its publications are muted.
func (m *Member) writePresence(now time.Time, r *room, p sfu.Presence) error {
	record := cluster.Participant{Identity: p.Identity, Session: p.Session, Epoch: p.Epoch, Joined: p.Joined,
		Live: p.Live, Attributes: p.Attributes, Permissions: p.Permissions, Number: p.Number, Complete: p.Complete,
		Audience: p.Audience}
	l := r.local[p.Identity]
	switch {
	case l == nil || l.session != p.Session:
		return m.writeJoin(now, r, record)
	case l.refused:
		return nil
	}
	l.epoch = p.Epoch
	return errors.Join(m.replica.Change(now, r.name, record), m.writeMuted(now, r, p))
}

// writeJoin adds a participant. The room removes a participant that an operator at another node has removed meanwhile,
// or whose session has ended at another node.
func (m *Member) writeJoin(now time.Time, r *room, p cluster.Participant) error {
	err := m.replica.Join(now, r.name, p)
	l := &local{session: p.Session, epoch: p.Epoch}
	switch {
	case errors.Is(err, cluster.ErrKicked):
		l.refused = true
		r.order("", sfu.Kick{Identity: p.Identity, Session: p.Session})
	case errors.Is(err, cluster.ErrEnded):
		l.refused = true
		r.order("", sfu.Superseded{Identity: p.Identity, Session: p.Session, Code: signal.CodeReplaced,
			Reason: "the session has ended on another server"})
	case err != nil:
		return err
	}
	r.local[p.Identity] = l
	return nil
}

// writeMuted writes which publications of a participant are muted.
func (m *Member) writeMuted(now time.Time, r *room, p sfu.Presence) error {
	states := make(map[string]signal.MuteState, len(p.Muted))
	for _, state := range p.Muted {
		states[state.Publication] = state
	}
	var err error
	for _, publication := range m.replica.Publications(r.name, p.Identity, p.Session) {
		state := states[publication.Description.Name]
		if publication.OwnMuted == state.Own && publication.OperatorMuted == state.Operator {
			continue
		}
		publication.OwnMuted, publication.OperatorMuted = state.Own, state.Operator
		err = errors.Join(err, m.replica.Publish(now, r.name, p.Identity, publication))
	}
	return err
}

// writeLeft removes a participant with its publications.
func (m *Member) writeLeft(now time.Time, r *room, identity, session string) {
	if l := r.local[identity]; l != nil && l.session == session {
		delete(r.local, identity)
		for p := range r.offered {
			if p.ref.Participant == identity {
				m.withdraw(r, p)
			}
		}
	}
	m.replica.Leave(now, r.name, identity, session)
}

// writeReleased removes a participant that has continued at another node, unless the session has returned.
func (m *Member) writeReleased(now time.Time, r *room, e sfu.Released) {
	for _, p := range e.Publications {
		m.withdraw(r, publication{p.Ref, p.ID})
	}
	m.sessions.Release(e.Session, e.Epoch)
	if l := r.local[e.Identity]; l != nil && l.session == e.Session && l.epoch <= e.Epoch {
		m.writeLeft(now, r, e.Identity, e.Session)
	}
}

// writePublished adds a publication. The trunks get a publication only if other nodes learn of it.
func (m *Member) writePublished(now time.Time, r *room, e sfu.Published) error {
	if l := r.local[e.Ref.Participant]; l != nil && l.refused {
		return nil
	}
	err := m.replica.Publish(now, r.name, e.Ref.Participant, cluster.Publication{ID: e.ID, Description: e.Description,
		OwnMuted: e.Mute.Own, OperatorMuted: e.Mute.Operator})
	if err != nil {
		return err
	}
	r.offered[publication{e.Ref, e.ID}] = true
	m.trunks.Offer(r.name, e.Ref, e.ID, len(e.Description.Qualities), e.Tracks)
	return nil
}

func (m *Member) withdraw(r *room, p publication) {
	if r.offered[p] {
		delete(r.offered, p)
		m.trunks.Withdraw(r.name, p.ref, p.id)
	}
}

// writeMedia passes an event of media to the trunks. writeMedia reports whether the event is one of media.
func (m *Member) writeMedia(now time.Time, r *room, event sfu.Event) bool {
	switch e := event.(type) {
	case sfu.Mirrored:
		r.mirrored[mirrored{publication{e.Ref, e.ID}, e.Node}] = true
		m.trunks.Mirror(e.Node, r.name, e.Ref, e.ID, e.Qualities, e.Tracks)
	case sfu.Unmirrored:
		delete(r.mirrored, mirrored{publication{e.Ref, e.ID}, e.Node})
		m.trunks.Unmirror(e.Node, r.name, e.Ref, e.ID)
	case sfu.Take:
		m.trunks.Take(e.Node, r.name, e.Ref, e.ID, e.Tiles, e.Near, e.Parity)
	case sfu.Rates:
		m.trunks.SetRates(r.name, e.Ref, e.ID, e.Rates)
	case sfu.GaveUp:
		m.trunks.SetGaveUp(r.name, e.Ref, e.ID, e.Tiles)
	case sfu.Posed:
		m.sendPose(r.name, e)
	case sfu.Sent:
		m.sendData(now, r.name, e)
	case sfu.Operate:
		m.sendOperate(now, r.name, e)
	default:
		return false
	}
	return true
}
