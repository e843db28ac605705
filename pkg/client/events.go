package client

import (
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Event is something that happened in the room or to the session: one of the types below.
type Event interface{ event() }

type (
	// ParticipantJoined reports a participant that has joined.
	ParticipantJoined struct{ Participant signal.Participant }
	// ParticipantLeft reports a participant that has left.
	ParticipantLeft struct{ Identity, Reason string }
	// Published reports a new publication of a participant.
	Published struct {
		Participant string
		Publication volumetric.Publication
	}
	// Unpublished reports the end of a publication.
	Unpublished struct{ Publication volumetric.PublicationRef }
	// Recording reports that the server begins or ends the recording of the room. Session.Recorded returns the state.
	Recording struct{ Active bool }
	// Sending reports the quality at which a tile is sent from now on, or volumetric.QualityOff if the tile was
	// switched off.
	Sending struct {
		// Track names the tile. In volumetric.ModeDescriptions its quality names the description. In other modes it is
		// volumetric.QualityOff.
		Track   volumetric.TrackRef
		Quality volumetric.Quality
		Reason  signal.Reason
		// Delay is the time from the server's reading of the request for this quality to the first packet, 0 without a
		// request.
		Delay time.Duration
	}
	// KeyFrameWanted asks the publisher of a real video codec for a key frame.
	KeyFrameWanted struct {
		Publication string
		Tile        int
		Quality     volumetric.Quality
	}
	// Wanted reports which qualities of each tile of an own publication have receivers. Publisher.Wanted reports the
	// same for one track. Parity is the share of parity packets that receivers need.
	Wanted struct {
		Publication string
		Tiles       [][]volumetric.Quality
		Parity      float64
	}
	// Uplink reports a change of the tracks that are not sent for lack of bandwidth. Estimate is the rate of the
	// uplink.
	Uplink struct {
		Estimate volumetric.Bitrate
		GaveUp   []signal.OwnTrack
	}
	// PoseChanged reports the new pose of another participant's object.
	PoseChanged struct {
		Publication volumetric.PublicationRef
		Pose        Pose
	}
	// Bandwidth reports the server's view of this client's link: the estimated rate, the rate that the server has
	// decided to send, and the rate that the server would send over a link without limit.
	Bandwidth struct {
		Estimate, Allocated, Wanted volumetric.Bitrate
		// L4S is the state of L4S on the link as in the message, empty if the server does not report it.
		L4S string
	}
	// Refused reports that a frame or packet of a publication could not be decrypted, or was not encrypted although it
	// should be. Err wraps the reason, which is one of the errors of package e2ee. There is one event for each
	// publication and reason; Session.Encryption has the counts.
	Refused struct {
		Track volumetric.TrackRef
		Err   error
	}
	// AttributesChanged reports the attributes of a participant, this client included.
	AttributesChanged struct {
		Participant string
		Attributes  map[string]string
	}
	// MetadataChanged reports the metadata of the room.
	MetadataChanged struct{ Metadata map[string]string }
	// Muted reports a change of the muting of a publication, which may be one of this client. The publication is muted
	// if the publisher (Own) or an operator has muted it.
	Muted struct {
		Publication   volumetric.PublicationRef
		Own, Operator bool
	}
	// PermissionsChanged reports the permissions of this client after an operator has changed them.
	PermissionsChanged struct{ Permissions signal.Permissions }
	// Connected reports that media flows.
	Connected struct{}
	// Interrupted reports that the websocket has broken, that the server is silent, or that the server has sent this
	// client to another server. The session tries to resume.
	Interrupted struct{ Err error }
	// Resumed reports that the session continues.
	Resumed struct{}
	// Audience reports the number of participants that are in the room and not announced (Session.Audience).
	Audience struct{ Count int }
	// Moved reports that the session continues on another server, without an interruption. As after Resumed, there are
	// no events for changes of the room in the meantime.
	Moved struct{ URL string }
	// Closing announces that the server ends the session after Grace.
	Closing struct {
		Code    signal.Code
		Message string
		Grace   time.Duration
	}
)

func (ParticipantJoined) event()  {}
func (ParticipantLeft) event()    {}
func (Published) event()          {}
func (Unpublished) event()        {}
func (Recording) event()          {}
func (Sending) event()            {}
func (KeyFrameWanted) event()     {}
func (Wanted) event()             {}
func (Uplink) event()             {}
func (PoseChanged) event()        {}
func (Bandwidth) event()          {}
func (Refused) event()            {}
func (Connected) event()          {}
func (Interrupted) event()        {}
func (Resumed) event()            {}
func (Audience) event()           {}
func (Moved) event()              {}
func (Closing) event()            {}
func (AttributesChanged) event()  {}
func (MetadataChanged) event()    {}
func (Muted) event()              {}
func (PermissionsChanged) event() {}

// Frame is one complete frame of a tile, as it was published.
type Frame struct {
	Track volumetric.TrackRef
	// Number counts the publication's capture instants; it does not wrap around.
	Number int64
	// Codec names the encoding of Data. It is zero if the publisher does not state it.
	Codec volumetric.FourCC
	// Capture is when the frame was captured, by the server's clock, or by the publisher's if Whole is set. It is zero
	// if the publisher does not state it.
	Capture time.Time
	// Data is the encoded tile, empty for a tile without points. The receiver of the frame owns Data.
	Data []byte
	// Whole is the frame of a publication that is marked VR2Gather, as it was published: VR2Gather's header, which has
	// Codec and Capture, and Data. Whole is nil for other publications. If the frame does not begin with such a header,
	// Data is the whole frame, and Codec and Capture are zero.
	Whole []byte
	// First and Complete are when the first and the last needed packet arrived, by the server's clock.
	First, Complete time.Time
}

// Packet is one packet of a track that does not use payload v1, such as audio or H264.
type Packet struct {
	Track volumetric.TrackRef
	Codec volumetric.Codec
	rtp.Packet
	// Capture is the capture time of the packet's RTP timestamp by the publisher's sender reports, zero before the
	// first of them.
	Capture time.Time
	// Arrival is by the server's clock.
	Arrival time.Time
}

// eventBacklog is the size of the queue of events.
const eventBacklog = 1024

// eventQueue is the queue of events for the program. If the queue is full, new events are lost.
type eventQueue chan Event

func (q eventQueue) add(e Event) {
	select {
	case q <- e:
	default:
	}
}
