// Package stages keeps the log of frames that go directly from a producer to a consumer: when each stage of each frame
// was, and whether what came is what was sent. A Ledger joins what both sides say of a frame; it belongs to one
// goroutine. A Log writes to a file and may be used by several.
package stages

import (
	"time"

	"github.com/cespare/xxhash/v2"
)

// Instant is a time in microseconds since 1970, UTC, by the producer's clock; 0 where there is none. It fits into the
// integers that every reader of JSON has.
type Instant int64

// At makes an instant; the zero time is 0.
func At(t time.Time) Instant {
	if t.IsZero() {
		return 0
	}
	return Instant(t.UnixMicro())
}

// Since is how long after another instant this one is. It tells false where one is not known.
func (i Instant) Since(before Instant) (time.Duration, bool) {
	return time.Duration(i-before) * time.Microsecond, i != 0 && before != 0
}

// Hash is that of a frame as encoded: XXH64, which takes 30 µs for 400 kB.
func Hash(frame []byte) uint64 { return xxhash.Sum64(frame) }

// Sent is what a producer knows of a frame.
type Sent struct {
	Frame uint32 `json:"frame"`
	// Captured is when the source handed the frame over, which was captured at Capture; Taken when the encoder was free
	// for it; Sampled when its points were chosen.
	Capture   Instant `json:"capture_us"`
	Captured  Instant `json:"captured_us"`
	Taken     Instant `json:"taken_us"`
	Sampled   Instant `json:"sampled_us"`
	Encoded   Instant `json:"encoded_us"`
	FirstSent Instant `json:"first_sent_us"`
	LastSent  Instant `json:"last_sent_us"`
	// SourceFrame is the frame's number at the source, which counts those that nobody fetched, too.
	SourceFrame int64 `json:"source_frame"`
	// SourcePoints were captured, Points encoded, into Bytes of the codec.
	SourcePoints int `json:"source_points"`
	Points       int `json:"points"`
	Bytes        int `json:"bytes"`
	// Wire is what the frame took on the wire, headers included, and Target what it was to take; 0 where there was no
	// target.
	Wire    int `json:"wire_bytes"`
	Target  int `json:"target_bytes"`
	Packets int `json:"packets"`
	// Estimate is what the way to the consumer carried then, in bit/s; Bound is what decided on the points.
	Estimate int64  `json:"estimate_bps"`
	Bound    string `json:"bound"`
	// Dropped frames were encoded and never sent.
	Dropped bool   `json:"dropped"`
	Hash    uint64 `json:"hash,string"`
}

// Outcome is what became of a frame.
type Outcome string

// The outcomes.
const (
	// Intact frames came as they were sent.
	Intact Outcome = "intact"
	// Corrupt frames came, and not as they were sent.
	Corrupt Outcome = "corrupt"
	// Lost frames were sent, and did not come whole.
	Lost Outcome = "lost"
	// Unsent frames were dropped by their producer.
	Unsent Outcome = "unsent"
	// Unmatched frames came, and nothing is known of how they were sent.
	Unmatched Outcome = "unmatched"
)

// Received is what a consumer knows of a frame.
type Received struct {
	Frame         uint32  `json:"-"`
	FirstReceived Instant `json:"first_received_us"`
	LastReceived  Instant `json:"last_received_us"`
	Reassembled   Instant `json:"reassembled_us"`
	DecodeBegun   Instant `json:"decode_begun_us"`
	Decoded       Instant `json:"decoded_us"`
	Shown         Instant `json:"shown_us"`
	ReceivedBytes int     `json:"received_bytes"`
	DecodedPoints int     `json:"decoded_points"`
	// Superseded frames were complete, and a newer one was decoded in their place.
	Superseded   bool   `json:"superseded"`
	Undecodable  bool   `json:"undecodable"`
	ReceivedHash uint64 `json:"received_hash,string"`
}

// Record is what both sides know of a frame.
type Record struct {
	Sent
	Received
	Outcome Outcome `json:"outcome"`
}
