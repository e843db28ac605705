package member

import (
	"time"

	"github.com/volsfu/volsfu/internal/cluster"
	"github.com/volsfu/volsfu/internal/sfu/roomevent"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// changed notes that the claim of an identity may differ from what a room knows.
func (s *rooms) changed(room, identity, reason string) {
	if r := s.entered[room]; r != nil {
		r.change(identity, reason)
	}
}

// order adds an event for a room that is passed in its order.
func (s *rooms) order(room, node string, e roomevent.Event) {
	if r := s.entered[room]; r != nil {
		r.order(node, e)
	}
}

// apply applies an event that concerns a room. apply reports false for other events.
func (s *rooms) apply(event cluster.Event) bool {
	switch e := event.(type) {
	case cluster.ParticipantJoined:
		s.changed(e.Room, e.Claim.Participant.Identity, "")
	case cluster.ParticipantMoved:
		s.changed(e.Room, e.Claim.Participant.Identity, "")
	case cluster.ParticipantChanged:
		s.changed(e.Room, e.Claim.Participant.Identity, "")
	case cluster.ParticipantBack:
		s.changed(e.Room, e.Claim.Participant.Identity, "")
	case cluster.ParticipantDetached:
		s.changed(e.Room, e.Claim.Participant.Identity, "")
	case cluster.ParticipantLeft:
		s.changed(e.Room, e.Identity, string(e.Reason))
	case cluster.PublicationAdded:
		s.changed(e.Room, e.Ref.Participant, "")
	case cluster.PublicationChanged:
		s.changed(e.Room, e.Ref.Participant, "")
	case cluster.PublicationRemoved:
		s.changed(e.Room, e.Ref.Participant, "")
	case cluster.RoomChanged:
		if r := s.entered[e.Room]; r != nil {
			r.state(e.Home.Node, volumetric.PublicationRef{}, roomevent.Shared{Metadata: e.State.Metadata,
				MetadataAt: e.State.MetadataAt, Recording: e.State.Recording, Ended: e.State.Ended})
		}
	case cluster.Superseded:
		reason := "another participant has the identity"
		if e.Moved {
			reason = "the session has continued on another server"
		}
		s.order(e.Room, e.By.Node, roomevent.Superseded{Identity: e.Identity, Session: e.Session, Moved: e.Moved,
			Code: e.Code, Reason: reason})
		s.changed(e.Room, e.Identity, "")
	case cluster.Kicked:
		s.order(e.Room, "", roomevent.Kick{Identity: e.Identity, Session: e.Session})
	case cluster.Banned:
		s.bans = append(s.bans, e)
	case cluster.RoomClosed:
		s.order(e.Room, "", roomevent.Close{Before: e.At})
	default:
		return false
	}
	return true
}

// receivePayload passes a payload of another node to its room.
func (s *rooms) receivePayload(now time.Time, node string, data []byte) {
	p, err := decodePayload(data)
	if err != nil {
		s.invalid++
		return
	}
	r := s.entered[p.Room]
	if r == nil {
		return
	}
	kept := true
	switch {
	case p.Pose != nil:
		kept = r.pose(node, roomevent.Posed{Ref: p.Ref, Pose: p.Pose})
	case p.Data != nil:
		kept = r.receive(now, node, roomevent.Sent{From: p.From, Data: p.Data})
	case len(r.orders) < roomData:
		r.order(node, *p.Operate)
	default:
		kept = false
	}
	if !kept {
		s.dropped++
	}
}

// pass adds a state of a publication for a room.
func (s *rooms) pass(room, node string, ref volumetric.PublicationRef, e roomevent.Event) {
	if r := s.entered[room]; r != nil && !r.state(node, ref, e) {
		s.dropped++
	}
}

// relayed passes the times of frames in other nodes to a room.
func (s *rooms) relayed(room, node string, e roomevent.Relayed) {
	if r := s.entered[room]; r != nil && !r.relayed(node, e) {
		s.dropped++
	}
}

// exited ends the demand of a node in all rooms.
func (s *rooms) exited(node string) {
	for _, r := range s.entered {
		r.exited(node)
	}
}

// deliver passes to the rooms what waits for them. deliver is called without the mutex of the state, since rooms may
// wait for a goroutine that reads the state.
func (s *rooms) deliver(now time.Time) (waiting bool) {
	for _, b := range s.bans {
		// A ban holds in rooms that this node does not have, too.
		s.receiver.Remote(b.Room, "", roomevent.Kick{Identity: b.Identity, TokenID: b.TokenID, Until: b.Until})
	}
	s.bans = nil
	for _, r := range s.entered {
		if !r.waiting() {
			continue
		}
		s.guard.Try(Place, func() {
			r.deliver(now, func(node string, e roomevent.Event) bool { return s.receiver.Remote(r.name, node, e) },
				func(identity string) (cluster.Claim, bool) {
					claim, found := s.replica.Winner(r.name, identity)
					return claim, found && claim.Home.Node != s.node
				})
		})
		waiting = waiting || r.waiting()
	}
	return waiting
}
