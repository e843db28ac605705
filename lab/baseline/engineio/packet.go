// Package engineio is a relay over websockets with the framing of engine.io (protocol 4) and socket.io (protocol 5),
// like VR2Gather's SocketIO transport: a frame is an event with a binary attachment, which the server relays to all
// other clients.
package engineio

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrPacket reports an invalid packet. The wrapping error has the packet.
var ErrPacket = errors.New("malformed packet")

// Type is the first character of an engine.io packet in a text message. A binary message is a packet of type Message
// without a type character.
type Type byte

// The types of engine.io.
const (
	Open    Type = '0'
	Closing Type = '1'
	Ping    Type = '2'
	Pong    Type = '3'
	Message Type = '4'
	Upgrade Type = '5'
	Noop    Type = '6'
)

// Handshake is the data of the packet Open. Times are in milliseconds.
type Handshake struct {
	SID          string   `json:"sid"`
	Upgrades     []string `json:"upgrades"`
	PingInterval int      `json:"pingInterval"`
	PingTimeout  int      `json:"pingTimeout"`
	MaxPayload   int      `json:"maxPayload"`
}

// Append appends a packet.
func Append(dst []byte, t Type, data []byte) []byte { return append(append(dst, byte(t)), data...) }

// Parse splits a text message into its type and data.
func Parse(text []byte) (Type, []byte, error) {
	if len(text) == 0 || text[0] < byte(Open) || text[0] > byte(Noop) {
		return 0, nil, fmt.Errorf("%w: %.32q, expected 0 to 6 at the beginning", ErrPacket, text)
	}
	return Type(text[0]), text[1:], nil
}

// Kind is the first character of a socket.io packet, which is the data of a Message.
type Kind byte

// The kinds of socket.io that the relay uses.
const (
	Connect     Kind = '0'
	Disconnect  Kind = '1'
	Event       Kind = '2'
	BinaryEvent Kind = '5'
)

// maxAttachments bounds the binary messages that a packet may announce. An event of the relay has one.
const maxAttachments = 16

// Packet is a socket.io packet: kind, number of attachments and a dash (binary kinds), namespace and a comma (except
// for /), number of the acknowledgement, JSON.
type Packet struct {
	Kind        Kind
	Attachments int
	Namespace   string
	// ID is the number of the acknowledgement, -1 for none.
	ID   int
	JSON json.RawMessage
}

// Append appends the packet in the form of a text message, with engine.io's type.
func (p Packet) Append(dst []byte) []byte {
	dst = append(dst, byte(Message), byte(p.Kind))
	if p.Kind == BinaryEvent {
		dst = append(strconv.AppendInt(dst, int64(p.Attachments), 10), '-')
	}
	if p.Namespace != "" && p.Namespace != "/" {
		dst = append(append(dst, p.Namespace...), ',')
	}
	if p.ID >= 0 {
		dst = strconv.AppendInt(dst, int64(p.ID), 10)
	}
	return append(dst, p.JSON...)
}

// ParsePacket parses the data of a Message. Errors wrap ErrPacket.
func ParsePacket(data []byte) (Packet, error) {
	fail := func(why string) (Packet, error) { return Packet{}, fmt.Errorf("%w: %.64q: %s", ErrPacket, data, why) }
	if len(data) == 0 || data[0] < '0' || data[0] > '6' {
		return fail("expected 0 to 6 at the beginning")
	}
	p, rest := Packet{Kind: Kind(data[0]), ID: -1, Namespace: "/"}, string(data[1:])
	if p.Kind >= BinaryEvent {
		count, after, found := strings.Cut(rest, "-")
		n, err := strconv.Atoi(count)
		if !found || err != nil || n < 0 || n > maxAttachments {
			return fail("expected a number of attachments and a dash")
		}
		p.Attachments, rest = n, after
	}
	if strings.HasPrefix(rest, "/") {
		namespace, after, _ := strings.Cut(rest, ",")
		p.Namespace, rest = namespace, after
	}
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	if digits > 0 {
		id, err := strconv.ParseInt(rest[:digits], 10, 32)
		if err != nil {
			return fail("expected a smaller number")
		}
		p.ID, rest = int(id), rest[digits:]
	}
	if rest != "" {
		if !json.Valid([]byte(rest)) {
			return fail("expected JSON")
		}
		p.JSON = json.RawMessage(rest)
	}
	return p, nil
}

// Events of the relay: from a client to the relay, and from the relay to other clients.
const (
	EventSend    = "SendData"
	EventReceive = "DataReceived"
)

// placeholder represents the attachment in an event's JSON.
const placeholder = `{"_placeholder":true,"num":0}`

// AppendEvent appends an event about a stream with one attachment, in the form of a text message. The stream's name
// must not contain characters that JSON escapes.
func AppendEvent(dst []byte, event, stream string) []byte {
	dst = append(dst, byte(Message), byte(BinaryEvent), '1', '-')
	dst = append(append(dst, `["`...), event...)
	dst = append(append(dst, `","`...), stream...)
	return append(append(append(dst, `",`...), placeholder...), ']')
}

// ParseEvent parses the JSON of an event with one attachment. Errors wrap ErrPacket.
func (p *Packet) ParseEvent() (event, stream string, err error) {
	var fields []json.RawMessage
	var held struct {
		Placeholder bool `json:"_placeholder"`
		Num         int  `json:"num"`
	}
	if p.Kind != BinaryEvent || p.Attachments != 1 {
		return "", "", fmt.Errorf("%w: kind %c with %d attachments, expected %c with 1", ErrPacket, p.Kind,
			p.Attachments, BinaryEvent)
	}
	if json.Unmarshal(p.JSON, &fields) != nil || len(fields) != 3 || json.Unmarshal(fields[0], &event) != nil ||
		json.Unmarshal(fields[1], &stream) != nil ||
		json.Unmarshal(fields[2], &held) != nil || !held.Placeholder || held.Num != 0 {
		return "", "", fmt.Errorf("%w: %.64q, expected an event, a stream and a placeholder", ErrPacket, p.JSON)
	}
	return event, stream, nil
}
