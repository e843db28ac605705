package sfu

import (
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Cluster receives the events of the rooms of this node for the same rooms on other nodes.
type Cluster interface {
	// Tell queues an event of a room. The events of one room come in their order. Tell is called by the goroutines of
	// rooms and with the mutex of the node: Tell must neither wait nor call the node.
	Tell(room string, e Event)
}

// Event is an event of a room that concerns other nodes. A node tells the events of its own participants to its
// Cluster, and receives the events of other nodes by Node.Remote. An event does not change after it was told.
type Event interface {
	// apply applies the event of another node. apply is called by the room's goroutine.
	apply(r *Room, node string)
}

// Presence is the whole state of a participant, except publications.
type Presence struct {
	Identity string
	Session  string
	// Epoch counts the homes of the session, from 0.
	Epoch  uint64
	Joined time.Time
	// Live is set if the websocket of the participant is open.
	Live        bool
	Attributes  map[string]string
	Muted       []signal.MuteState
	Permissions signal.Permissions
	// Number is the participant's number for VR2Gather clients, nil if there is none.
	Number *uint32
}

// The events of a room that concern other nodes.
type (
	// Entered reports that the node has the room. The others tell the rates, the tracks given up and the poses of their
	// publications again.
	Entered struct{}
	// Exited reports that the node no longer has the room. The node then takes nothing.
	Exited struct{}
	// Present has the state of a participant that joins, changes, loses or resumes its websocket, or has moved to this
	// node.
	Present struct{ Presence }
	// Left ends a participant.
	Left struct{ Identity, Session, Reason string }
	// Detached reports that the home of a participant does not answer. The slots of the participant's publications are
	// kept until Present or Left.
	Detached struct{ Identity string }
	// Published adds a publication. ID is unique on its home, and the ID of all events about the publication. Tracks
	// are the tracks on its home, and are not read by other nodes.
	Published struct {
		Ref         volumetric.PublicationRef
		ID          uint64
		Description volumetric.Publication
		Tracks      []*track.Track
	}
	// Unpublished ends a publication.
	Unpublished struct {
		Ref volumetric.PublicationRef
		ID  uint64
	}
	// Mirrored reports that this node has tracks for a publication whose home is Node. The trunk to Node binds the
	// tracks, which another trunk may have bound before. Mirrored is for the own node only.
	Mirrored struct {
		Ref    volumetric.PublicationRef
		Node   string
		ID     uint64
		Tracks []*track.Track
	}
	// Unmirrored reports that the tracks of a publication whose home is Node are no longer bound by the trunk to Node.
	// Unmirrored is for the own node only.
	Unmirrored struct {
		Ref  volumetric.PublicationRef
		Node string
		ID   uint64
	}
	// Take is the whole demand of a node for a publication whose home is Node. Tiles has the qualities that receivers
	// take, by tile. Near has the tiles that receivers may want soon, for which no packets are needed. Parity is a
	// share of 0 to 1.
	Take struct {
		Ref    volumetric.PublicationRef
		Node   string
		ID     uint64
		Tiles  []allocate.QualitySet
		Near   []bool
		Parity float64
	}
	// Rates has the measured rates of a publication's tracks, by tile × qualities + quality, 0 for unknown.
	Rates struct {
		Ref   volumetric.PublicationRef
		ID    uint64
		Rates []volumetric.Bitrate
	}
	// GaveUp has the qualities that the publisher's uplink cannot carry, by tile.
	GaveUp struct {
		Ref   volumetric.PublicationRef
		ID    uint64
		Tiles []allocate.QualitySet
	}
	// Masked has the qualities that the trunk from the home cannot carry, by tile. Masked comes from the own trunk.
	Masked struct {
		Ref   volumetric.PublicationRef
		ID    uint64
		Tiles []allocate.QualitySet
	}
	// Posed has the pose of an object, at most 30 per second.
	Posed struct {
		Ref  volumetric.PublicationRef
		Pose *signal.Pose
	}
	// Sent has a data message of a participant, or of the operator if From is empty. Data.To names the recipients, all
	// if it is empty.
	Sent struct {
		From string
		Data *signal.Data
	}
	// Superseded reports that another claim to the identity of a local participant prevails. Code is CodeReplaced or
	// CodeIdentityTaken.
	Superseded struct {
		Identity, Session string
		Code              signal.Code
		Reason            string
	}
	// Kick removes a participant. Until is the end of its ban from the room, zero for no ban.
	Kick struct {
		Identity string
		Until    time.Time
	}
	// Close removes all participants.
	Close struct{}
)

// inboxLimit is the number of events of other nodes that may wait for a room: the participants and publications of a
// full room, several times.
const inboxLimit = 4096

// inbox has the events of other nodes that wait for the room's goroutine. The methods are safe for concurrent use.
type inbox struct {
	mu     sync.Mutex
	events []remoteEvent
	// filled has an entry if there are events.
	filled chan struct{}
}

type remoteEvent struct {
	node  string
	event Event
}

// put adds an event. put reports false if the inbox is full.
func (b *inbox) put(e remoteEvent) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.events) >= inboxLimit {
		return false
	}
	b.events = append(b.events, e)
	select {
	case b.filled <- struct{}{}:
	default:
	}
	return true
}

// take returns all events.
func (b *inbox) take() []remoteEvent {
	b.mu.Lock()
	defer b.mu.Unlock()
	events := b.events
	b.events = nil
	return events
}

// remoteEvents applies the events in the inbox.
type remoteEvents struct{}

// apply implements request.
func (remoteEvents) apply(r *Room) {
	for _, e := range r.span.inbox.take() {
		e.event.apply(r, e.node)
	}
}

// Remote queues an event of another node for the room, if this node has the room. Remote does not wait. Remote reports
// false if too many events wait. The state of the room on the other node must then be told again. The node must have a
// Cluster.
func (n *Node) Remote(room, node string, e Event) bool {
	if k, ok := e.(Kick); ok && !k.Until.IsZero() {
		now := time.Now()
		ban := admission.Ban{Room: room, Identity: k.Identity, Until: k.Until}
		if err := n.exclusions.Ban(ban, now); err != nil {
			n.log.Warn("the ban of another node is not in force on this node", errorField(err))
		}
	}
	r := n.room(room)
	return r == nil || r.span.inbox.put(remoteEvent{node, e})
}

// tell passes an event of the node's operator on.
func (n *Node) tell(room string, e Event) {
	if n.config.Cluster != nil {
		n.config.Cluster.Tell(room, e)
	}
}
