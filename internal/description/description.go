package description

import (
	"errors"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrDescription is wrapped with what is wrong in a session description.
var ErrDescription = errors.New("invalid session description")

// Role is who opens the DTLS connection (a=setup, RFC 4145 section 4).
type Role string

// The roles of DTLS.
const (
	// RoleActpass leaves the choice to the answerer. It is for offers.
	RoleActpass Role = "actpass"
	// RoleActive is the client of DTLS.
	RoleActive Role = "active"
	// RolePassive is the server of DTLS.
	RolePassive Role = "passive"
)

// Direction says who sends on a line, as its describing side sees it (RFC 8866 section 6.7).
type Direction string

// The directions of a line.
const (
	DirectionSendRecv Direction = "sendrecv"
	DirectionSendOnly Direction = "sendonly"
	DirectionRecvOnly Direction = "recvonly"
	DirectionInactive Direction = "inactive"
)

// Reversed is the direction as the other side sees it.
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

// Sends tells whether the describing side sends.
func (d Direction) Sends() bool { return d == DirectionSendRecv || d == DirectionSendOnly }

// Receives tells whether the describing side receives.
func (d Direction) Receives() bool { return d == DirectionSendRecv || d == DirectionRecvOnly }

// Transport is the one transport that all lines share.
type Transport struct {
	// Ufrag and Password are the credentials of ICE (RFC 8839 section 5.4).
	Ufrag, Password string
	// Fingerprint is that of the DTLS certificate (RFC 8122): the name of the hash function, a space and its value, as in "sha-256 AB:CD:…".
	Fingerprint string
	Role        Role
	// Lite says that the describing side only answers connectivity checks (a=ice-lite).
	Lite bool
	// Candidates are those of ICE (RFC 8839 section 5.1), each beginning with "candidate:".
	Candidates []string
	// EndOfCandidates says that no more will follow (RFC 8840).
	EndOfCandidates bool
}

// Codec is a payload format that a side can receive on a line, or sends on it.
type Codec struct {
	// MIMEType begins with the kind of the line, as in "video/VP8". On lines of either kind, volumetric.MIMEOpaque is "opaque".
	MIMEType string
	// ClockRate is the RTP clock in Hz.
	ClockRate uint32
	// Channels is the number of audio channels, 0 where the description names none.
	Channels uint16
	// Format are the parameters of a=fmtp, empty where there are none.
	Format string
	// Feedback are the RTCP messages that may be sent about it (RFC 4585 section 4.2), such as "nack", "nack pli", "ccm fir" and "transport-cc".
	Feedback []string
	// PayloadType is the RTP payload type, 0 to 127.
	PayloadType uint8
	// Retransmission is the payload type of its retransmissions (RFC 4588), 0 where there are none.
	Retransmission uint8
}

// Extension is an RTP header extension and its local identifier (RFC 8285), 1 to 255.
type Extension struct {
	ID  int
	URI string
}

// Streams are the SSRCs that a side sends on a line.
type Streams struct {
	// SSRC is the media's, 0 where the description names none.
	SSRC uint32
	// Retransmission is the SSRC of the RTX stream, 0 where there is none.
	Retransmission uint32
}

// Line is one media line (m=) of a description.
type Line struct {
	// MID names the line (RFC 5888). It is empty only on rejected lines of others.
	MID string
	// Kind is that of the media, or KindData. Lines of other kinds are always rejected.
	Kind      volumetric.Kind
	Direction Direction
	// Rejected says that the line is not used (port 0). Of a rejected line only MID and Kind are described; its direction is inactive.
	Rejected bool
	// DataPort is the port of SCTP on lines of KindData (RFC 8841 section 5), whose direction is both ways, and which have nothing of what follows.
	DataPort uint16
	// Codecs are in order of preference.
	Codecs     []Codec
	Extensions []Extension
	// CongestionFeedback says that who receives on the line may report arrivals by RFC 8888, in an answer that it does.
	CongestionFeedback bool
	// Streams are those of the describing side, where it sends.
	Streams Streams
	// Stream are the identifiers of the media stream and of its track, with a space between them (a=msid, RFC 8830), where the describing side sends.
	Stream string
}

// Description is an offer or an answer. None of its strings may contain a line break.
type Description struct {
	// SessionID stays the same for the life of a peer connection, below 2^63; Version rises by one with each description (RFC 8829 section 5.2.2).
	SessionID, Version uint64
	// Transport is zero in what Parse returns where every line is rejected.
	Transport Transport
	Lines     []Line
}

// KindData is the kind of a line with data channels (RFC 8841).
const KindData volumetric.Kind = "application"

const (
	// DataPort is the port that SCTP is offered on.
	DataPort = 5000
	// MaxDataMessage is how long a message on a data channel may be, in bytes (a=max-message-size, RFC 8841 section 6).
	MaxDataMessage = 256 << 10
)

// known tells whether lines of the kind have codecs.
func known(kind volumetric.Kind) bool {
	return kind == volumetric.KindVideo || kind == volumetric.KindAudio
}

// tagged is the index of the line that stands for all in the BUNDLE group: the first that is not rejected, -1 where there is none.
func (d *Description) tagged() int {
	for i := range d.Lines {
		if !d.Lines[i].Rejected {
			return i
		}
	}
	return -1
}
