package member

import (
	"encoding/json"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/cluster"
	"github.com/volsfu/volsfu/internal/panics"
	"github.com/volsfu/volsfu/internal/sfu/roomevent"
	"github.com/volsfu/volsfu/internal/trunk"
	"github.com/volsfu/volsfu/pkg/signal"
)

// rooms are the rooms of this node: their events are written to the replica and the trunks, and those of other nodes
// are delivered to them. The goroutine of the Member owns the rooms.
type rooms struct {
	*directory
	fabric   Messages
	trunks   Trunks
	payloads *payloads
	receiver Rooms
	guard    *panics.Guard
	log      *zap.Logger
	// entered has the rooms by name. bans are delivered next.
	entered map[string]*room
	bans    []cluster.Banned
	// dropped counts the events of and for rooms that were dropped because too many waited, invalid payloads of other
	// nodes that cannot be decoded.
	dropped, invalid uint64
}

// participants returns the number of participants of this node.
func (s *rooms) participants() (n int) {
	for _, r := range s.entered {
		n += len(r.local)
	}
	return n
}

// write writes an event of a room.
func (s *rooms) write(now time.Time, name string, event roomevent.Event) {
	if _, ok := event.(roomevent.Entered); ok {
		s.enter(now, name)
		return
	}
	r := s.entered[name]
	if r == nil {
		s.operate(now, name, event)
		return
	}
	if s.writeMedia(now, r, event) {
		return
	}
	var err error
	switch e := event.(type) {
	case roomevent.Exited:
		s.exit(now, r)
	case roomevent.Present:
		err = s.writeParticipant(now, r, e.Participant)
	case roomevent.Left:
		s.writeLeft(now, r, e.Identity, e.Session)
		s.sessions.End(e.Session)
	case roomevent.Released:
		s.writeReleased(now, r, e)
	case roomevent.SessionState:
		s.sessions.Set(cluster.SessionRecord{Room: name, Identity: e.Identity, Session: e.Session, Epoch: e.Epoch,
			State: json.RawMessage(e.State)})
	case roomevent.Published:
		err = s.writePublished(now, r, e)
	case roomevent.Unpublished:
		s.replica.Unpublish(now, name, e.Ref.Participant, e.Ref.Publication)
		s.withdraw(r, publication{e.Ref, e.ID})
	case roomevent.Shared:
		err = s.replica.SetRoomState(name, cluster.RoomState{Metadata: e.Metadata, MetadataAt: e.MetadataAt,
			Recording: e.Recording, Ended: e.Ended})
	default:
		s.operate(now, name, event)
	}
	if err != nil {
		s.log.Warn("an event of a room does not reach other nodes", zap.String("room", name), zap.Error(err))
	}
}

// operate writes an event of the operator, who may name a room that this node does not have.
func (s *rooms) operate(now time.Time, room string, event roomevent.Event) {
	switch e := event.(type) {
	case roomevent.Kick:
		s.replica.Kick(now, room, e.Identity, e.TokenID, e.Until)
	case roomevent.Close:
		s.replica.CloseRoom(now, room)
	}
}

// enter begins to share a room. The subscription precedes the request for the state of the others, so that no change is
// between them.
func (s *rooms) enter(now time.Time, name string) {
	s.entered[name] = newRoom(name)
	if err := errors.Join(s.fabric.Subscribe(subjectOfRoom(name)), s.replica.Enter(now, name)); err != nil {
		s.log.Error("a room is not shared with other nodes", zap.String("room", name), zap.Error(err))
	}
}

// exit ends everything of a room. A room that ends by a panic has not published that its participants have left.
func (s *rooms) exit(now time.Time, r *room) {
	for _, l := range r.local {
		s.sessions.End(l.session)
	}
	for p := range r.offered {
		s.withdraw(r, p)
	}
	for p := range r.mirrored {
		s.trunks.Unmirror(p.node, r.name, p.ref, p.id)
	}
	delete(s.entered, r.name)
	s.fabric.Unsubscribe(subjectOfRoom(r.name))
	s.replica.Exit(now, r.name)
}

// writeParticipant writes the state of a participant, and which of its publications are muted.
func (s *rooms) writeParticipant(now time.Time, r *room, p roomevent.Participant) error {
	record := cluster.Participant{Identity: p.Identity, Session: p.Session, Epoch: p.Epoch, Joined: p.Joined,
		Live: p.Live, Attributes: p.Attributes, Permissions: p.Permissions, Number: p.Number, Complete: p.Complete,
		Audience: p.Audience}
	l := r.local[p.Identity]
	switch {
	case l == nil || l.session != p.Session:
		return s.writeJoin(now, r, record)
	case l.refused:
		return nil
	}
	l.epoch = p.Epoch
	return errors.Join(s.replica.Change(now, r.name, record), s.writeMuted(now, r, p))
}

// writeJoin adds a participant. The room removes a participant that an operator at another node has removed meanwhile,
// or whose session has ended at another node.
func (s *rooms) writeJoin(now time.Time, r *room, p cluster.Participant) error {
	err := s.replica.Join(now, r.name, p)
	l := &local{session: p.Session, epoch: p.Epoch}
	switch {
	case errors.Is(err, cluster.ErrKicked):
		l.refused = true
		r.order("", roomevent.Kick{Identity: p.Identity, Session: p.Session})
	case errors.Is(err, cluster.ErrEnded):
		l.refused = true
		r.order("", roomevent.Superseded{Identity: p.Identity, Session: p.Session, Code: signal.CodeReplaced,
			Reason: "the session has ended on another server"})
	case err != nil:
		return err
	}
	r.local[p.Identity] = l
	return nil
}

// writeMuted writes which publications of a participant are muted.
func (s *rooms) writeMuted(now time.Time, r *room, p roomevent.Participant) error {
	states := make(map[string]signal.MuteState, len(p.Muted))
	for _, state := range p.Muted {
		states[state.Publication] = state
	}
	var err error
	for _, publication := range s.replica.Publications(r.name, p.Identity, p.Session) {
		state := states[publication.Description.Name]
		if publication.OwnMuted == state.Own && publication.OperatorMuted == state.Operator {
			continue
		}
		publication.OwnMuted, publication.OperatorMuted = state.Own, state.Operator
		err = errors.Join(err, s.replica.Publish(now, r.name, p.Identity, publication))
	}
	return err
}

// writeLeft removes a participant with its publications.
func (s *rooms) writeLeft(now time.Time, r *room, identity, session string) {
	if l := r.local[identity]; l != nil && l.session == session {
		delete(r.local, identity)
		for p := range r.offered {
			if p.ref.Participant == identity {
				s.withdraw(r, p)
			}
		}
	}
	s.replica.Leave(now, r.name, identity, session)
}

// writeReleased removes a participant that has continued at another node, unless the session has returned.
func (s *rooms) writeReleased(now time.Time, r *room, e roomevent.Released) {
	for _, p := range e.Publications {
		s.withdraw(r, publication{p.Ref, p.ID})
	}
	s.sessions.Release(e.Session, e.Epoch)
	if l := r.local[e.Identity]; l != nil && l.session == e.Session && l.epoch <= e.Epoch {
		s.writeLeft(now, r, e.Identity, e.Session)
	}
}

// writePublished adds a publication. The trunks get a publication only if other nodes learn of it.
func (s *rooms) writePublished(now time.Time, r *room, e roomevent.Published) error {
	if l := r.local[e.Ref.Participant]; l != nil && l.refused {
		return nil
	}
	err := s.replica.Publish(now, r.name, e.Ref.Participant, cluster.Publication{ID: e.ID, Description: e.Description,
		OwnMuted: e.Mute.Own, OperatorMuted: e.Mute.Operator})
	if err != nil {
		return err
	}
	r.offered[publication{e.Ref, e.ID}] = true
	s.trunks.Offer(r.name, e.Ref, e.ID, len(e.Description.Qualities), e.Tracks)
	return nil
}

func (s *rooms) withdraw(r *room, p publication) {
	if r.offered[p] {
		delete(r.offered, p)
		s.trunks.Withdraw(r.name, p.ref, p.id)
	}
}

// writeMedia passes an event of media to the trunks. writeMedia reports whether the event is one of media.
func (s *rooms) writeMedia(now time.Time, r *room, event roomevent.Event) bool {
	switch e := event.(type) {
	case roomevent.Mirrored:
		r.mirrored[mirrored{publication{e.Ref, e.ID}, e.Node}] = true
		s.trunks.Mirror(e.Node, r.name, e.Ref, e.ID, e.Qualities, e.Tracks)
	case roomevent.Unmirrored:
		delete(r.mirrored, mirrored{publication{e.Ref, e.ID}, e.Node})
		s.trunks.Unmirror(e.Node, r.name, e.Ref, e.ID)
	case roomevent.Take:
		s.trunks.Take(e.Node, r.name, e.Ref, e.ID, trunk.Demand{
			Tiles: e.Tiles, Near: e.Near, Parity: e.Parity, Trace: e.Trace,
		})
	case roomevent.Rates:
		s.trunks.SetRates(r.name, e.Ref, e.ID, e.Rates)
	case roomevent.GaveUp:
		s.trunks.SetGaveUp(r.name, e.Ref, e.ID, e.Tiles)
	case roomevent.Posed:
		s.payloads.sendPose(r.name, e)
	case roomevent.Sent:
		s.payloads.sendData(now, r.name, e)
	case roomevent.Operate:
		s.payloads.sendOperate(now, r.name, e)
	default:
		return false
	}
	return true
}
