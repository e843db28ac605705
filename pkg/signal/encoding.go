package signal

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// fromClient and fromServer map each type to a function that returns an empty message, by
// direction. Candidate, Pose, Trace, FrameTimes, Data, Attributes and Metadata are sent in both directions.
var (
	fromClient = byType(
		blank[Join],
		blank[Publish],
		blank[Unpublish],
		blank[Answer],
		blank[Candidate],
		blank[SetQuality],
		blank[Acknowledge],
		blank[Viewpoint],
		blank[Pose],
		blank[Arrange],
		blank[SetLimits],
		blank[Uplink],
		blank[Time],
		blank[Trace],
		blank[FrameTimes],
		blank[Data],
		blank[Attributes],
		blank[Metadata],
		blank[Mute],
		blank[SetPermissions],
		blank[Leave],
	)
	fromServer = byType(
		blank[Joined],
		blank[OK],
		blank[Error],
		blank[ParticipantJoined],
		blank[ParticipantLeft],
		blank[Published],
		blank[Unpublished],
		blank[Recording],
		blank[Offer],
		blank[Candidate],
		blank[Assignments],
		blank[Sending],
		blank[Delivery],
		blank[Pose],
		blank[Wanted],
		blank[Bandwidth],
		blank[TimeReply],
		blank[Trace],
		blank[FrameTimes],
		blank[Data],
		blank[Attributes],
		blank[Metadata],
		blank[Muted],
		blank[PermissionsChanged],
		blank[Closing],
		blank[Moved],
		blank[Nodes],
		blank[Audience],
	)
)

// blank returns an empty message of type M.
func blank[M any, P interface {
	*M
	Message
}]() Message {
	return P(new(M))
}

func byType(blanks ...func() Message) map[Type]func() Message {
	known := make(map[Type]func() Message, len(blanks))
	for _, blank := range blanks {
		known[blank().messageType()] = blank
	}
	return known
}

// TypesFromClient returns the message types that a client sends, sorted.
func TypesFromClient() []Type { return slices.Sorted(maps.Keys(fromClient)) }

// TypesFromServer returns the message types that the server sends, sorted.
func TypesFromServer() []Type { return slices.Sorted(maps.Keys(fromServer)) }

// Encode sets the message's type and returns its text frame. Only the first call writes to the
// message; an encoded message may be encoded again by several goroutines concurrently. The text of
// a shared message must not be changed.
func Encode(m Message) ([]byte, error) {
	if shared := m.Head().shared; shared != nil {
		shared.once.Do(func() { shared.text, shared.err = encode(m) })
		return shared.text, shared.err
	}
	return encode(m)
}

func encode(m Message) ([]byte, error) {
	if head, t := m.Head(), m.messageType(); head.Type != t {
		head.Type = t
	}
	if own, ok := m.(json.Marshaler); ok {
		// The package's own encoders need no check of their output, as json.Marshal would make.
		return own.MarshalJSON()
	}
	return json.Marshal(m)
}

// DecodeFromClient decodes a message from a client. The message is a Request.
//
// If the type is unknown or a field has an invalid form, the error wraps ErrUnknownType or
// ErrInvalid. If the message is longer than its type allows, the error wraps ErrTooLarge. In these
// cases the returned message contains only the header, so that the caller can reply to the id.
// Every other error wraps ErrMalformed, and the message is nil. Unknown fields are ignored.
func DecodeFromClient(data []byte) (Message, error) { return decode(data, fromClient, withinBounds) }

// DecodeFromServer decodes a message from the server, with the same errors as DecodeFromClient
// except ErrTooLarge. Clients ignore unknown types.
func DecodeFromServer(data []byte) (Message, error) { return decode(data, fromServer, nil) }

// decode decodes the header, then calls check, if it is not nil, and then decodes the message.
func decode(data []byte, known map[Type]func() Message, check func(Type, []byte) error) (Message, error) {
	var head Header
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("%w: %s", ErrMalformed, describe(err))
	}
	if head.Type == "" {
		return nil, fmt.Errorf("%w: the message has no type", ErrMalformed)
	}
	if len(head.ID) > MaxIDLength {
		return nil, fmt.Errorf("%w: id has %d bytes, expected at most %d", ErrMalformed, len(head.ID), MaxIDLength)
	}
	blank, ok := known[head.Type]
	if !ok {
		return &OK{Header: head}, fmt.Errorf("%w %.32q", ErrUnknownType, head.Type)
	}
	if check != nil {
		if err := check(head.Type, data); err != nil {
			return &OK{Header: head}, err
		}
	}
	m := blank()
	if err := json.Unmarshal(data, m); err != nil {
		return &OK{Header: head}, fmt.Errorf("%w of type %q: %s", ErrInvalid, head.Type, describe(err))
	}
	return m, nil
}

// describe describes a decoding error in terms of the protocol instead of Go types.
func describe(err error) string {
	var form *json.UnmarshalTypeError
	if !errors.As(err, &form) {
		return err.Error()
	}
	field := form.Field
	if field == "" {
		field = "message"
	}
	return fmt.Sprintf("%s is a JSON %s, expected %s", field, form.Value, formOf(form.Type))
}

func formOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	default:
		return "a whole number in range"
	}
}
