package chaos

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

// state has the counts of all programs at one time.
type state struct {
	at      time.Time
	server  counters.Stats
	flows   map[flow]count
	uplinks map[string]client.UplinkCounts
	// sendings is the number of messages about qualities that each participant has received.
	sendings map[string]int
}

func (r *room) state() state {
	s := state{at: time.Now(), server: r.Server.Stats(), flows: map[flow]count{},
		uplinks: map[string]client.UplinkCounts{}, sendings: map[string]int{}}
	for _, f := range r.flows() {
		s.flows[f] = r.count(f)
	}
	for _, name := range r.names {
		s.uplinks[name] = r.peers[name].Session.Uplink().UplinkCounts
		s.sendings[name] = len(r.peers[name].Sendings())
	}
	return s
}

// explain logs the counts of the server, the publishers and the receivers since an earlier state. The log of a failure
// thereby shows which of them lost frames.
func (r *room) explain(t *testing.T, since state, stalls *wait.Stalls) {
	t.Helper()
	now := r.state()
	t.Logf("%v have passed, the longest stall of the machine was %v", now.at.Sub(since.at), stalls.Longest())
	t.Logf("server: %s", changes(since.server, now.server))
	for _, name := range r.names {
		p := r.peers[name]
		t.Logf("uplink of %s: %s; interrupted %d, resumed %d times; %+v", name,
			changes(since.uplinks[name], now.uplinks[name]), p.Count("interrupted"), p.Count("resumed"),
			p.Session.Uplink())
		for _, s := range p.Sendings()[since.sendings[name]:] {
			if r.peers[s.Track.Participant] != nil {
				t.Logf("%s was told %+v", name, s)
			}
		}
	}
	for _, f := range r.flows() {
		missing := " all"
		if now.flows[f].Frames > since.flows[f].Frames {
			missing = describe(findHoles(r.peers[f.receiver].Arrivals(), f.tile, since.at))
		}
		t.Logf("%v: %s; frames that were not received:%s", f, changes(since.flows[f], now.flows[f]), missing)
	}
}

// changes lists the numbers of two structures that differ, as name and difference.
func changes(before, after any) string {
	var list []string
	differ(&list, "", reflect.ValueOf(before), reflect.ValueOf(after))
	if len(list) == 0 {
		return "no change"
	}
	return strings.Join(list, ", ")
}

// differ appends the differences of two values of one type.
func differ(list *[]string, name string, before, after reflect.Value) {
	add := func(difference any) { *list = append(*list, fmt.Sprintf("%s %v", name, difference)) }
	switch {
	case after.CanInt() && after.Int() != before.Int():
		if after.Type() == reflect.TypeFor[time.Duration]() {
			add(time.Duration(after.Int()))
		} else {
			add(after.Int() - before.Int())
		}
	case after.CanUint() && after.Uint() != before.Uint():
		add(int64(after.Uint() - before.Uint()))
	case after.Kind() == reflect.Struct && after.Type() != reflect.TypeFor[time.Time]():
		for i := range after.NumField() {
			field := after.Type().Field(i)
			if field.IsExported() {
				differ(list, strings.TrimPrefix(name+"."+field.Name, "."), before.Field(i), after.Field(i))
			}
		}
	}
}

// describe lists holes and the frames around them.
func describe(holes []hole) string {
	var text strings.Builder
	for _, h := range holes {
		fmt.Fprintf(&text, " %d to %d (after %s, before %s)", h.first, h.last, passage(h.before), passage(h.after))
	}
	if text.Len() == 0 {
		return " none"
	}
	return text.String()
}

// passage returns the number, the quality and the times of a frame.
func passage(a testbed.Arrival) string {
	const clock = "05.000"
	return fmt.Sprintf("%d of quality %d, captured at %s and complete at %s", a.Number, a.Track.Quality,
		a.Capture.Format(clock), a.Complete.Format(clock))
}
