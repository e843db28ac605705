package member

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/cluster"
	"github.com/volsfu/volsfu/internal/forward/trace"
	"github.com/volsfu/volsfu/internal/sfu/roomevent"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestInterruptedMove: a room that has a place for one event at a time is told all of a move: the state at the next
// home, each of its publications although names, descriptions and IDs are the same, and that these are all.
func TestInterruptedMove(t *testing.T) {
	claim := func(home string, epoch uint64, names ...string) cluster.Claim {
		c := cluster.Claim{Home: cluster.Home{Node: home, Incarnation: 1}, Participant: cluster.Participant{
			Identity: "ann", Session: "s", Epoch: epoch, Live: true, Complete: epoch > 0}}
		for i, name := range names {
			c.Publications = append(c.Publications, cluster.Publication{ID: uint64(i), Description: bodyOf(name)})
		}
		return c
	}
	r, now := newRoom("r"), time.Unix(0, 0)
	present, exists := claim("b", 0, "body", "desk", "voice"), true
	var events []string
	places := 0
	deliver := func() {
		r.change("ann", "")
		for range 100 {
			places = 1
			r.deliver(now, func(node string, e roomevent.Event) bool {
				if places--; places < 0 {
					return false
				}
				events = append(events, describe(node, e))
				return true
			}, func(string) (cluster.Claim, bool) { return present, exists })
		}
	}
	expect := func(want ...string) {
		t.Helper()
		if got := events; !slices.Equal(got, want) {
			t.Errorf("the room was told\n%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		events = nil
	}
	deliver()
	expect("present ann s at b", "published ann/body 0 at b", "published ann/desk 1 at b", "published ann/voice 2 at b")
	present = claim("c", 1, "body", "desk")
	deliver()
	complete := "present ann s at c epoch 1 complete"
	expect(complete, "published ann/body 0 at c", "published ann/desk 1 at c", "unpublished ann/voice 2 at c", complete)
	deliver()
	expect()
	present.Detached = true
	deliver()
	expect("detached ann at c")
	exists = false
	deliver()
	expect("left ann s at c: replaced")
}

// TestRoomLimits: what waits for a room is limited. Lossy data messages are dropped first.
func TestRoomLimits(t *testing.T) {
	r, now := newRoom("r"), time.Unix(0, 0)
	message := func(i int, lossy bool) roomevent.Sent {
		return roomevent.Sent{From: "ann", Data: &signal.Data{Text: fmt.Sprint(i), Lossy: lossy}}
	}
	for i := range roomData {
		if !r.receive(now, "b", message(i, i%2 == 0)) {
			t.Fatalf("message %d is dropped", i)
		}
	}
	if r.receive(now, "b", message(-1, true)) {
		t.Error("a lossy message is kept although the room is full")
	}
	for i := range roomData {
		if r.receive(now, "b", message(roomData+i, false)) {
			t.Errorf("message %d needs no other one's place", i)
		}
	}
	if len(r.data) != roomData {
		t.Errorf("%d messages wait, expected %d", len(r.data), roomData)
	}
	for i, d := range r.data {
		if d.sent.Data.Lossy {
			t.Fatalf("message %d is lossy", i)
		}
	}
	for i := range roomStates + 10 {
		ref := volumetric.PublicationRef{Participant: fmt.Sprint(i), Publication: "body"}
		if kept := r.state("b", ref, roomevent.Take{Ref: ref}); kept != (i < roomStates) {
			t.Fatalf("state %d is kept: %v", i, kept)
		}
		if kept := r.pose("b", roomevent.Posed{Ref: ref}); kept != (i < roomStates) {
			t.Fatalf("pose %d is kept: %v", i, kept)
		}
	}
	// The end of a node's demand replaces its demand.
	r.exited("b")
	if len(r.states) != 1 || len(r.keys) != 1 {
		t.Errorf("%d states wait, expected 1", len(r.states))
	}
}

// TestOutboxLimits: the messages that wait for a trunk are limited by number and by bytes.
func TestOutboxLimits(t *testing.T) {
	now := time.Unix(0, 0)
	o := &outbox{poses: map[poseKey][]byte{}}
	for i := range outboxMessages + 1 {
		if kept := o.add(now, []byte("x")); kept != (i < outboxMessages) {
			t.Fatalf("message %d is kept: %v", i, kept)
		}
	}
	if expired := o.flush(now.Add(outboxTime), nil); expired != outboxMessages || !o.empty() || o.bytes != 0 {
		t.Errorf("%d messages are expired, expected %d; %d bytes wait", expired, outboxMessages, o.bytes)
	}
	o.linked = true
	o.pose(poseKey{room: "r"}, []byte("x"))
	o.unlink()
	if !o.empty() {
		t.Error("a pose waits without a trunk")
	}
	large := make([]byte, 64<<10)
	for i := range outboxBytes/len(large) + 1 {
		if kept := o.add(now, large); kept != (i < outboxBytes/len(large)) {
			t.Fatalf("message %d is kept: %v", i, kept)
		}
	}
}

// TestLoad: the load follows the processor time within a second, and the number of rooms at once.
func TestLoad(t *testing.T) {
	l := load{cores: 4, rooms: 100}
	now, used := time.Unix(0, 0), time.Duration(0)
	run := func(d time.Duration, cores float64) {
		for range int(d / loadInterval) {
			now = now.Add(loadInterval)
			used += time.Duration(cores * float64(loadInterval))
			l.measure(now, used)
		}
	}
	l.measure(now, used)
	check := func(rooms, participants int, want, join float64) {
		t.Helper()
		total, one := l.total(rooms, participants)
		if math.Abs(total-want) > 0.01 || math.Abs(one-join) > 0.001 {
			t.Errorf("the load is %.3f, and one participant adds %.4f, expected %.3f and %.4f", total, one, want, join)
		}
	}
	check(0, 0, 0, priorJoin)
	run(time.Second, 2)
	check(0, 0, 0.5*(1-1/math.E), 0.0366)
	run(10*time.Second, 2)
	check(0, 90, 0.5, 0.0055)
	check(80, 90, 0.8, 0.0085)
	run(10*time.Second, 9)
	check(0, 90, 1, 0.0105)
	run(10*time.Second, 0)
	check(0, 90, 0, 0.0005)
}

// TestTimesOfFramesAreJoined checks that times of frames that wait for a room are kept beside later ones of the same
// publication, up to the limit.
func TestTimesOfFramesAreJoined(t *testing.T) {
	r := newRoom("r")
	ref := volumetric.PublicationRef{Participant: "alice", Publication: "body"}
	add := func(id uint64, bound time.Duration, frames int) bool {
		return r.relayed("a", roomevent.Relayed{Ref: ref, ID: id, Bound: bound, Frames: make([]trace.Relay, frames)})
	}
	for i, test := range []struct {
		id     uint64
		bound  time.Duration
		frames int
		kept   bool
		want   int
		most   time.Duration
	}{
		{1, 5, 2, true, 2, 5}, {1, 3, 4, true, 6, 5}, {2, 1, 3, true, 3, 1},
		{2, 2, roomFrames, true, roomFrames + 3, 2},
		{2, 9, 1, false, roomFrames + 3, 2},
	} {
		if kept := add(test.id, test.bound, test.frames); kept != test.kept {
			t.Errorf("%d: kept %t", i, kept)
		}
		key := stateKey{reflect.TypeFor[roomevent.Relayed](), "a", ref}
		e, _ := r.states[key].(roomevent.Relayed)
		if e.ID != test.id || len(e.Frames) != test.want || e.Bound != test.most || len(r.keys) != 1 {
			t.Errorf("%d: %d frames of publication %d wait with the bound %v, expected %d of %d with %v", i,
				len(e.Frames), e.ID, e.Bound, test.want, test.id, test.most)
		}
	}
}
