package signal

import (
	"fmt"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Joined replies to Join.
type Joined struct {
	Header
	Version  int    `json:"version"`
	Room     string `json:"room"`
	Identity string `json:"identity"`
	Session  string `json:"session"`
	// Resumed reports that the session was resumed: publications and choices are unchanged.
	Resumed bool `json:"resumed,omitempty"`
	// Restored is false if the session was resumed without its state: its choices, limits, viewpoint and publications
	// are lost, and the client sends them again. nil means true.
	Restored *bool       `json:"restored,omitempty"`
	Resume   ResumeGrant `json:"resume"`
	// ICEServers contains the ICE servers for the client's peer connection.
	ICEServers []ICEServer `json:"ice_servers"`
	// Participants contains the other participants in the room with their publications.
	Participants []Participant `json:"participants"`
	Limits       Limits        `json:"limits"`
	// Multipath confirms Join.Multipath: the server, too, reads media on all candidate pairs.
	Multipath bool `json:"multipath,omitempty"`
	// Recorded reports that the server records the room. Recording reports later changes.
	Recorded bool `json:"recorded,omitempty"`
	// Metadata is the metadata of the room. Attributes, Permissions and Muted are those of this participant. Muted has
	// the muted publications.
	Metadata    map[string]string `json:"metadata,omitempty"`
	Attributes  map[string]string `json:"attributes,omitempty"`
	Permissions *Permissions      `json:"permissions,omitempty"`
	Muted       []MuteState       `json:"muted,omitempty"`
	// DataReceived is the number of the last reliable data message that the server has received from this session.
	DataReceived int64 `json:"data_received,omitempty"`
	// Nodes are the servers on which the client may resume if this server cannot be reached, in the order of
	// preference. Nodes messages report later changes.
	Nodes []NodeAddress `json:"nodes,omitempty"`
}

// NodeAddress is the address of a server.
type NodeAddress struct {
	// URL has the form of the address that a client connects to, as in wss://sfu.example.org.
	URL    string `json:"url"`
	Region string `json:"region,omitempty"`
}

// Nodes replaces the servers of Joined.Nodes.
type Nodes struct {
	Header
	Nodes []NodeAddress `json:"nodes"`
	// Secret replaces the secret of Joined.Resume, unless it is empty.
	Secret string `json:"secret,omitempty"`
}

// Moved asks a client to continue on another server. In reply to a join without resume, the client repeats the join
// there with Ticket. In reply to a join with resume, and later, the client resumes its session there with Ticket in
// place of its secret. Only clients with Join.Moves receive Moved.
type Moved struct {
	Header
	// URL is the server's address, as in NodeAddress.
	URL    string `json:"url"`
	Ticket string `json:"ticket"`
	// DeadlineMS is the time in milliseconds after which this server ends the session. 0 stands for now.
	DeadlineMS int `json:"deadline_ms,omitempty"`
	// MakeBeforeBreak reports that the session remains on this server until the client has a connection to the other.
	MakeBeforeBreak bool `json:"make_before_break,omitempty"`
}

// ResumeGrant contains the secret that a client needs to resume its session. The secret is valid
// for one use, and the reply to the resumption contains the next secret. Because the reply may be
// lost, the used secret stays valid until the client sends a message after the reply.
type ResumeGrant struct {
	Secret  string `json:"secret"`
	GraceMS int    `json:"grace_ms"`
}

// ICEServer is a STUN or TURN server, as RTCIceServer of W3C WebRTC.
type ICEServer struct {
	URLs       []string `json:"urls"`
	Username   string   `json:"username,omitempty"`
	Credential string   `json:"credential,omitempty"`
}

// Participant is a participant in the room.
type Participant struct {
	Identity     string                   `json:"identity"`
	Publications []volumetric.Publication `json:"publications"`
	Attributes   map[string]string        `json:"attributes,omitempty"`
	// Muted has the muted publications.
	Muted []MuteState `json:"muted,omitempty"`
}

// Limits contains the server's limits for this client.
type Limits struct {
	TracksPerPublication int `json:"tracks_per_publication"`
	Publications         int `json:"publications"`
	FrameBytes           int `json:"frame_bytes"`
	MessageBytes         int `json:"message_bytes"`
}

// OK replies to a request that has no other reply.
type OK struct {
	Header
}

// Error replies to a failed request, with the request's id, or reports an error that no request
// caused.
type Error struct {
	Header
	Code    Code   `json:"code"`
	Message string `json:"message"`
	// RetryAfterMS is the time in milliseconds after which the request may succeed. 0 means that it is not known.
	RetryAfterMS int `json:"retry_after_ms,omitempty"`
}

// Errorf returns an Error without an id.
func Errorf(code Code, format string, arguments ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, arguments...)}
}

// Error implements error.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// ParticipantJoined reports that a participant joined the room.
type ParticipantJoined struct {
	Header
	Participant Participant `json:"participant"`
}

// ParticipantLeft reports that a participant left the room, with the reason.
type ParticipantLeft struct {
	Header
	Identity string `json:"identity"`
	Reason   string `json:"reason"`
}

// Published reports a new publication of another participant, or a changed description of an
// existing one.
type Published struct {
	Header
	Participant string                 `json:"participant"`
	Publication volumetric.Publication `json:"publication"`
}

// Unpublished reports that a publication ended.
type Unpublished struct {
	Header
	volumetric.PublicationRef
}

// Recording reports that the server begins or ends the recording of the room.
type Recording struct {
	Header
	Active bool `json:"active"`
}

// Audience has the number of participants that are in the room and are not announced: participants that may not
// publish, above a number of participants. The receiver may be one of them.
type Audience struct {
	Header
	Count int `json:"count"`
}

// Offer is an SDP offer. The client answers with the same offer number. At most one offer is
// unanswered.
type Offer struct {
	Header
	Offer int    `json:"offer"`
	SDP   string `json:"sdp"`
	// Media describes the purpose of each line of the offer. Clients attach tracks by mid between
	// setRemoteDescription and createAnswer.
	Media []Media `json:"media"`
}

// Role is the purpose of a media line.
type Role string

// The roles of media lines, from the client's point of view.
const (
	// RolePublish: the client sends the named track, or nothing if the line names no track.
	RolePublish Role = "publish"
	// RoleSlot: the client receives video, as announced by Assignments.
	RoleSlot Role = "slot"
	// RoleAudio: the client receives audio, as announced by Assignments.
	RoleAudio Role = "audio"
)

// Media is one media line of an offer.
type Media struct {
	MID  string `json:"mid"`
	Role Role   `json:"role"`
	// Publication, Tile and Quality name the client's own track, for RolePublish. A line without
	// them is idle: its track has ended, and the client sends nothing on the line until a later
	// offer names another track.
	Publication string              `json:"publication,omitempty"`
	Tile        int                 `json:"tile,omitempty"`
	Quality     *volumetric.Quality `json:"quality,omitempty"`
}

// Assignments announces the tracks of slots. The server sends on a slot only after the client has
// acknowledged the slot's generation.
type Assignments struct {
	Header
	Assignments []Assignment `json:"assignments"`
}

// Assignment names the track of one slot. An assignment without a track makes the slot idle.
type Assignment struct {
	MID        string              `json:"mid"`
	Generation uint32              `json:"generation"`
	Track      *volumetric.TileRef `json:"track,omitempty"`
	// Quality is set in ModeDescriptions, in which the slot carries this quality only.
	Quality *volumetric.Quality `json:"quality,omitempty"`
}

// Sending reports the qualities sent to a receiver, whenever they change.
type Sending struct {
	Header
	Slots []SlotQuality `json:"slots"`
}

// SlotQuality reports the quality of a slot, valid from the first packet of that quality.
type SlotQuality struct {
	SlotGeneration
	Quality volumetric.Quality `json:"quality"`
	Reason  Reason             `json:"reason"`
	// DelayUS is the time from the receipt of the request for this quality to the first packet of
	// the quality, in microseconds. DelayUS is 0 if the quality was not requested since the last
	// change.
	DelayUS int64 `json:"delay_us,omitempty"`
	// OffFrames contains the frames that the slot did not carry because it was off. The range ends
	// before the first frame of this quality; earlier frames reported by Delivery are not included.
	OffFrames *FrameRange `json:"off_frames,omitempty"`
}

// FrameRange is a range of consecutive frames of a tile, by their 32-bit frame numbers in payload
// v1, which wrap around.
type FrameRange struct {
	First uint32 `json:"first"`
	Count uint32 `json:"count"`
}

// Reason is the reason for the quality of a slot.
type Reason string

// The reasons.
const (
	// ReasonChoice: the receiver requested the quality.
	ReasonChoice Reason = "choice"
	// ReasonAuto: the server selected the quality as the best use of the link, or because the
	// publisher sends no other.
	ReasonAuto Reason = "auto"
	// ReasonBudget: the receiver's link cannot carry the requested quality, or cannot carry any
	// quality of a visible tile.
	ReasonBudget Reason = "budget"
	// ReasonUnseen: the tile is outside of the receiver's view. The tile has its lowest quality, or
	// is off if the link cannot carry everything.
	ReasonUnseen Reason = "unseen"
)

// Delivery reports the frames that the server dropped for this receiver since the last report.
// Frames are dropped whole.
type Delivery struct {
	Header
	Dropped []SlotDrops `json:"dropped"`
}

// SlotDrops is the number of frames dropped on one slot.
type SlotDrops struct {
	SlotGeneration
	Frames int `json:"frames"`
}

// TimeReply replies to Time. T1 is the server's clock when the request was read, T2 when the reply
// was written, in microseconds of UTC since 1970.
type TimeReply struct {
	Header
	T0 int64 `json:"t0_us"`
	T1 int64 `json:"t1_us"`
	T2 int64 `json:"t2_us"`
}

// Closing announces that the server will close the session.
type Closing struct {
	Header
	Code    Code   `json:"code"`
	Message string `json:"message"`
	// GraceMS is the time until the session is closed, in milliseconds.
	GraceMS int `json:"grace_ms,omitempty"`
}
