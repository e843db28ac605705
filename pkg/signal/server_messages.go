package signal

import "github.com/volsfu/volsfu/pkg/volumetric"

// Joined replies to Join.
type Joined struct {
	Header
	Version  int    `json:"version"`
	Room     string `json:"room"`
	Identity string `json:"identity"`
	Session  string `json:"session"`
	// Resumed says that the session went on: publications and choices are as they were.
	Resumed bool        `json:"resumed,omitempty"`
	Resume  ResumeGrant `json:"resume"`
	// ICEServers are for the client's peer connection.
	ICEServers []ICEServer `json:"ice_servers"`
	// Participants are the others in the room with what they publish.
	Participants []Participant `json:"participants"`
	Limits       Limits        `json:"limits"`
}

// ResumeGrant is what a client needs to resume. The secret is good for one use and replaced in the reply; it stays good until the client has said something after
// that, since the reply may get lost.
type ResumeGrant struct {
	Secret  string `json:"secret"`
	GraceMS int    `json:"grace_ms"`
}

// ICEServer is a STUN or TURN server as in W3C's RTCIceServer.
type ICEServer struct {
	URLs       []string `json:"urls"`
	Username   string   `json:"username,omitempty"`
	Credential string   `json:"credential,omitempty"`
}

// Participant is somebody in the room.
type Participant struct {
	Identity     string                   `json:"identity"`
	Publications []volumetric.Publication `json:"publications"`
}

// Limits are the server's limits for this client.
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

// Error replies to a request that failed, with the request's id, or reports what no request caused.
type Error struct {
	Header
	Code    Code   `json:"code"`
	Message string `json:"message"`
}

// Error makes the message an error in Go.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// ParticipantJoined says that somebody came.
type ParticipantJoined struct {
	Header
	Participant Participant `json:"participant"`
}

// ParticipantLeft says that somebody went, and why.
type ParticipantLeft struct {
	Header
	Identity string `json:"identity"`
	Reason   string `json:"reason"`
}

// Published says that somebody publishes one more object, or describes one anew.
type Published struct {
	Header
	Participant string                 `json:"participant"`
	Publication volumetric.Publication `json:"publication"`
}

// Unpublished says that a publication has ended.
type Unpublished struct {
	Header
	volumetric.PublicationRef
}

// Offer is an SDP offer. The client answers it with the same number; there is at most one unanswered offer.
type Offer struct {
	Header
	Offer int    `json:"offer"`
	SDP   string `json:"sdp"`
	// Media says what each line of the description is for. Clients attach by mid between setRemoteDescription and createAnswer.
	Media []Media `json:"media"`
}

// Role is what a media line is for.
type Role string

// The roles of media lines, seen from the client.
const (
	// RolePublish: the client sends the named track, or nothing where none is named.
	RolePublish Role = "publish"
	// RoleSlot: the client receives video; Assignments say which.
	RoleSlot Role = "slot"
	// RoleAudio: the client receives audio; Assignments say which.
	RoleAudio Role = "audio"
)

// Media is one media line of an offer.
type Media struct {
	MID  string `json:"mid"`
	Role Role   `json:"role"`
	// Publication, Tile and Quality name the client's own track, for RolePublish. A line without them is idle: its track has ended, and
	// the client sends nothing on it until a later offer names another.
	Publication string              `json:"publication,omitempty"`
	Tile        int                 `json:"tile,omitempty"`
	Quality     *volumetric.Quality `json:"quality,omitempty"`
}

// Assignments say what slots carry from now on. The server sends on a slot only once its generation is acknowledged.
type Assignments struct {
	Header
	Assignments []Assignment `json:"assignments"`
}

// Assignment is what one slot carries; one without a publication leaves the slot idle.
type Assignment struct {
	MID        string              `json:"mid"`
	Generation uint32              `json:"generation"`
	Track      *volumetric.TileRef `json:"track,omitempty"`
	// Quality is set in ModeDescriptions, where the slot carries this one quality.
	Quality *volumetric.Quality `json:"quality,omitempty"`
}

// Sending says what a receiver is being sent, each time that it changes.
type Sending struct {
	Header
	Slots []SlotQuality `json:"slots"`
}

// SlotQuality is the quality that a slot carries, from the first packet of that quality.
type SlotQuality struct {
	SlotGeneration
	Quality volumetric.Quality `json:"quality"`
	Reason  Reason             `json:"reason"`
	// DelayUS is the time from when the request for this quality was read to its first packet, in microseconds; 0 where the quality was not
	// asked for since the last change.
	DelayUS int64 `json:"delay_us,omitempty"`
	// OffFrames are those that the slot did not carry because it was off: up to the first of this quality, without those before that Delivery tells of.
	OffFrames *FrameRange `json:"off_frames,omitempty"`
}

// FrameRange is consecutive frames of a tile by their numbers in payload v1, which go on at 0 after the last of 32 bits.
type FrameRange struct {
	First uint32 `json:"first"`
	Count uint32 `json:"count"`
}

// Reason says why a slot carries the quality that it carries.
type Reason string

// The reasons.
const (
	// ReasonChoice: the receiver asked for it.
	ReasonChoice Reason = "choice"
	// ReasonAuto: the server decided, as the best use of what the link carries, or since the publisher sends nothing else.
	ReasonAuto Reason = "auto"
	// ReasonBudget: the receiver's link does not carry what was asked for, or nothing of a tile that it sees.
	ReasonBudget Reason = "budget"
	// ReasonUnseen: the tile is outside of what the receiver sees. It is at its lowest quality, or off where the link does not carry everything.
	ReasonUnseen Reason = "unseen"
)

// Delivery reports frames that the server dropped whole for this receiver since the last report.
type Delivery struct {
	Header
	Dropped []SlotDrops `json:"dropped"`
}

// SlotDrops counts the frames that were dropped on one slot.
type SlotDrops struct {
	SlotGeneration
	Frames int `json:"frames"`
}

// TimeReply replies to Time. T1 is the server's clock when the request was read, T2 when the reply was written, in microseconds.
type TimeReply struct {
	Header
	T0 int64 `json:"t0_us"`
	T1 int64 `json:"t1_us"`
	T2 int64 `json:"t2_us"`
}

// Closing tells the client that the server will close the session, and when.
type Closing struct {
	Header
	Code    Code   `json:"code"`
	Message string `json:"message"`
	// GraceMS is how long the session still works, in milliseconds.
	GraceMS int `json:"grace_ms,omitempty"`
}
