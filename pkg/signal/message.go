package signal

import "errors"

// Errors of decoding. ErrorFor gives the reply to each.
var (
	// ErrMalformed: not a JSON object with a type. It closes the connection.
	ErrMalformed = errors.New("malformed message")
	// ErrUnknownType: an object of a type that the reader does not know.
	ErrUnknownType = errors.New("unknown message type")
	// ErrInvalid: a message of a known type with a field of the wrong form.
	ErrInvalid = errors.New("invalid message")
	// ErrTooLarge: a message that is longer than one of its type may be. It closes the connection.
	ErrTooLarge = errors.New("message too large")
)

// Type names a message.
type Type string

// The types of messages.
const (
	TypeJoin              Type = "join"
	TypePublish           Type = "publish"
	TypeUnpublish         Type = "unpublish"
	TypeAnswer            Type = "answer"
	TypeCandidate         Type = "candidate"
	TypeSetQuality        Type = "set_quality"
	TypeAcknowledge       Type = "acknowledge"
	TypeViewpoint         Type = "viewpoint"
	TypePose              Type = "pose"
	TypeArrange           Type = "arrange"
	TypeLimits            Type = "limits"
	TypeUplink            Type = "uplink"
	TypeTime              Type = "time"
	TypeTrace             Type = "trace"
	TypeFrameTimes        Type = "frame_times"
	TypeLeave             Type = "leave"
	TypeJoined            Type = "joined"
	TypeOK                Type = "ok"
	TypeError             Type = "error"
	TypeParticipantJoined Type = "participant_joined"
	TypeParticipantLeft   Type = "participant_left"
	TypePublished         Type = "published"
	TypeUnpublished       Type = "unpublished"
	TypeOffer             Type = "offer"
	TypeAssignments       Type = "assignments"
	TypeSending           Type = "sending"
	TypeDelivery          Type = "delivery"
	TypeWanted            Type = "wanted"
	TypeBandwidth         Type = "bandwidth"
	TypeTimeReply         Type = "time_reply"
	TypeClosing           Type = "closing"
)

// Header begins every message.
type Header struct {
	Type Type `json:"type"`
	// ID is chosen by the client for a request and returned in the reply: at most MaxIDLength bytes.
	ID string `json:"id,omitempty"`
	// shared is the text of a message that several clients are sent, nil for others.
	shared *sharedText
}

// Head gives access to the header of any message.
func (h *Header) Head() *Header { return h }

// Message is any message of the protocol. The messages of this package are all that there are.
type Message interface {
	Head() *Header
	// messageType is the type that the message is sent with.
	messageType() Type
}

// Request is any message that a client sends.
type Request interface {
	Message
	// Validate reports the first field that has a value which it must not have, as an *Error with the request's id. What depends on
	// the server's state or configuration is not its matter.
	Validate() error
}

func (*Join) messageType() Type              { return TypeJoin }
func (*Publish) messageType() Type           { return TypePublish }
func (*Unpublish) messageType() Type         { return TypeUnpublish }
func (*Answer) messageType() Type            { return TypeAnswer }
func (*Candidate) messageType() Type         { return TypeCandidate }
func (*SetQuality) messageType() Type        { return TypeSetQuality }
func (*Acknowledge) messageType() Type       { return TypeAcknowledge }
func (*Viewpoint) messageType() Type         { return TypeViewpoint }
func (*Pose) messageType() Type              { return TypePose }
func (*Arrange) messageType() Type           { return TypeArrange }
func (*SetLimits) messageType() Type         { return TypeLimits }
func (*Uplink) messageType() Type            { return TypeUplink }
func (*Time) messageType() Type              { return TypeTime }
func (*Trace) messageType() Type             { return TypeTrace }
func (*FrameTimes) messageType() Type        { return TypeFrameTimes }
func (*Leave) messageType() Type             { return TypeLeave }
func (*Joined) messageType() Type            { return TypeJoined }
func (*OK) messageType() Type                { return TypeOK }
func (*Error) messageType() Type             { return TypeError }
func (*ParticipantJoined) messageType() Type { return TypeParticipantJoined }
func (*ParticipantLeft) messageType() Type   { return TypeParticipantLeft }
func (*Published) messageType() Type         { return TypePublished }
func (*Unpublished) messageType() Type       { return TypeUnpublished }
func (*Offer) messageType() Type             { return TypeOffer }
func (*Assignments) messageType() Type       { return TypeAssignments }
func (*Sending) messageType() Type           { return TypeSending }
func (*Delivery) messageType() Type          { return TypeDelivery }
func (*Wanted) messageType() Type            { return TypeWanted }
func (*Bandwidth) messageType() Type         { return TypeBandwidth }
func (*TimeReply) messageType() Type         { return TypeTimeReply }
func (*Closing) messageType() Type           { return TypeClosing }
