package cluster

import (
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Event is a change of the state that others than the Replica must act on.
type Event interface{ event() }

// Events of nodes.
type (
	// NodeAppeared reports the first beat of an incarnation.
	NodeAppeared struct{ Node Node }
	// NodeChanged reports a changed description, or that the node drains or has ended draining.
	NodeChanged struct{ Node Node }
	// NodeSuspected reports that beats are missing, NodeTrusted that the suspected node beats.
	NodeSuspected struct{ Home Home }
	NodeTrusted   struct{ Home Home }
	// NodeDead reports the death of a node. Its participants are detached by events of their own. NodeReturned reports
	// that a dead node is alive under the same incarnation.
	NodeDead     struct{ Home Home }
	NodeReturned struct{ Home Home }
	// NodeLeft reports that a node has stopped, or that it was dead for so long that it is forgotten.
	NodeLeft struct{ Home Home }
	// NodeRefused reports a node that this one cannot share rooms with, once per incarnation.
	NodeRefused struct {
		Home   Home
		Reason string
	}
	// FabricLost reports that all beats are missing, FabricReturned that a node beats again.
	FabricLost     struct{}
	FabricReturned struct{}
)

// LeftReason is the reason for which a remote participant has left.
type LeftReason string

// The reasons.
const (
	// LeftItself: the home has removed the participant.
	LeftItself LeftReason = "left"
	// LeftLost: the home was dead for the resume grace.
	LeftLost LeftReason = "lost"
	// LeftReplaced: another session has the identity.
	LeftReplaced LeftReason = "replaced"
	// LeftKicked and LeftClosed: an operator has removed the participant or ended the room.
	LeftKicked LeftReason = "kicked"
	LeftClosed LeftReason = "closed"
)

// Events of remote participants and publications in rooms of this node.
type (
	// ParticipantJoined reports a participant with its publications.
	ParticipantJoined struct {
		Room  string
		Claim Claim
	}
	// ParticipantChanged reports a changed record, except for publications.
	ParticipantChanged struct {
		Room  string
		Claim Claim
	}
	// ParticipantDetached reports that the home is dead, ParticipantBack that the home has returned.
	ParticipantDetached struct {
		Room  string
		Claim Claim
	}
	ParticipantBack struct {
		Room  string
		Claim Claim
	}
	// ParticipantMoved reports that another node has adopted the session. Publications keep their identity by name.
	ParticipantMoved struct {
		Room  string
		From  Home
		Claim Claim
	}
	// ParticipantLeft reports that a remote participant is gone.
	ParticipantLeft struct {
		Room     string
		Home     Home
		Identity string
		Session  string
		Reason   LeftReason
	}
	// PublicationAdded reports a publication of a participant that has joined before.
	PublicationAdded struct {
		Room        string
		Home        Home
		Ref         volumetric.PublicationRef
		Publication Publication
	}
	// PublicationChanged reports a changed description or muting.
	PublicationChanged struct {
		Room        string
		Home        Home
		Ref         volumetric.PublicationRef
		Publication Publication
	}
	// PublicationRemoved reports the end of a publication.
	PublicationRemoved struct {
		Room string
		Home Home
		Ref  volumetric.PublicationRef
	}
	// RoomChanged reports another node's part of the state of a room. State is zero if the node has left the room or is
	// dead.
	RoomChanged struct {
		Room  string
		Home  Home
		State RoomState
	}
)

// SessionReceived reports the record of a session whose home is another node.
type SessionReceived struct {
	Home   Home
	Record SessionRecord
}

// Events of participants of this node. The user closes the participants and calls Leave.
type (
	// Superseded reports that another claim has the identity. It precedes the events of the winner. Code is
	// signal.CodeReplaced or signal.CodeIdentityTaken. By is empty if the session has ended at another node. Moved is
	// set if another node has adopted the session: ParticipantJoined with the same session follows.
	Superseded struct {
		Room, Identity, Session string
		Code                    signal.Code
		By                      Home
		Moved                   bool
	}
	// Kicked reports that a participant was removed by an operator at any node.
	Kicked struct{ Room, Identity, Session string }
	// Banned reports a kick at another node that excludes the identity from the room until a time, and a token unless
	// TokenID is empty.
	Banned struct {
		Room, Identity, TokenID string
		Until                   time.Time
	}
	// RoomClosed reports that an operator at any node has ended the room at a time: all participants that joined before
	// are to be closed. RoomClosed precedes Kicked for each of them.
	RoomClosed struct {
		Room string
		At   time.Time
	}
)

func (NodeAppeared) event()        {}
func (NodeChanged) event()         {}
func (NodeSuspected) event()       {}
func (NodeTrusted) event()         {}
func (NodeDead) event()            {}
func (NodeReturned) event()        {}
func (NodeLeft) event()            {}
func (NodeRefused) event()         {}
func (FabricLost) event()          {}
func (FabricReturned) event()      {}
func (ParticipantJoined) event()   {}
func (ParticipantChanged) event()  {}
func (ParticipantDetached) event() {}
func (ParticipantBack) event()     {}
func (ParticipantMoved) event()    {}
func (ParticipantLeft) event()     {}
func (PublicationAdded) event()    {}
func (PublicationChanged) event()  {}
func (PublicationRemoved) event()  {}
func (RoomChanged) event()         {}
func (SessionReceived) event()     {}
func (Superseded) event()          {}
func (Kicked) event()              {}
func (Banned) event()              {}
func (RoomClosed) event()          {}
