package pipeline

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"
)

// sample is a number of bytes at a time since the start of the watch.
type sample struct {
	at    time.Duration
	bytes float64
}

// warmUp is the part of the time that does not count: the first fifth, at most a minute.
func warmUp(whole time.Duration) time.Duration { return min(whole/5, time.Minute) }

// quarter is a quarter of the time that counts.
func quarter(whole time.Duration) time.Duration { return (whole - warmUp(whole)) / 4 }

// quarters returns the samples of the first and of the last quarter of the time that counts.
func quarters(samples []sample, whole time.Duration) (first, last []float64) {
	warm, quarter := warmUp(whole), quarter(whole)
	for _, s := range samples {
		switch {
		case s.at >= warm && s.at < warm+quarter:
			first = append(first, s.bytes)
		case s.at >= whole-quarter && s.at <= whole:
			last = append(last, s.bytes)
		}
	}
	return first, last
}

// collections reads the Go runtime's lines about garbage collections under GODEBUG=gctrace=1, and keeps the live heap
// after each collection. It is safe for concurrent use.
type collections struct {
	begun time.Time

	mu      sync.Mutex
	rest    []byte
	samples []sample
}

// collected matches "gc 5 @1.234s 0%: … ms clock, … ms cpu, 12->13->6 MB, …": the heap at the beginning and the end of
// a collection, and the live heap, in whole megabytes of 2^20 bytes.
var collected = regexp.MustCompile(`^gc \d+ @.* \d+->\d+->(\d+) MB`)

// maxSaid bounds a program's line without an end.
const maxSaid = 64 << 10

// Write implements io.Writer.
func (c *collections) Write(data []byte) (int, error) {
	now := time.Since(c.begun)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rest = append(c.rest, data...)
	for {
		line, rest, ended := bytes.Cut(c.rest, []byte("\n"))
		if !ended {
			break
		}
		if found := collected.FindSubmatch(line); found != nil {
			if megabytes, err := strconv.ParseFloat(string(found[1]), 64); err == nil {
				c.samples = append(c.samples, sample{now, megabytes * (1 << 20)})
			}
		}
		c.rest = rest
	}
	if len(c.rest) > maxSaid {
		c.rest = nil
	}
	return len(data), nil
}

// all returns the samples so far.
func (c *collections) all() []sample {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.samples)
}
