// Package signal defines signalling v1: the JSON text frames that a client and the server exchange
// over the websocket at Path, their encoding and decoding, and the error codes. docs/signalling.md
// describes the protocol for readers, schema.json for programs.
//
// Messages are plain data without an owner.
package signal

import "time"

const (
	// Version is the version of the protocol, as sent in a join.
	Version = 1
	// Path is the URL path of the websocket.
	Path = "/v1/signal"
	// MaxMessageBytes is the maximum size of a message in either direction. A session description
	// has about 1 kB per line, and receivers have hundreds of lines.
	MaxMessageBytes = 2 << 20
	// DefaultDeadline is the time after its first packet for which a frame is repaired if the join
	// sets no deadline.
	DefaultDeadline = 150 * time.Millisecond
	// MinDeadline and MaxDeadline are the bounds of the deadline in a join. Below 20 ms no
	// retransmission over a network arrives in time. Beyond 2 s a conversation is no longer
	// possible, and the waiting frames would fill the memory.
	MinDeadline = 20 * time.Millisecond
	MaxDeadline = 2 * time.Second
)

// Limits on the parts of messages, independent of the server's configuration.
const (
	// MaxIDLength is the maximum length of a request's id, in bytes.
	MaxIDLength = 128
	// MaxMIDLength is the maximum length of the mid of a media line, in bytes.
	MaxMIDLength = 64
	// MaxPublications is the maximum number of publications in a join.
	MaxPublications = 64
	// MaxPlacements is the maximum number of objects that a receiver arranges.
	MaxPlacements = 1024
	// MaxChoices is the maximum number of choices in a message, MaxSlots the maximum number of
	// slots. 16 participants with 256 tiles each fit.
	MaxChoices = 4096
	MaxSlots   = 4096
	// MaxGaveUp is the maximum number of tracks in an uplink message: all tracks of 64 publications
	// with 64 tracks each.
	MaxGaveUp = 4096
	// MaxCandidateLength is the maximum length of an ICE candidate, in bytes. Real candidates have
	// about 100 bytes.
	MaxCandidateLength = 1024
	// MaxFormatLength is the maximum length of a codec's parameters, in bytes. H.264 with its
	// parameter sets has about 200 bytes.
	MaxFormatLength = 1024
	// MaxSessionLength is the maximum length of a session's name, in bytes.
	MaxSessionLength = 256
	// MaxSecretLength is the maximum length of a resume secret and of a ticket, in bytes. In a cluster a secret is a
	// ticket: encrypted names of up to 128 bytes each and about 100 bytes more, in base64.
	MaxSecretLength = 1024
	// MaxRegionLength is the maximum length of the name of a region, in bytes.
	MaxRegionLength = 64
)
