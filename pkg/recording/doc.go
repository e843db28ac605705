// Package recording implements the files in which a server records a room: the frames and packets that publishers sent,
// and the messages that the server sent to the room, with their times. docs/recording.md specifies the format.
//
// A recording is a folder of segments. A segment grows by whole records, each of which has a checksum. If the server
// dies, all records that were written remain readable. Every segment begins with the state of the room, so that each
// segment can be read alone.
package recording

import (
	"errors"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Errors of recordings. They are wrapped with the value found and the value expected.
var (
	// ErrFormat reports a file that is not a segment, or a record whose content is invalid.
	ErrFormat = errors.New("invalid recording")
	// ErrNone reports a folder without segments.
	ErrNone = errors.New("no recording")
)

// Qualities selects the qualities that are recorded.
type Qualities string

const (
	// Best records the best quality of each tile that the publisher's uplink carries. Of publications whose qualities
	// are descriptions, all are recorded.
	Best Qualities = "best"
	// All records all qualities.
	All Qualities = "all"
)

// Valid reports whether q is one of the constants.
func (q Qualities) Valid() bool { return q == Best || q == All }

// Record is the content of one record: *Head, *Publication, *Message, *Frame, *Unit, *Lost or *End.
type Record interface {
	// When returns the time of the record by the server's clock.
	When() time.Time
}

// Head is the first record of every segment.
type Head struct {
	Room string `json:"room"`
	// Recording is the same in all segments of a recording.
	Recording string `json:"recording"`
	// Segment counts the segments of the recording from 1.
	Segment int `json:"segment"`
	// Begun is when the segment began.
	Begun time.Time `json:"begun"`
	// Server is the version of the server.
	Server string `json:"server,omitempty"`
}

// Publication is a publication of the room. Frames and units name it by its ID.
type Publication struct {
	At time.Time `json:"-"`
	// ID is unique in the recording.
	ID          uint32    `json:"id"`
	Participant string    `json:"participant"`
	Qualities   Qualities `json:"qualities"`
	// Description is the publication as in signalling.
	Description volumetric.Publication `json:"publication"`
}

// Ref returns the names of the publication.
func (p *Publication) Ref() volumetric.PublicationRef {
	return volumetric.PublicationRef{Participant: p.Participant, Publication: p.Description.Name}
}

// Message is a message that the server sent to the whole room, as in signalling.
type Message struct {
	At time.Time
	// Text is the message in JSON.
	Text []byte
}

// Frame is a frame of payload v1, as it was published.
type Frame struct {
	// At is when the last needed packet arrived.
	At time.Time
	// Publication is the ID of the publication.
	Publication uint32
	Tile        int
	Quality     volumetric.Quality
	// Number is the frame number as sent.
	Number uint32
	// Prefixed is set if the frame began with a prefix, whose content is Codec and Capture. Capture is a 64-bit NTP
	// timestamp (RFC 5905), 0 if unknown. Without a prefix Codec is zero, and Capture is 0.
	Prefixed bool
	Codec    volumetric.FourCC
	Capture  uint64
	// Data is the frame without the prefix.
	Data []byte
}

// Unit has the packets of one frame of a codec without payload v1, in order: a packet of audio, or the packets of an
// image.
type Unit struct {
	// At is when the last packet arrived.
	At          time.Time
	Publication uint32
	Tile        int
	Quality     volumetric.Quality
	// Timestamp is the RTP timestamp of the publisher.
	Timestamp uint32
	// Capture is the capture time as in Frame, by the sender reports of the publisher, 0 before the first.
	Capture uint64
	// Payloads are the RTP payloads.
	Payloads [][]byte
}

// Lost counts frames and units that were published and could not be recorded, since the beginning of the recording.
type Lost struct {
	At time.Time `json:"-"`
	// Incomplete counts frames that did not arrive whole. Overrun counts packets that the recorder did not read in
	// time. Discarded counts frames for which the disk was too slow or full.
	Incomplete uint64 `json:"incomplete,omitempty"`
	Overrun    uint64 `json:"overrun,omitempty"`
	Discarded  uint64 `json:"discarded,omitempty"`
}

// Total returns the sum of the counts.
func (l *Lost) Total() uint64 { return l.Incomplete + l.Overrun + l.Discarded }

// End is the last record of a segment. A segment without End was cut off.
type End struct {
	At time.Time `json:"-"`
	// Continues is set if the recording continues in the next segment.
	Continues bool   `json:"continues,omitempty"`
	Reason    string `json:"reason"`
}

// When implements Record.
func (h *Head) When() time.Time { return h.Begun }

// When implements Record.
func (p *Publication) When() time.Time { return p.At }

// When implements Record.
func (m *Message) When() time.Time { return m.At }

// When implements Record.
func (f *Frame) When() time.Time { return f.At }

// When implements Record.
func (u *Unit) When() time.Time { return u.At }

// When implements Record.
func (l *Lost) When() time.Time { return l.At }

// When implements Record.
func (e *End) When() time.Time { return e.At }
