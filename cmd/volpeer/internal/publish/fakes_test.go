package publish

import (
	"bytes"
	"sync"

	"github.com/volsfu/volsfu/pkg/client"
)

// fakePresence is a session without a server, whose events come from the test.
type fakePresence struct {
	events chan client.Event
	done   chan struct{}
	err    error
	uplink client.UplinkStats
}

func newFakePresence() *fakePresence {
	return &fakePresence{events: make(chan client.Event, 100), done: make(chan struct{})}
}

func (s *fakePresence) Events() <-chan client.Event { return s.events }
func (s *fakePresence) Uplink() client.UplinkStats  { return s.uplink }
func (s *fakePresence) Done() <-chan struct{}       { return s.done }
func (s *fakePresence) Err() error                  { return s.err }

// console is a standard error that a test reads while it is written.
type console struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.buffer.Write(p)
}

func (c *console) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.buffer.String()
}
