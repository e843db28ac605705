package description

import (
	"errors"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrDescription is the sentinel of invalid session descriptions. The wrapping error has the reason.
var ErrDescription = errors.New("invalid session description")

// Role is the DTLS role of the describing side (a=setup, RFC 4145 section 4).
type Role string

// The roles of DTLS.
const (
	// RoleActpass leaves the choice to the answerer. It is for offers.
	RoleActpass Role = "actpass"
	// RoleActive is the DTLS client.
	RoleActive Role = "active"
	// RolePassive is the DTLS server.
	RolePassive Role = "passive"
)

// Direction is the direction of a line, from the view of the describing side (RFC 8866 section 6.7).
type Direction string

// The directions of a line.
const (
	DirectionSendRecv Direction = "sendrecv"
	DirectionSendOnly Direction = "sendonly"
	DirectionRecvOnly Direction = "recvonly"
	DirectionInactive Direction = "inactive"
)

// Reversed returns the direction from the view of the other side.
func (d Direction) Reversed() Direction {
	switch d {
	case DirectionSendOnly:
		return DirectionRecvOnly
	case DirectionRecvOnly:
		return DirectionSendOnly
	default:
		return d
	}
}

// Sends reports whether the describing side sends.
func (d Direction) Sends() bool { return d == DirectionSendRecv || d == DirectionSendOnly }

// Receives reports whether the describing side receives.
func (d Direction) Receives() bool { return d == DirectionSendRecv || d == DirectionRecvOnly }

// Transport is the transport shared by all lines.
type Transport struct {
	// Ufrag and Password are the ICE credentials (RFC 8839 section 5.4).
	Ufrag, Password string
	// Fingerprint is that of the DTLS certificate (RFC 8122): the name of the hash function, a space and the value, as
	// in "sha-256 AB:CD:…".
	Fingerprint string
	Role        Role
	// Lite is set if the describing side only answers connectivity checks (a=ice-lite).
	Lite bool
	// Candidates are the ICE candidates (RFC 8839 section 5.1), each beginning with "candidate:".
	Candidates []string
	// EndOfCandidates is set if no more candidates follow (RFC 8840).
	EndOfCandidates bool
}

// Codec is a payload format that a side can receive on a line, or sends on it.
type Codec struct {
	// MIMEType begins with the kind of the line, as in "video/VP8". On lines of either kind, volumetric.MIMEOpaque is
	// "opaque".
	MIMEType string
	// ClockRate is the RTP clock rate in Hz.
	ClockRate uint32
	// Channels is the number of audio channels, 0 if the description has none.
	Channels uint16
	// Format has the parameters of a=fmtp, empty if there are none.
	Format string
	// Feedback has the RTCP messages that may be sent for the codec (RFC 4585 section 4.2), such as "nack", "nack pli",
	// "ccm fir" and "transport-cc".
	Feedback []string
	// PayloadType is the RTP payload type, 0 to 127.
	PayloadType uint8
	// Retransmission is the payload type of retransmissions (RFC 4588), 0 if there are none.
	Retransmission uint8
}

// Extension is an RTP header extension and its local identifier (RFC 8285), 1 to 255.
type Extension struct {
	ID  int
	URI string
}

// Streams are the SSRCs that a side sends on a line.
type Streams struct {
	// SSRC is that of the media, 0 if the description has none.
	SSRC uint32
	// Retransmission is the SSRC of the RTX stream, 0 if there is none.
	Retransmission uint32
}

// Line is one media line (m=) of a description.
type Line struct {
	// MID identifies the line (RFC 5888). It is empty only on rejected lines of others.
	MID string
	// Kind is that of the media, or KindData. Lines of other kinds are always rejected.
	Kind      volumetric.Kind
	Direction Direction
	// Rejected is set if the line is not used (port 0). A rejected line has only MID and Kind; its direction is
	// inactive.
	Rejected bool
	// DataPort is the SCTP port of lines of KindData (RFC 8841 section 5), whose direction is sendrecv. The fields
	// below are empty on such lines.
	DataPort uint16
	// Codecs are in order of preference.
	Codecs     []Codec
	Extensions []Extension
	// CongestionFeedback is set if the receiver of the line's media may report arrivals by RFC 8888 (offer), or does
	// (answer).
	CongestionFeedback bool
	// Layers are the encodings of a line with simulcast that the describing side sends, or receives if the direction
	// does not send.
	Layers []Layer
	// Streams are those of the describing side, if it sends.
	Streams Streams
	// Stream has the identifiers of the media stream and of its track, separated by a space (a=msid, RFC 8830), if the
	// describing side sends.
	Stream string
}

// Description is an offer or an answer. None of its strings may contain a line break.
type Description struct {
	// SessionID is constant for the life of a peer connection, below 2^63; Version increases by one with each
	// description (RFC 8829 section 5.2.2).
	SessionID, Version uint64
	// Transport is zero in the result of Parse if every line is rejected.
	Transport Transport
	Lines     []Line
}

// KindData is the kind of a line with data channels (RFC 8841).
const KindData volumetric.Kind = "application"

const (
	// DataPort is the offered SCTP port.
	DataPort = 5000
	// MaxDataMessage is the maximum length of a message on a data channel, in bytes (a=max-message-size, RFC 8841
	// section 6).
	MaxDataMessage = 256 << 10
)

// known reports whether lines of the kind have codecs.
func known(kind volumetric.Kind) bool {
	return kind == volumetric.KindVideo || kind == volumetric.KindAudio
}

// tagged returns the index of the tagged line of the BUNDLE group: the first that is not rejected, or -1.
func (d *Description) tagged() int {
	for i := range d.Lines {
		if !d.Lines[i].Rejected {
			return i
		}
	}
	return -1
}
