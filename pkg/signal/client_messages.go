package signal

import "github.com/volsfu/volsfu/pkg/volumetric"

// Join is the first message of a client.
type Join struct {
	Header
	Version int `json:"version"`
	// Room and Identity may be omitted if the token names them. If the token and the message both
	// name them, they must agree.
	Room     string `json:"room,omitempty"`
	Identity string `json:"identity,omitempty"`
	// Publications are published with the join, so that one offer serves both.
	Publications []volumetric.Publication `json:"publications,omitempty"`
	// Receive requests the publications of the other participants.
	Receive bool `json:"receive"`
	// DeadlineMS is the time after its first packet for which this receiver repairs a frame, in
	// milliseconds; 0 means the default.
	DeadlineMS int `json:"deadline_ms,omitempty"`
	// BitrateLimits limits the bit rate sent to this receiver, as SetLimits does later.
	BitrateLimits
	// Pauses reports that this client stops tracks that Wanted does not name. The server sends
	// Wanted only to such clients.
	Pauses bool `json:"pauses,omitempty"`
	// FrameTimes requests the times of the frames sent to this client, as Trace does later.
	FrameTimes bool `json:"frame_times,omitempty"`
	// DataChannel reports that this client sends the frames of its volumetric publications over
	// data channels. The server then offers a line for the data channels.
	DataChannel bool `json:"data_channel,omitempty"`
	// ReceiveData reports that this client receives frames over data channels: its video slots are
	// data channels instead of media lines.
	ReceiveData bool `json:"receive_data,omitempty"`
	// MessageChannel requests copies of data messages over data channels. The server then offers a line for the data
	// channels.
	MessageChannel bool `json:"message_channel,omitempty"`
	// Multipath reports that this client reads media on all its candidate pairs, each of which is on a
	// network interface of its own.
	Multipath *Multipath `json:"multipath,omitempty"`
	// Moves reports that this client follows Moved. A server that is not the client's place then sends Moved; otherwise
	// it passes the messages on.
	Moves bool `json:"moves,omitempty"`
	// Region is the preferred region. If Region is empty, the region of the server is preferred.
	Region string `json:"region,omitempty"`
	// Ticket is the ticket of the Moved that answered a join without Resume.
	Ticket string `json:"ticket,omitempty"`
	// Resume names the session to resume after the websocket broke.
	Resume *ResumeRequest `json:"resume,omitempty"`
}

// Multipath is the request of a client with several network interfaces.
type Multipath struct {
	// Redundancy selects the packets that the server sends on two interfaces. Empty is RedundancyAuto.
	Redundancy Redundancy `json:"redundancy,omitempty"`
}

// Redundancy selects the packets that are sent on two paths.
type Redundancy string

// The selections. With RedundancyOff, the second path carries packets only while the first fails.
const (
	// RedundancyAuto selects the packets that matter most, within a budget, and all packets while a path fails.
	RedundancyAuto Redundancy = "auto"
	RedundancyOff  Redundancy = "off"
	RedundancyAll  Redundancy = "all"
)

// ResumeRequest proves that the client is the participant whose websocket broke.
type ResumeRequest struct {
	Session string `json:"session"`
	Secret  string `json:"secret"`
	// NewConnection reports that the client has lost its peer connection and needs a new one.
	// Otherwise ICE is restarted.
	NewConnection bool `json:"new_connection,omitempty"`
	// DataReceived is the number of the last reliable data message that the client has received. The server repeats
	// later ones. nil requests no repetition.
	DataReceived *int64 `json:"data_received,omitempty"`
}

// Publish announces one more publication. The server replies OK and then offers lines of role
// RolePublish for the publication.
type Publish struct {
	Header
	Publication volumetric.Publication `json:"publication"`
}

// Unpublish ends a publication of this client.
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

// Candidate is one ICE candidate, in either direction. A Candidate follows the session description to which it belongs.
type Candidate struct {
	Header
	Candidate string `json:"candidate"`
	MID       string `json:"mid,omitempty"`
	LineIndex int    `json:"line_index,omitempty"`
}

// SetQuality sets the qualities that the receiver requests. Choices are stored by name and
// therefore survive a reconnect of the publisher. A later choice for a tile replaces earlier
// choices for the tile and for the whole publication.
type SetQuality struct {
	Header
	Choices []Choice `json:"choices"`
}

// Choice is a receiver's request for one tile, or for all tiles of a publication if Tile is nil.
type Choice struct {
	volumetric.PublicationRef
	Tile    *int      `json:"tile,omitempty"`
	Quality Selection `json:"quality"`
}

// Acknowledge confirms that the client knows the assignments of the slots. The server sends on a
// slot only after the acknowledgement.
type Acknowledge struct {
	Header
	Slots []SlotGeneration `json:"slots"`
}

// SlotGeneration names one assignment of one slot.
type SlotGeneration struct {
	MID        string `json:"mid"`
	Generation uint32 `json:"generation"`
}

// Time requests the server's clock. All stamps are microseconds of UTC since 1970. T0 is the
// client's clock at the time of sending.
type Time struct {
	Header
	T0 int64 `json:"t0_us"`
}

// Leave ends the participant's session. The server replies OK and closes the websocket.
type Leave struct {
	Header
}
