package client

import (
	"github.com/pion/rtp"

	"time"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Event is something that happened in the room or to the session: one of the types below.
type Event interface{ event() }

type (
	// ParticipantJoined says that somebody came.
	ParticipantJoined struct{ Participant signal.Participant }
	// ParticipantLeft says that somebody went.
	ParticipantLeft struct{ Identity, Reason string }
	// Published says that somebody publishes one more object.
	Published struct {
		Participant string
		Publication volumetric.Publication
	}
	// Unpublished says that a publication has ended.
	Unpublished struct{ Publication volumetric.PublicationRef }
	// Sending says what quality a tile is being sent at, from its first packet on; volumetric.QualityOff when it was switched off.
	Sending struct {
		// Track names the tile. Its quality is volumetric.QualityOff, but in volumetric.ModeDescriptions it names the description.
		Track   volumetric.TrackRef
		Quality volumetric.Quality
		Reason  signal.Reason
		// Delay is from when the server read the request for this quality to its first packet; 0 where nothing was asked for.
		Delay time.Duration
	}
	// KeyFrameWanted asks the publisher of a real video codec for a key frame.
	KeyFrameWanted struct {
		Publication string
		Tile        int
		Quality     volumetric.Quality
	}
	// Wanted says which qualities of each tile of an own publication somebody takes; Publisher.Wanted gives the same, track by track. Parity is the share of
	// parity packets that receivers need.
	Wanted struct {
		Publication string
		Tiles       [][]volumetric.Quality
		Parity      float64
	}
	// Uplink says that other tracks than before are not sent for want of bandwidth; Estimate is what the uplink carries.
	Uplink struct {
		Estimate volumetric.Bitrate
		GaveUp   []signal.OwnTrack
	}
	// PoseChanged says where an object of somebody stands now.
	PoseChanged struct {
		Publication volumetric.PublicationRef
		Pose        Pose
	}
	// Bandwidth says what the server thinks of this client's link: what it carries, the rate of what the server has decided to send, and the rate of what it
	// would send if the link carried anything.
	Bandwidth struct{ Estimate, Allocated, Wanted volumetric.Bitrate }
	// Connected says that media flows.
	Connected struct{}
	// Interrupted says that the websocket broke; the session tries to resume.
	Interrupted struct{ Err error }
	// Resumed says that the session goes on.
	Resumed struct{}
	// Closing says that the server will end the session.
	Closing struct {
		Code    signal.Code
		Message string
		Grace   time.Duration
	}
)

func (ParticipantJoined) event() {}
func (ParticipantLeft) event()   {}
func (Published) event()         {}
func (Unpublished) event()       {}
func (Sending) event()           {}
func (KeyFrameWanted) event()    {}
func (Wanted) event()            {}
func (Uplink) event()            {}
func (PoseChanged) event()       {}
func (Bandwidth) event()         {}
func (Connected) event()         {}
func (Interrupted) event()       {}
func (Resumed) event()           {}
func (Closing) event()           {}

// Frame is one complete frame of a tile, as it was published.
type Frame struct {
	Track volumetric.TrackRef
	// Number counts the publication's capture instants; it does not wrap around.
	Number int64
	// Codec names what Data is encoded with; zero where the publisher does not say.
	Codec volumetric.FourCC
	// Capture is when the frame was captured, by the server's clock, or by the publisher's where Whole is set; zero where the publisher does not say.
	Capture time.Time
	// Data is what the codec made, empty for a tile without points. It is the receiver's to keep.
	Data []byte
	// Whole is the frame of a publication that is marked VR2Gather, as it was published: VR2Gather's header, which Codec and Capture are taken from, and
	// Data. It is nil for other publications. Where the frame does not begin with such a header, Data is all of it, and Codec and Capture are zero.
	Whole []byte
	// First and Complete are when the first and the last needed packet came, by the server's clock.
	First, Complete time.Time
	// arrived are the receiver's stamps by the system's clock.
	arrived arrived
}

// Packet is one packet of a track that does not use payload v1: audio, H264 and whatever else travels here.
type Packet struct {
	Track volumetric.TrackRef
	Codec volumetric.Codec
	rtp.Packet
	// Capture is the capture time of the packet's RTP timestamp by the publisher's sender reports, zero before the first of them.
	Capture time.Time
	// Arrival is by the server's clock.
	Arrival time.Time
}

// eventQueue brings the program events. A program that does not read events loses new ones.
type eventQueue chan Event

func (q eventQueue) tell(e Event) {
	select {
	case q <- e:
	default:
	}
}
