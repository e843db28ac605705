package vr2gather

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Errors of websocket messages.
var (
	// ErrMessage reports that a text is not CLIENT@TYPE@VALUE, or that old peers could not read a
	// message.
	ErrMessage = errors.New("malformed VR2Gather message")
	// ErrDescription reports that the value of an offer or an answer is not a session description.
	ErrDescription = errors.New("malformed session description")
)

// MessageType is the type of a message.
type MessageType uint32

// The message types. Other types are valid and have no meaning here.
const (
	// MessageHello asks a peer to send an offer. No server sends this message.
	MessageHello MessageType = 1
	// MessageOffer and MessageAnswer carry a Description. Only the server offers.
	MessageOffer  MessageType = 2
	MessageAnswer MessageType = 3
	// MessageCandidate carries an ICE candidate as the bare attribute "candidate:…". The end of the
	// candidates is not sent.
	MessageCandidate MessageType = 4
	// MessageQuality carries quality choices from a receiver.
	MessageQuality MessageType = 7
)

// Message is one text frame of the websocket: CLIENT@TYPE@VALUE, with decimal numbers.
type Message struct {
	// Client is 0 from servers, and 0 or 1 from peers regardless of their id. Client has no meaning.
	Client uint32
	Type   MessageType
	// Value is the rest of the text. Value is a copy.
	Value string
}

// ParseMessage parses one text frame. The value is the text after the second "@", including further
// "@", up to the first NUL and without surrounding spaces, because peers forward the connector's
// fixed-size buffers. Errors wrap ErrMessage.
func ParseMessage(text []byte) (Message, error) {
	parts := strings.SplitN(string(text), "@", 3)
	if len(parts) < 3 {
		return Message{}, fmt.Errorf(
			"%w: %.32q has %d parts, expected CLIENT@TYPE@VALUE",
			ErrMessage,
			parts[0],
			len(parts),
		)
	}
	client, err := parseNumber(parts[0])
	if err != nil {
		return Message{}, fmt.Errorf("%w: client is %.32q, expected a number", ErrMessage, parts[0])
	}
	kind, err := parseNumber(parts[1])
	if err != nil {
		return Message{}, fmt.Errorf("%w: type is %.32q, expected a number", ErrMessage, parts[1])
	}
	return Message{Client: client, Type: MessageType(kind), Value: clean(parts[2])}, nil
}

// Append appends the text frame to dst. If the value contains "@", at which old peers would
// truncate it, the error wraps ErrMessage and dst is unchanged. Description.Value never contains
// "@".
func (m Message) Append(dst []byte) ([]byte, error) {
	if i := strings.IndexByte(m.Value, '@'); i >= 0 {
		return dst, fmt.Errorf(
			"%w: value of type %d has an @ at byte %d, at which old peers would truncate it",
			ErrMessage,
			m.Type,
			i,
		)
	}
	dst = strconv.AppendUint(dst, uint64(m.Client), 10)
	dst = append(dst, '@')
	dst = strconv.AppendUint(dst, uint64(m.Type), 10)
	dst = append(dst, '@')
	return append(dst, m.Value...), nil
}

// Description is the value of an offer or an answer.
type Description struct {
	// Type is "offer" or "answer".
	Type string `json:"type"`
	SDP  string `json:"sdp"`
}

// ParseDescription parses the value of an offer or an answer. Errors wrap ErrDescription.
func ParseDescription(value string) (Description, error) {
	var d Description
	if err := json.Unmarshal([]byte(value), &d); err != nil {
		return Description{}, fmt.Errorf("%w: %v", ErrDescription, err)
	}
	if d.Type != "offer" && d.Type != "answer" || d.SDP == "" {
		return Description{}, fmt.Errorf(
			"%w: type is %.32q with %d bytes of SDP, expected an offer or an answer",
			ErrDescription,
			d.Type,
			len(d.SDP),
		)
	}
	return d, nil
}

// Value returns the description as the value of a message. "@" is escaped, because peers truncate a
// value at "@".
func (d Description) Value() string {
	// A struct of two strings can always be marshalled.
	text, _ := json.Marshal(d)
	return strings.ReplaceAll(string(text), "@", `\u0040`)
}

// parseNumber parses a 32-bit decimal number with surrounding spaces and NULs.
func parseNumber(field string) (uint32, error) {
	n, err := strconv.ParseUint(clean(field), 10, 32)
	return uint32(n), err
}

// clean truncates a text at its first NUL and removes surrounding spaces: connectors send the
// fixed-size buffers of C strings.
func clean(text string) string {
	text, _, _ = strings.Cut(text, "\x00")
	return strings.TrimSpace(text)
}
