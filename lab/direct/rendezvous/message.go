// Package rendezvous connects a producer and a consumer without a server: one of them listens for a websocket, and the
// other one dials it. The websocket carries the hellos of both sides, the offer and the answer of a peer connection,
// the consumer's viewpoint, clock messages, and the records of both sides about each frame.
//
// The methods of a Conn are safe for concurrent use. One goroutine reads the websocket.
package rendezvous

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/volsfu/volsfu/lab/direct/stages"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Version is the version of the messages.
const Version = 1

// Errors of messages and of rendezvous. They are wrapped with the details.
var (
	ErrMessage = errors.New("malformed message")
	ErrEnded   = errors.New("the other side has ended")
	ErrRole    = errors.New("expected a producer and a consumer")
)

// Type is the type of a message. A message has the member of the same name, except for descriptions, which have SDP.
type Type string

// The message types.
const (
	TypeHello     Type = "hello"
	TypeOffer     Type = "offer"
	TypeAnswer    Type = "answer"
	TypeCandidate Type = "candidate"
	TypeViewpoint Type = "viewpoint"
	TypeTime      Type = "time"
	TypeSent      Type = "sent"
	TypeReceived  Type = "received"
	TypeBye       Type = "bye"
)

// Message is one message, a text frame with JSON.
type Message struct {
	Type      Type              `json:"type"`
	Hello     *Hello            `json:"hello,omitempty"`
	SDP       string            `json:"sdp,omitempty"`
	Candidate *Candidate        `json:"candidate,omitempty"`
	Viewpoint *signal.Viewpoint `json:"viewpoint,omitempty"`
	Time      *Time             `json:"time,omitempty"`
	Sent      []stages.Sent     `json:"sent,omitempty"`
	Received  []Received        `json:"received,omitempty"`
}

// The roles, the transports and the modes.
const (
	RoleProducer = "producer"
	RoleConsumer = "consumer"

	TransportWebRTC = "webrtc"
	TransportUDP    = "udp"

	// ModeAdaptive is payload v1 with sizes for the viewer and pacing. ModePaper002 is the tool of paper 002.
	ModeAdaptive = "adaptive"
	ModePaper002 = "paper002"
)

// Hello is the first message of each side.
type Hello struct {
	Version int    `json:"version"`
	Role    string `json:"role"`
	// SSRC is the SSRC of the side's RTCP reports. Over UDP, the consumer's greeting contains it.
	SSRC uint32 `json:"ssrc"`
	// The following fields are the producer's. Port is the port of its UDP socket, if there is one, and the SSRCs are
	// those of its streams there.
	Transport  string `json:"transport,omitempty"`
	Mode       string `json:"mode,omitempty"`
	Port       uint16 `json:"port,omitempty"`
	MediaSSRC  uint32 `json:"media_ssrc,omitempty"`
	RepeatSSRC uint32 `json:"repeat_ssrc,omitempty"`
	// ByStream is set if the consumer is to report arrivals by SSRC and sequence number (RFC 8888), and not by
	// transport-wide number.
	ByStream          bool                   `json:"by_stream,omitempty"`
	Codec             string                 `json:"codec,omitempty"`
	FrameRate         float64                `json:"frame_rate,omitempty"`
	Box               volumetric.BoundingBox `json:"box,omitzero"`
	SourceDescription string                 `json:"source,omitempty"`
}

// Candidate is an ICE candidate.
type Candidate struct {
	Candidate string `json:"candidate"`
	MID       string `json:"mid"`
	LineIndex int    `json:"line_index"`
}

// Time is a clock exchange, in microseconds since 1970. The consumer sends the first field; the producer answers with
// all three.
type Time struct {
	Asked    int64 `json:"asked_us"`
	Received int64 `json:"received_us,omitempty"`
	Answered int64 `json:"answered_us,omitempty"`
}

// Received is the consumer's record of a frame.
type Received struct {
	Number uint32 `json:"frame"`
	stages.Received
}

// maxRecords bounds the number of records in a message: several seconds of frames.
const maxRecords = 1000

// Parse parses a message. Errors wrap ErrMessage.
func Parse(data []byte) (m Message, err error) {
	if err := json.Unmarshal(data, &m); err != nil {
		return Message{}, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	if err := m.check(); err != nil {
		return Message{}, fmt.Errorf("%w %.32q: %w", ErrMessage, m.Type, err)
	}
	for i := range m.Received {
		m.Received[i].Frame = m.Received[i].Number
	}
	return m, nil
}

var (
	errMember = errors.New("the member of this type is missing")
	errType   = errors.New("unknown type")
	errMany   = fmt.Errorf("the message has more than %d records", maxRecords)
)

// check validates a message.
func (m *Message) check() error {
	there := true
	switch m.Type {
	case TypeHello:
		if m.Hello != nil {
			return m.Hello.check()
		}
		there = false
	case TypeOffer, TypeAnswer:
		there = m.SDP != ""
	case TypeCandidate:
		there = m.Candidate != nil
	case TypeViewpoint:
		if m.Viewpoint != nil {
			return m.Viewpoint.Validate()
		}
		there = false
	case TypeTime:
		there = m.Time != nil
	case TypeSent, TypeReceived:
		if len(m.Sent) > maxRecords || len(m.Received) > maxRecords {
			return errMany
		}
	case TypeBye:
	default:
		return errType
	}
	if !there {
		return errMember
	}
	return nil
}

// check validates a hello.
func (h *Hello) check() error {
	switch {
	case h.Version != Version:
		return fmt.Errorf("version is %d, expected %d", h.Version, Version)
	case h.Role == RoleConsumer:
		return nil
	case h.Role != RoleProducer:
		return fmt.Errorf("role is %.32q, expected %s or %s", h.Role, RoleProducer, RoleConsumer)
	case !slices.Contains([]string{TransportWebRTC, TransportUDP}, h.Transport):
		return fmt.Errorf("transport is %.32q, expected %s or %s", h.Transport, TransportWebRTC, TransportUDP)
	case !slices.Contains([]string{ModeAdaptive, ModePaper002}, h.Mode):
		return fmt.Errorf("mode is %.32q, expected %s or %s", h.Mode, ModeAdaptive, ModePaper002)
	case h.Transport == TransportUDP && h.Port == 0:
		return fmt.Errorf("there is no port, expected one with transport %s", TransportUDP)
	case len(h.Codec) != len(volumetric.FourCC{}):
		return fmt.Errorf("codec is %.32q, expected four characters", h.Codec)
	case !(h.FrameRate > 0 && h.FrameRate <= 1000):
		return fmt.Errorf("frame rate is %g, expected more than 0 and up to 1000", h.FrameRate)
	}
	for axis := range 3 {
		low, high := float64(h.Box.Min[axis]), float64(h.Box.Max[axis])
		if !(low <= high) || math.Abs(low) > signal.MaxCoordinate || math.Abs(high) > signal.MaxCoordinate {
			return fmt.Errorf("box is %v to %v, expected finite corners with min below max", h.Box.Min, h.Box.Max)
		}
	}
	return nil
}
