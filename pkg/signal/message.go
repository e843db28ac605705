package signal

import "errors"

// Errors of decoding. ErrorFor returns the reply for each error.
var (
	// ErrMalformed reports a message that is not a JSON object with a type. The connection is closed.
	ErrMalformed = errors.New("malformed message")
	// ErrUnknownType reports a message type that the reader does not know.
	ErrUnknownType = errors.New("unknown message type")
	// ErrInvalid reports a message of a known type with an invalid field.
	ErrInvalid = errors.New("invalid message")
	// ErrTooLarge reports a message longer than its type allows. The connection is closed.
	ErrTooLarge = errors.New("message too large")
)

// Type is the name of a message.
type Type string

// The message types.
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
	TypeRecording         Type = "recording"
	TypeOffer             Type = "offer"
	TypeAssignments       Type = "assignments"
	TypeSending           Type = "sending"
	TypeDelivery          Type = "delivery"
	TypeWanted            Type = "wanted"
	TypeBandwidth         Type = "bandwidth"
	TypeTimeReply         Type = "time_reply"
	TypeClosing           Type = "closing"
	TypeData              Type = "data"
	TypeAttributes        Type = "attributes"
	TypeMetadata          Type = "metadata"
	TypeMute              Type = "mute"
	TypeMuted             Type = "muted"
	TypePermissions       Type = "permissions"
	TypeSetPermissions    Type = "set_permissions"
	TypeMoved             Type = "moved"
	TypeNodes             Type = "nodes"
	TypeAudience          Type = "audience"
)

// Header is part of every message.
type Header struct {
	Type Type `json:"type"`
	// ID is chosen by the client for a request and returned in the reply, at most MaxIDLength
	// bytes.
	ID string `json:"id,omitempty"`
	// shared holds the text of a message that is sent to several clients, nil for other messages.
	shared *sharedText
}

// Head returns the header of the message.
func (h *Header) Head() *Header { return h }

// Message is any message of the protocol. Only this package implements Message.
type Message interface {
	Head() *Header
	// messageType returns the type with which the message is sent.
	messageType() Type
}

// Request is any message that a client sends.
type Request interface {
	Message
	// Validate returns an *Error with the request's id for the first field with an invalid value.
	// Validate does not check anything that depends on the server's state or configuration.
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
func (*Recording) messageType() Type         { return TypeRecording }
func (*Offer) messageType() Type             { return TypeOffer }
func (*Assignments) messageType() Type       { return TypeAssignments }
func (*Sending) messageType() Type           { return TypeSending }
func (*Delivery) messageType() Type          { return TypeDelivery }
func (*Wanted) messageType() Type            { return TypeWanted }
func (*Bandwidth) messageType() Type         { return TypeBandwidth }
func (*TimeReply) messageType() Type         { return TypeTimeReply }
func (*Closing) messageType() Type           { return TypeClosing }
func (*Moved) messageType() Type             { return TypeMoved }
func (*Nodes) messageType() Type             { return TypeNodes }
func (*Audience) messageType() Type          { return TypeAudience }
