// Package stages records frames that are sent directly from a producer to a consumer: the time of each stage of each
// frame, and whether the received frame equals the sent one. A Ledger joins the records of both sides and is owned by
// one goroutine. A Log writes to a file and may be used by several goroutines.
package stages

import (
	"time"

	"github.com/cespare/xxhash/v2"
)

// Instant is a time in microseconds since 1970, UTC, by the producer's clock; 0 if it is unknown. It fits the integers
// of every JSON parser.
type Instant int64

// At returns the Instant of a time. The zero time is 0.
func At(t time.Time) Instant {
	if t.IsZero() {
		return 0
	}
	return Instant(t.UnixMicro())
}

// Since returns the time between another instant and this one. It returns false if one of them is unknown.
func (i Instant) Since(before Instant) (time.Duration, bool) {
	return time.Duration(i-before) * time.Microsecond, i != 0 && before != 0
}

// Hash returns the hash of an encoded frame: XXH64, which takes 30 µs for 400 kB.
func Hash(frame []byte) uint64 { return xxhash.Sum64(frame) }

// Sent is the producer's record of a frame.
type Sent struct {
	Frame uint32 `json:"frame"`
	// Capture is the capture time. Captured is the time at which the source returned the frame, Taken the time at which
	// the encoder was free for it, Sampled the time at which its points were selected.
	Capture   Instant `json:"capture_us"`
	Captured  Instant `json:"captured_us"`
	Taken     Instant `json:"taken_us"`
	Sampled   Instant `json:"sampled_us"`
	Encoded   Instant `json:"encoded_us"`
	FirstSent Instant `json:"first_sent_us"`
	LastSent  Instant `json:"last_sent_us"`
	// SourceFrame is the frame's number at the source, which also counts frames that were not read.
	SourceFrame int64 `json:"source_frame"`
	// SourcePoints is the number of captured points, Points the number of encoded points, Bytes the size of the codec's
	// data.
	SourcePoints int `json:"source_points"`
	Points       int `json:"points"`
	Bytes        int `json:"bytes"`
	// Wire is the size on the wire including headers, Target the intended size; 0 without a target.
	Wire    int `json:"wire_bytes"`
	Target  int `json:"target_bytes"`
	Packets int `json:"packets"`
	// Estimate is the bandwidth estimate at that time, in bit/s. Bound is the limit that determined the points.
	Estimate int64  `json:"estimate_bps"`
	Bound    string `json:"bound"`
	// Dropped is set if the frame was encoded and never sent.
	Dropped bool   `json:"dropped"`
	Hash    uint64 `json:"hash,string"`
}

// Outcome is the result of a frame.
type Outcome string

// The outcomes.
const (
	// Intact frames arrived as they were sent.
	Intact Outcome = "intact"
	// Corrupt frames arrived with other content than was sent.
	Corrupt Outcome = "corrupt"
	// Lost frames were sent and did not arrive completely.
	Lost Outcome = "lost"
	// Unsent frames were dropped by the producer.
	Unsent Outcome = "unsent"
	// Unmatched frames arrived without a record of the producer.
	Unmatched Outcome = "unmatched"
)

// Received is the consumer's record of a frame.
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
	// Superseded is set if the frame was complete and a newer one was decoded instead.
	Superseded   bool   `json:"superseded"`
	Undecodable  bool   `json:"undecodable"`
	ReceivedHash uint64 `json:"received_hash,string"`
}

// Record has the records of both sides about a frame.
type Record struct {
	Sent
	Received
	Outcome Outcome `json:"outcome"`
}
