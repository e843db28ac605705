package signal

import "github.com/volsfu/volsfu/pkg/volumetric"

// Join is the first message of a client.
type Join struct {
	Header
	Version int `json:"version"`
	// Room and Identity may be left out where the token names them; they must agree where both do.
	Room     string `json:"room,omitempty"`
	Identity string `json:"identity,omitempty"`
	// Publications are published at once, so that one offer serves joining and publishing.
	Publications []volumetric.Publication `json:"publications,omitempty"`
	// Receive asks for the publications of the others.
	Receive bool `json:"receive"`
	// DeadlineMS is how long after its first packet this receiver repairs a frame, in milliseconds; 0 means the default.
	DeadlineMS int `json:"deadline_ms,omitempty"`
	// BitrateLimits bound what this receiver is sent, as SetLimits does later.
	BitrateLimits
	// Pauses says that this client stops tracks that Wanted does not name. A client that does not say so is never told.
	Pauses bool `json:"pauses,omitempty"`
	// FrameTimes asks for the times of the frames that this client is sent, as Trace does later.
	FrameTimes bool `json:"frame_times,omitempty"`
	// DataChannel says that this client sends the frames of its volumetric publications over data channels, for which the server offers a line.
	DataChannel bool `json:"data_channel,omitempty"`
	// ReceiveData says that this client takes frames over data channels: its slots for video are channels in place of media lines.
	ReceiveData bool `json:"receive_data,omitempty"`
	// Resume names the session to go on with after the websocket broke.
	Resume *ResumeRequest `json:"resume,omitempty"`
}

// ResumeRequest proves that the client is the participant whose websocket broke.
type ResumeRequest struct {
	Session string `json:"session"`
	Secret  string `json:"secret"`
	// NewConnection says that the client has lost its peer connection and needs a new one; else ICE is restarted.
	NewConnection bool `json:"new_connection,omitempty"`
}

// Publish announces one more publication. The server replies OK and then offers lines of role RolePublish for it.
type Publish struct {
	Header
	Publication volumetric.Publication `json:"publication"`
}

// Unpublish ends a publication of the client's own.
type Unpublish struct {
	Header
	Publication string `json:"publication"`
}

// Answer answers the offer with the same number.
type Answer struct {
	Header
	Offer int    `json:"offer"`
	SDP   string `json:"sdp"`
}

// Candidate is one ICE candidate, in either direction, sent after the description that it belongs to.
type Candidate struct {
	Header
	Candidate string `json:"candidate"`
	MID       string `json:"mid,omitempty"`
	LineIndex int    `json:"line_index,omitempty"`
}

// SetQuality states what the receiver wants to be sent. Choices are kept by names, so they outlive a publisher's reconnect;
// a later choice for a tile replaces an earlier one for it or for the whole publication.
type SetQuality struct {
	Header
	Choices []Choice `json:"choices"`
}

// Choice is a receiver's wish for one tile, or for all tiles of a publication where Tile is nil.
type Choice struct {
	volumetric.PublicationRef
	Tile    *int      `json:"tile,omitempty"`
	Quality Selection `json:"quality"`
}

// Acknowledge says that the client knows what the slots carry; only then does the server send on them.
type Acknowledge struct {
	Header
	Slots []SlotGeneration `json:"slots"`
}

// SlotGeneration names one assignment of one slot.
type SlotGeneration struct {
	MID        string `json:"mid"`
	Generation uint32 `json:"generation"`
}

// Time asks for the server's clock. Stamps are microseconds of UTC since 1970; T0 is the client's when it sent.
type Time struct {
	Header
	T0 int64 `json:"t0_us"`
}

// Leave ends the participant's session; the server replies OK and closes the websocket.
type Leave struct {
	Header
}
