package webhook

import "time"

// Kind is the kind of an event.
type Kind string

// The kinds of events. Receivers should ignore kinds that they do not know.
const (
	// RoomStarted: the first participant has joined a room, or the API has created the room.
	RoomStarted Kind = "room_started"
	// RoomEnded: the last participant has left, and the empty time of a room that the API created is over.
	RoomEnded Kind = "room_ended"
	// ParticipantJoined and ParticipantLeft: a resumed session causes neither, unless it moves to another server: it
	// then leaves the room of the former server and joins that of the next. ParticipantLeft has a reason.
	ParticipantJoined Kind = "participant_joined"
	ParticipantLeft   Kind = "participant_left"
	// Published and Unpublished: a publication has begun or ended. The publications of a leaving participant end before
	// the event ParticipantLeft.
	Published   Kind = "published"
	Unpublished Kind = "unpublished"
	// RecordingStarted and RecordingEnded: the server has begun or ended to record the room.
	RecordingStarted Kind = "recording_started"
	RecordingEnded   Kind = "recording_ended"
)

// Event is the body of a request. The events of one room arrive in their order.
type Event struct {
	// ID is the id of the event, which repeated deliveries share. ID equals the header webhook-id.
	ID   string `json:"id"`
	Kind Kind   `json:"type"`
	// At is the time of the event by the server's clock.
	At   time.Time `json:"timestamp"`
	Room Room      `json:"room"`
	// Sequence numbers the events of one room id from 1. A gap shows that the server has dropped events.
	Sequence uint64 `json:"sequence"`
	// Participant is set for the events of participants and publications.
	Participant *Participant `json:"participant,omitempty"`
	// Reason is for people. Of ParticipantLeft it is that of the message participant_left of signalling, and of
	// RecordingEnded why the recording has ended. Other events have none.
	Reason string `json:"reason,omitempty"`
	// Publication is set for Published and Unpublished.
	Publication *Publication `json:"publication,omitempty"`
}

// Room is the room of an event.
type Room struct {
	Name string `json:"name"`
	// ID identifies one room of the name, from its start to its end.
	ID string `json:"id"`
}

// Participant is the participant of an event.
type Participant struct {
	Identity string `json:"identity"`
	// TokenID is the id (claim jti) of the participant's token, empty if the token has none.
	TokenID string `json:"token_id,omitempty"`
}

// Publication is the publication of an event.
type Publication struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Codec string `json:"codec"`
	Tiles int    `json:"tiles"`
	// Qualities is the number of qualities of each tile.
	Qualities int `json:"qualities"`
}
