package sfu

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/internal/sfu/roomevent"
)

// TestEveryEventHasAnEffectOrIsIgnored applies each event of package roomevent to a room: apply panics for an event
// that it does not name.
func TestEveryEventHasAnEffectOrIsIgnored(t *testing.T) {
	events := []roomevent.Event{
		roomevent.Entered{}, roomevent.Exited{}, roomevent.Present{}, roomevent.Left{}, roomevent.Detached{},
		roomevent.Released{}, roomevent.SessionState{}, roomevent.Published{}, roomevent.Unpublished{},
		roomevent.Mirrored{}, roomevent.Unmirrored{}, roomevent.Take{}, roomevent.Rates{}, roomevent.GaveUp{},
		roomevent.Relayed{}, roomevent.Masked{}, roomevent.Posed{}, roomevent.Sent{}, roomevent.Operate{},
		roomevent.Shared{}, roomevent.Superseded{}, roomevent.Kick{}, roomevent.Close{},
	}
	var names []string
	s := newStage(t, func(c *Config) { c.Cluster = &wire{} })
	for _, e := range events {
		names = append(names, strings.TrimPrefix(fmt.Sprintf("%T", e), "roomevent."))
		s.ask(remoteEvent{"other", e}.apply)
	}
	source, err := os.ReadFile("roomevent/events.go")
	if err != nil {
		t.Fatal(err)
	}
	var declared []string
	for _, method := range regexp.MustCompile(`func \((\w+)\) event\(\)`).FindAllSubmatch(source, -1) {
		declared = append(declared, string(method[1]))
	}
	if !slices.Equal(names, declared) {
		t.Errorf("the test has the events %v, the package %v", names, declared)
	}
}

// TestUnknownEvent has a room apply a pointer to an event and a type that contains one.
func TestUnknownEvent(t *testing.T) {
	s := newStage(t, func(c *Config) { c.Cluster = &wire{} })
	for _, e := range []roomevent.Event{&roomevent.Left{}, struct{ roomevent.Left }{}} {
		message := func() (message any) {
			defer func() { message = recover() }()
			s.ask(remoteEvent{"other", e}.apply)
			return nil
		}()
		want := fmt.Sprintf("room events are the values of package roomevent, and %T has no effect", e)
		if message != want {
			t.Errorf("%T: the panic is %v, expected %q", e, message, want)
		}
	}
}
