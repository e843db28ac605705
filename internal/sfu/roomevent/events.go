// Package roomevent has the events of a room that nodes tell one another. The events are values.
package roomevent

import (
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/forward/trace"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Event is an event of a room that concerns other nodes. A node tells the other nodes the events of its own
// participants, and applies the events that they tell. An event does not change after it was told.
type Event interface {
	// event limits events to the types of this package.
	event()
}

// Participant is the whole state of a participant, except publications.
type Participant struct {
	Identity string
	Session  string
	// Epoch counts the homes of the session, from 0.
	Epoch  uint64
	Joined time.Time
	// Live is set if the websocket of the participant is open.
	Live bool
	// Complete is set if the home has told all publications of a session that it has adopted. Other nodes then end the
	// publications of the former home that the home has not told.
	Complete bool
	// Audience is set if the participant is not announced to clients.
	Audience    bool
	Attributes  map[string]string
	Muted       []signal.MuteState
	Permissions signal.Permissions
	// Number is the participant's number for VR2Gather clients, nil if there is none.
	Number *uint32
}

// The events of a room that concern other nodes.
type (
	// Entered reports that the node has the room.
	Entered struct{}
	// Exited reports that the node does not have the room, or has no trunk to this node. The node then takes nothing.
	// After a node has told Exited, it tells no event of the room before Entered.
	Exited struct{}
	// Present has the state of a participant that joins, changes, loses or resumes its websocket, or has moved to this
	// node.
	Present struct{ Participant }
	// Left ends a participant.
	Left struct{ Identity, Session, Reason string }
	// Detached reports that the home of a participant does not answer. The slots of the participant's publications are
	// kept until Present or Left.
	Detached struct{ Identity string }
	// Released ends the record of a session whose next home is another node. Released is told some time after the
	// session has moved, if the session has not returned.
	Released struct {
		Identity, Session string
		Epoch             uint64
		Publications      []Unpublished
	}
	// SessionState has the state of a session of this node. State is the JSON of a sessionrecord.Record, empty if the
	// JSON would exceed sessionrecord.MaxRecordBytes; an earlier state is then not valid. A home tells the state at
	// most twice per second.
	SessionState struct {
		Identity, Session string
		Epoch             uint64
		State             []byte
	}
	// Published adds a publication. ID is unique on its home, and the ID of all events about the publication. Tracks
	// are the tracks on its home, and are not read by other nodes.
	Published struct {
		Ref         volumetric.PublicationRef
		ID          uint64
		Description volumetric.Publication
		Mute        signal.MuteState
		Tracks      []*track.Track
	}
	// Unpublished ends a publication. After Left, Unpublished is told for each publication of the participant.
	Unpublished struct {
		Ref volumetric.PublicationRef
		ID  uint64
	}
	// Mirrored reports that this node has tracks for a publication whose home is Node, by tile × Qualities + quality.
	// The trunk to Node binds the tracks with the first packet of each. Until then the trunk to a former home, or the
	// publisher's own connection, feeds them. Mirrored is for this node only.
	Mirrored struct {
		Ref       volumetric.PublicationRef
		Node      string
		ID        uint64
		Qualities int
		Tracks    []*track.Track
	}
	// Unmirrored ends Mirrored: the trunk to Node must not feed the tracks. Unmirrored is for this node only.
	Unmirrored struct {
		Ref  volumetric.PublicationRef
		Node string
		ID   uint64
	}
	// Take is the whole demand of a node for a publication whose home is Node. Tiles has the qualities that receivers
	// take, by tile. Near has the tiles that receivers may want soon, for which no packets are needed. Parity is a
	// share of 0 to 1. Trace is set if a receiver wants the times of frames.
	Take struct {
		Ref    volumetric.PublicationRef
		Node   string
		ID     uint64
		Tiles  []allocate.QualitySet
		Near   []bool
		Parity float64
		Trace  bool
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
	// Relayed has the times of frames in the nodes before this one, by the clock of this node. Offset was added to the
	// times of the home, Bound and Uncertainty are the maximum errors: for any network path, and if both directions of
	// each path have the same delay. Relayed comes from this node's trunk.
	Relayed struct {
		Ref                        volumetric.PublicationRef
		ID                         uint64
		Offset, Bound, Uncertainty time.Duration
		Frames                     []trace.Relay
	}
	// Masked has the qualities that the trunk from the home cannot carry, by tile. Masked comes from this node's trunk.
	Masked struct {
		Ref   volumetric.PublicationRef
		ID    uint64
		Tiles []allocate.QualitySet
	}
	// Posed has the pose of an object, at most 30 per second. If Node is not empty, the pose is for that node only.
	Posed struct {
		Ref  volumetric.PublicationRef
		Node string
		Pose *signal.Pose
	}
	// Sent has a data message of a participant, or of the operator if From is empty. Data.To names the recipients, all
	// if it is empty, and Nodes the nodes of the recipients, all nodes if it is nil. Data.Seq is the number that the
	// sender has given a reliable message, or the number of a lossy message.
	Sent struct {
		From  string
		Nodes []string
		Data  *signal.Data
	}
	// Operate has a change of a participant whose home is Node by a moderator or by the operator of this node. One of
	// Mute, Permissions and Attributes is set.
	Operate struct {
		Node        string                 `json:"node"`
		Identity    string                 `json:"identity"`
		Mute        *signal.Mute           `json:"mute,omitempty"`
		Permissions *signal.SetPermissions `json:"permissions,omitempty"`
		Attributes  *signal.Attributes     `json:"attributes,omitempty"`
	}
	// Shared has a node's part of the state of a room. The latest Shared of each node in the room counts. The zero
	// value ends the part of a node that has left the room.
	Shared struct {
		// Metadata is the metadata of the room and MetadataAt the time of its last change known to the node, in
		// microseconds since 1970. MetadataAt is 0 if no metadata has been set.
		Metadata   map[string]string `json:"metadata,omitempty"`
		MetadataAt int64             `json:"metadata_at,omitempty"`
		// Recording is the time at which the node began to record the room, in nanoseconds since 1970, 0 if the node
		// does not record the room.
		Recording int64 `json:"recording,omitempty"`
		// Ended is set if an operator has ended a recording of the room: no node begins one automatically.
		Ended bool `json:"ended,omitempty"`
	}
	// Superseded reports that another claim to the identity of a local participant prevails. Code is CodeReplaced or
	// CodeIdentityTaken. If Moved is set, the claim is that of the same session on another node. A Present with a later
	// epoch says the same; two nodes that adopt a session at the same time have the same epoch.
	Superseded struct {
		Identity, Session string
		Moved             bool
		Code              signal.Code
		Reason            string
	}
	// Kick removes a participant, if it has the session or if Session is empty. Until is the end of its ban from the
	// room, zero for no ban. TokenID is the id of the participant's token, which the ban excludes too. Only the home
	// knows the token, and tells a Kick of its own.
	Kick struct {
		Identity, Session, TokenID string
		Until                      time.Time
	}
	// Close removes the participants that joined before a time, all participants if the time is zero.
	Close struct{ Before time.Time }
)

func (Entered) event()      {}
func (Exited) event()       {}
func (Present) event()      {}
func (Left) event()         {}
func (Detached) event()     {}
func (Released) event()     {}
func (SessionState) event() {}
func (Published) event()    {}
func (Unpublished) event()  {}
func (Mirrored) event()     {}
func (Unmirrored) event()   {}
func (Take) event()         {}
func (Rates) event()        {}
func (GaveUp) event()       {}
func (Relayed) event()      {}
func (Masked) event()       {}
func (Posed) event()        {}
func (Sent) event()         {}
func (Operate) event()      {}
func (Shared) event()       {}
func (Superseded) event()   {}
func (Kick) event()         {}
func (Close) event()        {}
