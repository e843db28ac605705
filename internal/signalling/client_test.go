package signalling

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// newTestClient returns a client that has not joined, whose websocket has nothing to read.
func newTestClient(tb testing.TB, config Config) *client {
	tb.Helper()
	s := &Server{config: config, metrics: uncounted{}, log: NewLog(zap.NewNop()), joins: newJoinLimits(&config)}
	o := &outbox{Writer: NewWriter(nil, &config), metrics: s.metrics, poses: make(map[volumetric.PublicationRef]int)}
	return &client{server: s, outbox: o, inbox: NewInbox(open(tb, new(sent), &config), &s.config)}
}

// reason returns the code with which the client's websocket was closed, empty while it is open.
func (c *client) reason() signal.Code {
	c.outbox.mu.Lock()
	defer c.outbox.mu.Unlock()
	return c.outbox.code
}

// TestAcknowledgementsThatAreOwedDoNotCount checks that owed acknowledgements do not exceed a client's rate, because
// their number depends on other participants.
func TestAcknowledgementsThatAreOwedDoNotCount(t *testing.T) {
	config := DefaultConfig()
	config.MessageBurst = 5
	c := newTestClient(t, config)
	now := time.Unix(1_795_188_600, 0)
	acknowledge := func(slots string) bool { return c.take([]byte(`{"type":"acknowledge","slots":[`+slots+`]}`), now) }
	for i := range 100 {
		c.outbox.Send(&signal.Assignments{Assignments: []signal.Assignment{{MID: "1", Generation: uint32(i)},
			{MID: "2", Generation: uint32(i)}}})
		c.outbox.Take()
		first, second := fmt.Sprintf(`{"mid":"1","generation":%d}`, i), fmt.Sprintf(`{"mid":"2","generation":%d}`, i)
		var going bool
		if i%2 == 0 {
			going = acknowledge(first + "," + second)
		} else {
			going = acknowledge(first) && acknowledge(second)
		}
		if !going {
			t.Fatalf("closed with %q for acknowledging assignment %d", c.reason(), i)
		}
	}
	for i := range config.MessageBurst {
		if !acknowledge("") {
			t.Fatalf("closed with %q for message %d of a burst of %d", c.reason(), i, config.MessageBurst)
		}
	}
	if acknowledge("") || c.reason() != signal.CodeRateLimited {
		t.Errorf("acknowledgements of nothing, without end: closed with %q, expected %q", c.reason(),
			signal.CodeRateLimited)
	}
}
