package guest

import (
	"encoding/json"
	"time"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Kind is the kind of an event.
type Kind int

// These are the kinds, one for each type of client.Event that concerns a program without codecs of
// its own.
const (
	Connected Kind = iota + 1
	Interrupted
	Resumed
	Closing
	ParticipantJoined
	ParticipantLeft
	Published
	Unpublished
	Sending
	Wanted
	Uplink
	PoseChanged
	Bandwidth
	Refused
	Attributes
	Metadata
	Muted
	Permissions
	Recording
	Moved
	Audience
)

// Kinds is the number of kinds.
const Kinds = int(Audience)

// Event is a client.Event of any kind in one flat struct. Unused fields are empty, 0, or -1 for
// Tile, Quality and Description.
type Event struct {
	Kind                        Kind
	Participant, Publication    string
	Tile                        int
	Quality, Description        volumetric.Quality
	Text                        string
	JSON                        []byte
	Delay                       time.Duration
	Estimate, Allocated, Wanted volumetric.Bitrate
	Pose                        client.Pose
}

// flat converts an event of the session to a flat one.
func flat(event client.Event) Event {
	e := Event{Tile: -1, Quality: volumetric.QualityOff, Description: volumetric.QualityOff}
	switch from := event.(type) {
	case client.Connected:
		e.Kind = Connected
	case client.Interrupted:
		e.Kind, e.Text = Interrupted, from.Err.Error()
	case client.Resumed:
		e.Kind = Resumed
	case client.Moved:
		e.Kind, e.Text = Moved, from.URL
	case client.Closing:
		e.Kind, e.Text, e.Delay = Closing, string(from.Code)+": "+from.Message, from.Grace
	case client.Sending:
		e.Kind, e.Text, e.Delay = Sending, string(from.Reason), from.Delay
		e.name(from.Track.PublicationRef)
		e.Tile, e.Quality, e.Description = from.Track.Tile, from.Quality, from.Track.Quality
	case client.Wanted:
		e.Kind, e.Publication = Wanted, from.Publication
		e.detail(signal.WantedPublication{Publication: from.Publication, Tiles: from.Tiles, Parity: from.Parity})
	case client.Uplink:
		e.Kind, e.Estimate = Uplink, from.Estimate
		e.detail(gaveUp{from.GaveUp})
	case client.PoseChanged:
		e.Kind, e.Pose = PoseChanged, from.Pose
		e.name(from.Publication)
		e.detail(boxes{from.Pose.Boxes})
	case client.Bandwidth:
		e.Kind, e.Estimate, e.Allocated, e.Wanted = Bandwidth, from.Estimate, from.Allocated, from.Wanted
	case client.Refused:
		e.Kind, e.Text, e.Tile, e.Quality = Refused, from.Err.Error(), from.Track.Tile, from.Track.Quality
		e.name(from.Track.PublicationRef)
	default:
		e.room(event)
	}
	return e
}

// room sets the fields of events about the room and other participants.
func (e *Event) room(event client.Event) {
	switch from := event.(type) {
	case client.ParticipantJoined:
		e.Kind, e.Participant = ParticipantJoined, from.Participant.Identity
		e.detail(from.Participant)
	case client.ParticipantLeft:
		e.Kind, e.Participant, e.Text = ParticipantLeft, from.Identity, from.Reason
	case client.Published:
		e.Kind = Published
		e.name(volumetric.PublicationRef{Participant: from.Participant, Publication: from.Publication.Name})
		e.detail(from.Publication)
	case client.Unpublished:
		e.Kind = Unpublished
		e.name(from.Publication)
	case client.AttributesChanged:
		e.Kind, e.Participant = Attributes, from.Participant
		e.detail(from.Attributes)
	case client.Muted:
		e.Kind = Muted
		e.name(from.Publication)
		e.detail(muting{from.Own, from.Operator})
	case client.MetadataChanged:
		e.Kind = Metadata
		e.detail(from.Metadata)
	case client.PermissionsChanged:
		e.Kind = Permissions
		e.detail(from.Permissions)
	case client.Recording:
		e.Kind = Recording
		e.detail(recording{from.Active})
	case client.Audience:
		e.Kind = Audience
		e.detail(audience{from.Count})
	}
}

// These are details in JSON.
type (
	muting struct {
		Own      bool `json:"own"`
		Operator bool `json:"operator"`
	}
	recording struct {
		Active bool `json:"active"`
	}
	audience struct {
		Count int `json:"count"`
	}
	gaveUp struct {
		GaveUp []signal.OwnTrack `json:"gave_up"`
	}
	boxes struct {
		Boxes []volumetric.BoundingBox `json:"boxes,omitempty"`
	}
)

func (e *Event) name(ref volumetric.PublicationRef) {
	e.Participant, e.Publication = ref.Participant, ref.Publication
}

// detail adds data that does not fit into a C struct. The data was decoded from JSON, so encoding
// cannot fail.
func (e *Event) detail(value any) {
	if text, err := json.Marshal(value); err == nil {
		e.JSON = text
	}
}
