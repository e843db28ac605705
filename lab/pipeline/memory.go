package pipeline

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"
)

// sample is a number of bytes at a moment since memory began to be watched.
type sample struct {
	at    time.Duration
	bytes float64
}

// warmUp is what does not count of the time: the first fifth, a minute at most.
func warmUp(whole time.Duration) time.Duration { return min(whole/5, time.Minute) }

// quarter is that of the time that counts.
func quarter(whole time.Duration) time.Duration { return (whole - warmUp(whole)) / 4 }

// quarters are the samples of the first and of the last quarter of the time that counts.
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

// collections are what the Go runtime says of garbage collections under GODEBUG=gctrace=1: the heap that each has left. Several goroutines may use it.
type collections struct {
	begun time.Time

	mu      sync.Mutex
	rest    []byte
	samples []sample
}

// collected is "gc 5 @1.234s 0%: … ms clock, … ms cpu, 12->13->6 MB, …": the heap when a collection began, when it ended, and what of it is in use. They are whole
// megabytes, of 2^20 bytes.
var collected = regexp.MustCompile(`^gc \d+ @.* \d+->\d+->(\d+) MB`)

// maxSaid bounds a line of a program's that does not end.
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

// all are the samples so far.
func (c *collections) all() []sample {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.samples)
}

// residentBytes is what a process holds, of Go's memory and of any other.
func residentBytes(pid int) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	return parseResident(status)
}

// parseResident reads the line "VmRSS:   1234 kB" of /proc/PID/status.
func parseResident(status []byte) (float64, error) {
	_, after, _ := bytes.Cut(status, []byte("\nVmRSS:"))
	line, _, _ := bytes.Cut(after, []byte("\n"))
	fields := bytes.Fields(line)
	if len(fields) != 2 || string(fields[1]) != "kB" {
		return 0, fmt.Errorf("no resident memory in %.60q", status)
	}
	kilobytes, err := strconv.ParseFloat(string(fields[0]), 64)
	return 1024 * kilobytes, err
}
