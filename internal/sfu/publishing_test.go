package sfu

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/signal"
)

// TestPublishingWithoutEnd checks the limit of new publications, which cause messages to all others. The end of a
// publication is never refused.
func TestPublishingWithoutEnd(t *testing.T) {
	const burst = 3
	n := newTestNode(t, mediaOnLoopback(), func(c *Config) { c.PublishRate, c.PublishBurst = 1e-9, burst })
	_, others := enter(t, n, "alice", true)
	s, o := enter(t, n, "mallory", false, bodyOf(1, 1))
	for range 10 {
		handle(s, &signal.Unpublish{Publication: "body"},
			&signal.Publish{Header: signal.Header{ID: "again"}, Publication: bodyOf(1, 1)})
	}
	inRoom(t, s, func(*Room) {})
	if _, published := latest[*signal.Published](others); published != burst {
		t.Errorf("others heard of %d publications, expected %d", published, burst)
	}
	if _, unpublished := latest[*signal.Unpublished](others); unpublished != 1+burst {
		t.Errorf("others heard of %d ends of publications, expected %d", unpublished, 1+burst)
	}
	s.Detach()
	s, o = resume(t, n, "mallory", o)
	handle(s, &signal.Publish{Header: signal.Header{ID: "last"}, Publication: bodyOf(1, 1)})
	if refused := expect[*signal.Error](t, o, 1); refused.ID != "last" || refused.Code != signal.CodeLimit {
		t.Errorf("after resuming the answer is %q to %q, expected %q to %q", refused.Code, refused.ID, signal.CodeLimit,
			"last")
	}
}

// TestARoomIsDescribedInOneMessage checks that the descriptions of a full room fit in the reply to a join, which
// clients have to read.
func TestARoomIsDescribedInOneMessage(t *testing.T) {
	const limit = 64 << 10
	n := newTestNode(t, mediaOnLoopback(), func(c *Config) { c.DescriptionBytes = limit })
	// Each tile has 410 bytes in messages to others, of which 60 are its label in the request. One publication has 6.6
	// kB.
	long := bodyOf(16, 1)
	for i := range long.Tiles {
		long.Tiles[i].Label = strings.Repeat("<", 60)
	}
	// publish publishes for one participant until it is refused and returns the number of publications.
	publish := func(s *Session, o *shelf) (taken int) {
		t.Helper()
		for {
			long.Name = fmt.Sprint("body ", taken)
			handle(s, &signal.Publish{Header: signal.Header{ID: "publish"}, Publication: long})
			inRoom(t, s, func(*Room) {})
			refused, n := latest[*signal.Error](o)
			if n == 0 {
				taken++
				continue
			}
			if refused.Code != signal.CodeLimit {
				t.Fatalf("refused with %v, expected %q", refused, signal.CodeLimit)
			}
			return taken
		}
	}
	var sessions []*Session
	var counts []int
	for i := range 6 {
		s, o := enter(t, n, fmt.Sprint("mallory ", i), false)
		sessions, counts = append(sessions, s), append(counts, publish(s, o))
	}
	if want := []int{2, 2, 2, 2, 1, 0}; !slices.Equal(counts, want) {
		t.Errorf("the participants publish %v, expected %v: a quarter each at most, and nothing if the room is full",
			counts, want)
	}
	_, o := enter(t, n, "bob", false)
	data, err := signal.Encode(expect[*signal.Joined](t, o, 1))
	if err != nil {
		t.Fatal(err)
	}
	if len(data) < limit/2 || len(data) > limit+joinedBytes {
		t.Errorf("the room is described in %d bytes, the limit is %d", len(data), limit)
	}
	handle(sessions[0], &signal.Leave{})
	s, o := enter(t, n, "carol", false)
	if n := publish(s, o); n != 2 {
		t.Errorf("a new participant in a freed place has %d publications, expected 2", n)
	}
}

// TestPublishingLimitsAreChecked checks that invalid limits are rejected.
func TestPublishingLimitsAreChecked(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*Config){
		"no publications at all":      func(c *Config) { c.PublishRate = 0 },
		"no rate":                     func(c *Config) { c.PublishRate = math.NaN() },
		"nothing at once":             func(c *Config) { c.PublishBurst = 0 },
		"no description":              func(c *Config) { c.DescriptionBytes = 0 },
		"more than a message's worth": func(c *Config) { c.DescriptionBytes = signal.MaxMessageBytes },
	} {
		c := DefaultConfig()
		spoil(&c)
		if err := c.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
