package vr2gather

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Errors of the websocket's messages.
var (
	// ErrMessage says that a text is not CLIENT@TYPE@VALUE, or that a message cannot be sent so that old peers read it.
	ErrMessage = errors.New("malformed VR2Gather message")
	// ErrDescription says that the value of an offer or answer is not a session description.
	ErrDescription = errors.New("malformed session description")
)

// MessageType says what a message means.
type MessageType uint32

// The types of message. Others are valid and mean nothing here.
const (
	// MessageHello asks a peer to make an offer by itself. No server sends it.
	MessageHello MessageType = 1
	// MessageOffer and MessageAnswer carry a Description. Only the server offers.
	MessageOffer  MessageType = 2
	MessageAnswer MessageType = 3
	// MessageCandidate carries an ICE candidate as the bare attribute "candidate:…". The end of candidates is never told.
	MessageCandidate MessageType = 4
	// MessageQuality carries quality choices, from a receiver.
	MessageQuality MessageType = 7
)

// Message is one text frame of the websocket: CLIENT@TYPE@VALUE, both numbers in decimal.
type Message struct {
	// Client is 0 from servers, and 0 or 1 from peers, whatever their id: it means nothing.
	Client uint32
	Type   MessageType
	// Value is the rest. It may refer to nothing but itself: it is a copy.
	Value string
}

// ParseMessage reads one text frame. Everything behind the second "@" is the value, other "@" included, up to the first NUL and without spaces around it:
// peers pass on the connector's fixed buffers. Errors wrap ErrMessage.
func ParseMessage(text []byte) (Message, error) {
	parts := strings.SplitN(string(text), "@", 3)
	if len(parts) < 3 {
		return Message{}, fmt.Errorf("%w: %.32q has %d parts, expected CLIENT@TYPE@VALUE", ErrMessage, parts[0], len(parts))
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

// Append appends the text frame to dst. A value with "@" gives an error around ErrMessage, since old peers cut it off there: Description.Value makes
// none. Dst is then unchanged.
func (m Message) Append(dst []byte) ([]byte, error) {
	if i := strings.IndexByte(m.Value, '@'); i >= 0 {
		return dst, fmt.Errorf("%w: value of type %d has an @ at byte %d, where old peers would cut it off", ErrMessage, m.Type, i)
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

// ParseDescription reads the value of an offer or an answer. Errors wrap ErrDescription.
func ParseDescription(value string) (Description, error) {
	var d Description
	if err := json.Unmarshal([]byte(value), &d); err != nil {
		return Description{}, fmt.Errorf("%w: %v", ErrDescription, err)
	}
	if d.Type != "offer" && d.Type != "answer" || d.SDP == "" {
		return Description{}, fmt.Errorf("%w: type is %.32q with %d bytes of SDP, expected an offer or an answer", ErrDescription, d.Type, len(d.SDP))
	}
	return d, nil
}

// Value is the description as a message carries it. An "@" within is escaped, so that peers, which cut texts at each, get the whole of it.
func (d Description) Value() string {
	// A struct of two strings always marshals, whatever they hold.
	text, _ := json.Marshal(d)
	return strings.ReplaceAll(string(text), "@", `\u0040`)
}

// parseNumber reads a decimal number of 32 bits with spaces and NULs around it.
func parseNumber(field string) (uint32, error) {
	n, err := strconv.ParseUint(clean(field), 10, 32)
	return uint32(n), err
}

// clean cuts a text off at its first NUL and takes the spaces around it away: connectors send the fixed buffers of C strings.
func clean(text string) string {
	text, _, _ = strings.Cut(text, "\x00")
	return strings.TrimSpace(text)
}
