package stages

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ErrLog is returned for a malformed log.
var ErrLog = errors.New("invalid log of frames")

// Limits of a log. A line has about 700 bytes; an hour has 108,000 lines.
const (
	maxLine    = 16 << 10
	maxRecords = 1 << 20
)

// Read reads a log in JSON, as written by Create. Errors wrap ErrLog and name the line.
func Read(from io.Reader) (records []Record, err error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	for line := 1; lines.Scan(); line++ {
		if len(records) == maxRecords {
			return nil, fmt.Errorf("%w: more than %d frames", ErrLog, maxRecords)
		}
		var r Record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrLog, line, err)
		}
		// The frame number is the producer's in both records.
		r.Received.Frame = r.Sent.Frame
		records = append(records, r)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLog, err)
	}
	return records, nil
}
