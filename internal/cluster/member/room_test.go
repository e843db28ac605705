package member

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestRoomLimits: what waits for a room is limited. Lossy data messages are dropped first.
func TestRoomLimits(t *testing.T) {
	r, now := newRoom("r"), time.Unix(0, 0)
	message := func(i int, lossy bool) sfu.Sent {
		return sfu.Sent{From: "ann", Data: &signal.Data{Text: fmt.Sprint(i), Lossy: lossy}}
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
		if kept := r.state("b", ref, sfu.Take{Ref: ref}); kept != (i < roomStates) {
			t.Fatalf("state %d is kept: %v", i, kept)
		}
		if kept := r.pose("b", sfu.Posed{Ref: ref}); kept != (i < roomStates) {
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
