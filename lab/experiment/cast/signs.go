package cast

import (
	"bytes"
	"encoding/json"
	"sync"
)

// signs parses a peer's standard error. Lines of JSON report the peer's address, and that the peer receives.
type signs struct {
	ready, receiving chan struct{}

	mu      sync.Mutex
	line    []byte
	listens string
	got     bool
}

func newSigns() *signs { return &signs{ready: make(chan struct{}), receiving: make(chan struct{})} }

// maxLine bounds the stored part of a line; signs are shorter.
const maxLine = 4096

// Write implements io.Writer.
func (s *signs) Write(data []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(data)
	for {
		line, rest, complete := bytes.Cut(data, []byte{'\n'})
		s.line = append(s.line, line[:min(len(line), maxLine-min(len(s.line), maxLine))]...)
		if !complete {
			return n, nil
		}
		s.read(s.line)
		s.line, data = s.line[:0], rest
	}
}

// read parses a complete line and ignores other output.
func (s *signs) read(line []byte) {
	var sign struct {
		Ready     string `json:"ready"`
		Receiving string `json:"receiving"`
	}
	if json.Unmarshal(line, &sign) != nil {
		return
	}
	if sign.Ready != "" && s.listens == "" {
		s.listens = sign.Ready
		close(s.ready)
	}
	if sign.Receiving != "" && !s.got {
		s.got = true
		close(s.receiving)
	}
}

// address returns the peer's address. ready must be closed.
func (s *signs) address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listens
}
