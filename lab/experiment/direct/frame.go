package direct

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/volsfu/volsfu/lab/experiment"
)

// ErrLog reports an invalid log of frames.
var ErrLog = errors.New("invalid log of frames")

// The outcomes of frames in the log of vollab direct.
const (
	Intact = "intact"
	Unsent = "unsent"
)

// Instant is a time in microseconds since 1970 by the producer's clock, 0 if unknown.
type Instant int64

// Since returns the seconds since a time.
func (i Instant) Since(t time.Time) float64 { return float64(int64(i)-t.UnixMicro()) / 1e6 }

// Frame is a frame in the log of vollab direct; docs/direct.md defines the times.
type Frame struct {
	Number        uint32  `json:"frame"`
	Capture       Instant `json:"capture_us"`
	Captured      Instant `json:"captured_us"`
	Taken         Instant `json:"taken_us"`
	Sampled       Instant `json:"sampled_us"`
	Encoded       Instant `json:"encoded_us"`
	FirstSent     Instant `json:"first_sent_us"`
	LastSent      Instant `json:"last_sent_us"`
	FirstReceived Instant `json:"first_received_us"`
	LastReceived  Instant `json:"last_received_us"`
	Reassembled   Instant `json:"reassembled_us"`
	DecodeBegun   Instant `json:"decode_begun_us"`
	Decoded       Instant `json:"decoded_us"`
	Shown         Instant `json:"shown_us"`
	SourceFrame   int64   `json:"source_frame"`
	SourcePoints  int     `json:"source_points"`
	Points        int     `json:"points"`
	Bytes         int     `json:"bytes"`
	Wire          int     `json:"wire_bytes"`
	Estimate      int64   `json:"estimate_bps"`
	Bound         string  `json:"bound"`
	Superseded    bool    `json:"superseded"`
	Undecodable   bool    `json:"undecodable"`
	Outcome       string  `json:"outcome"`
}

// Stamp selects one of a frame's times.
type Stamp func(*Frame) Instant

// Times of a frame, by their names in the log.
var (
	Capture      Stamp = func(f *Frame) Instant { return f.Capture }
	Captured     Stamp = func(f *Frame) Instant { return f.Captured }
	Taken        Stamp = func(f *Frame) Instant { return f.Taken }
	Sampled      Stamp = func(f *Frame) Instant { return f.Sampled }
	Encoded      Stamp = func(f *Frame) Instant { return f.Encoded }
	FirstSent    Stamp = func(f *Frame) Instant { return f.FirstSent }
	LastSent     Stamp = func(f *Frame) Instant { return f.LastSent }
	LastReceived Stamp = func(f *Frame) Instant { return f.LastReceived }
	Reassembled  Stamp = func(f *Frame) Instant { return f.Reassembled }
	DecodeBegun  Stamp = func(f *Frame) Instant { return f.DecodeBegun }
	Decoded      Stamp = func(f *Frame) Instant { return f.Decoded }
	Shown        Stamp = func(f *Frame) Instant { return f.Shown }
)

// Sent reports whether the frame left the producer.
func (f *Frame) Sent() bool { return f.FirstSent != 0 && f.Outcome != Unsent }

// Bounds of a log. Lines have some 700 bytes, and an hour has 108,000 lines.
const (
	maxLine   = 16 << 10
	maxFrames = 1 << 20
)

// ParseFrames parses a log. Errors wrap ErrLog and name the line.
func ParseFrames(from io.Reader) ([]Frame, error) {
	var frames []Frame
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	for line := 1; lines.Scan(); line++ {
		if len(frames) == maxFrames {
			return nil, fmt.Errorf("%w: more than %d frames", ErrLog, maxFrames)
		}
		var f Frame
		if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrLog, line, err)
		}
		frames = append(frames, f)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLog, err)
	}
	return frames, nil
}

// ReadFrames reads the log in a file.
func ReadFrames(name string) ([]Frame, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	frames, err := ParseFrames(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return frames, nil
}

// Span returns the milliseconds between two instants of each frame that has both, in the order of the frames.
func Span(frames []Frame, from, until Stamp) (ms []float64) {
	for i := range frames {
		a, b := from(&frames[i]), until(&frames[i])
		if a != 0 && b != 0 {
			ms = append(ms, float64(b-a)/1e3)
		}
	}
	return ms
}

// Begin returns the capture time of the first frame of a log.
func Begin(frames []Frame) (begin Instant) {
	for i := range frames {
		if at := frames[i].Capture; at != 0 && (begin == 0 || at < begin) {
			begin = at
		}
	}
	return begin
}

// Between returns the frames captured between two times after the first capture; an end of 0 selects all later frames.
func Between(frames []Frame, from, until time.Duration) (some []Frame) {
	begin := Begin(frames)
	for _, f := range frames {
		since := time.Duration(f.Capture-begin) * time.Microsecond
		if f.Capture != 0 && since >= from && (until == 0 || since < until) {
			some = append(some, f)
		}
	}
	return some
}

// Deviation returns the standard deviation of values as a population, 0 for no values.
func Deviation(values []float64) float64 {
	mean, sum := experiment.Mean(values), 0.0
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	return math.Sqrt(sum / float64(max(len(values), 1)))
}
