// Package signal defines signalling v1: the JSON text frames that a client and the server exchange over the websocket at Path, how they are
// encoded and decoded, and the codes of errors. It is described for people in docs/signalling.md and for machines in schema.json.
// Messages are plain data; nobody owns them.
package signal

import "time"

const (
	// Version is the version of the protocol that a join names.
	Version = 1
	// Path is where the server takes websockets of this protocol.
	Path = "/v1/signal"
	// MaxMessageBytes bounds one message in either direction: an SDP has about 1 kB per line, and receivers have hundreds of lines.
	MaxMessageBytes = 2 << 20
	// DefaultDeadline is how long after its first packet a frame is worth repairing where the join does not say.
	DefaultDeadline = 150 * time.Millisecond
	// MinDeadline and MaxDeadline bound what a join may ask for: below 20 ms no retransmission over a network comes in time, and beyond 2 s
	// nobody confers any more, while the frames that wait would fill the memory.
	MinDeadline = 20 * time.Millisecond
	MaxDeadline = 2 * time.Second
)

// Limits on the parts of messages, whatever the server's configuration says.
const (
	// MaxIDLength is the length in bytes of a request's id.
	MaxIDLength = 128
	// MaxMIDLength is the length in bytes of the name of a media line.
	MaxMIDLength = 64
	// MaxPublications is the number of publications that one join announces.
	MaxPublications = 64
	// MaxPlacements is the number of objects that one receiver arranges.
	MaxPlacements = 1024
	// MaxChoices is the number of choices in one message, and MaxSlots that of slots: 16 participants with 256 tiles each fit.
	MaxChoices = 4096
	MaxSlots   = 4096
	// MaxGaveUp is the number of tracks in one message about the uplink: every track of 64 publications of 64 tracks each.
	MaxGaveUp = 4096
	// MaxCandidateLength is the length in bytes of an ICE candidate; real ones have about 100.
	MaxCandidateLength = 1024
	// MaxFormatLength is the length in bytes of a codec's parameters; H.264 with its parameter sets has about 200.
	MaxFormatLength = 1024
	// MaxSecretLength is the length in bytes of a session's name and of its resume secret.
	MaxSecretLength = 256
)
