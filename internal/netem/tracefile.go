package netem

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The columns of a trace file.
const (
	columnTime = "t_s"
	columnRate = "mbps"
)

// ReadRateTrace reads a trace from CSV text whose header has the columns t_s, seconds, and mbps, Mbit/s; other columns
// are ignored. The times do not decrease, and count from the first row. A measured throughput is used as the rate of
// the link. Each row applies until the time of the next one, so that of several rows with the same time the last one
// counts; the last row has the duration of the one before it, or 1 s if it is the only one. The trace does not loop.
// ReadRateTrace does not call Validate, because a trace that ends in an outage is valid only with a loop. Errors wrap
// ErrTrace with the line, or are those of r.
func ReadRateTrace(r io.Reader) (RateTrace, error) {
	reader := csv.NewReader(r)
	reader.ReuseRecord = true
	header, err := reader.Read()
	if err != nil {
		return RateTrace{}, traceError(err)
	}
	timeColumn, rateColumn := slices.Index(header, columnTime), slices.Index(header, columnRate)
	if timeColumn < 0 || rateColumn < 0 {
		return RateTrace{}, fmt.Errorf("%w: line 1 is %q, expected a header with the columns %s and %s", ErrTrace,
			strings.Join(header, ","), columnTime, columnRate)
	}
	var trace RateTrace
	var first time.Duration
	for {
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return RateTrace{}, traceError(err)
		}
		line, _ := reader.FieldPos(0)
		seconds, err := traceNumber(record[timeColumn], maxTraceDuration.Seconds())
		if err != nil {
			return RateTrace{}, fmt.Errorf("%w: line %d: %s %w", ErrTrace, line, columnTime, err)
		}
		mbps, err := traceNumber(record[rateColumn], maxRateBPS/1e6)
		if err != nil {
			return RateTrace{}, fmt.Errorf("%w: line %d: %s %w", ErrTrace, line, columnRate, err)
		}
		step := RateStep{At: time.Duration(math.Round(seconds * 1e9)), RateBPS: int(math.Round(mbps * 1e6))}
		if len(trace.Steps) == 0 {
			first = step.At
		}
		step.At -= first
		if !trace.append(step) {
			return RateTrace{}, fmt.Errorf("%w: line %d: %s is %s, expected no earlier time than in the line before",
				ErrTrace, line, columnTime, record[timeColumn])
		}
	}
	if len(trace.Steps) == 0 {
		return RateTrace{}, fmt.Errorf("%w: it has no rows, expected at least one after the header", ErrTrace)
	}
	trace.setDuration()
	return trace, nil
}

// append adds a step, or replaces the last one if the times are equal. It returns false if the step begins earlier.
func (t *RateTrace) append(s RateStep) bool {
	last := len(t.Steps) - 1
	switch {
	case last < 0 || s.At > t.Steps[last].At:
		t.Steps = append(t.Steps, s)
	case s.At == t.Steps[last].At:
		t.Steps[last] = s
	default:
		return false
	}
	return true
}

// setDuration makes the last step as long as the one before it.
func (t *RateTrace) setDuration() {
	last := len(t.Steps) - 1
	length := time.Second
	if last > 0 {
		length = t.Steps[last].At - t.Steps[last-1].At
	}
	t.Duration = t.Steps[last].At + length
}

// traceNumber parses a number from 0 to limit.
func traceNumber(text string, limit float64) (float64, error) {
	number, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(number >= 0 && number <= limit) {
		return 0, fmt.Errorf("is %q, expected a number from 0 to %g", text, limit)
	}
	return number, nil
}

// traceError converts the error of a file that is not CSV, or cannot be read.
func traceError(err error) error {
	var parse *csv.ParseError
	switch {
	case errors.As(err, &parse):
		return fmt.Errorf("%w: %w", ErrTrace, parse)
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%w: it is empty, expected a header with the columns %s and %s", ErrTrace, columnTime,
			columnRate)
	}
	return err
}
