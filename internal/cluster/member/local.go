package member

import (
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/cluster"
	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// perform writes what the rooms of this node have told to the replica.
func (m *Member) perform(now time.Time) {
	m.mu.Lock()
	told, draining := m.told, m.draining
	m.told = nil
	m.mu.Unlock()
	for _, t := range told {
		m.write(now, t.room, t.event)
	}
	m.replica.SetStatus(now, cluster.Status{Draining: draining, Rooms: len(m.entered), Participants: len(m.sessions)})
}

// write writes an event of a room to the replica.
func (m *Member) write(now time.Time, room string, event sfu.Event) {
	if m.carry(room, event) {
		return
	}
	var err error
	switch e := event.(type) {
	case sfu.Entered:
		m.entered[room] = make(map[volumetric.PublicationRef]uint64)
		// The subscription precedes the request for the state of the others, so that no change is between them.
		err = errors.Join(m.fabric.Subscribe(subjectOfRoom(room)), m.replica.Enter(now, room))
	case sfu.Exited:
		delete(m.entered, room)
		delete(m.backlog, room)
		m.fabric.Unsubscribe(subjectOfRoom(room))
		m.replica.Exit(now, room)
	case sfu.Present:
		err = m.writePresence(now, room, e.Presence)
	case sfu.Left:
		if at := (place{room, e.Identity}); m.sessions[at] == e.Session {
			delete(m.sessions, at)
		}
		m.replica.Leave(now, room, e.Identity, e.Session)
	case sfu.Published:
		err = m.replica.Publish(now, room, e.Ref.Participant,
			cluster.Publication{ID: e.ID, Description: e.Description})
		m.trunks.Offer(room, e.Ref, e.ID, len(e.Description.Qualities), e.Tracks)
	case sfu.Unpublished:
		m.replica.Unpublish(now, room, e.Ref.Participant, e.Ref.Publication)
		m.trunks.Withdraw(room, e.Ref, e.ID)
	case sfu.Kick:
		m.replica.Kick(now, room, e.Identity, e.Until)
	case sfu.Close:
		m.replica.CloseRoom(now, room)
	}
	if err != nil {
		m.log.Warn("other nodes do not learn of an event", zap.String("room", room), zap.Error(err))
	}
}

// writePresence writes the state of a participant, and which of its publications are muted.
func (m *Member) writePresence(now time.Time, room string, p sfu.Presence) error {
	record := cluster.Participant{Identity: p.Identity, Session: p.Session, Epoch: p.Epoch, Joined: p.Joined,
		Live: p.Live, Attributes: p.Attributes, Permissions: p.Permissions, Number: p.Number}
	at := place{room, p.Identity}
	if m.sessions[at] != p.Session {
		if err := m.replica.Join(now, room, record); err != nil {
			return err
		}
		m.sessions[at] = p.Session
		return nil
	}
	return errors.Join(m.replica.Change(now, room, record), m.writeMuted(now, room, p))
}

// writeMuted writes which publications of a participant are muted.
func (m *Member) writeMuted(now time.Time, room string, p sfu.Presence) error {
	claim, found := m.replica.Winner(room, p.Identity)
	if !found || claim.Home.Node != m.self.Name {
		return nil
	}
	states := make(map[string]signal.MuteState, len(p.Muted))
	for _, state := range p.Muted {
		states[state.Publication] = state
	}
	var err error
	for _, publication := range claim.Publications {
		state := states[publication.Description.Name]
		if publication.OwnMuted == state.Own && publication.OperatorMuted == state.Operator {
			continue
		}
		publication.OwnMuted, publication.OperatorMuted = state.Own, state.Operator
		err = errors.Join(err, m.replica.Publish(now, room, p.Identity, publication))
	}
	return err
}
