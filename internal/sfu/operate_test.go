package sfu

import (
	"context"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
)

// TestLastAnswer checks that the answer of a room counts if the room has ended after the answer, as after the removal
// of its last participant. The test runs 100 times, because select chooses a ready channel at random.
func TestLastAnswer(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), nil)
	room := newRoom(n, "room")
	close(room.done)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		result := make(chan bool, 1)
		result <- true
		if found, answered := await(ended, room, result); !found || !answered {
			t.Fatal("the answer of the room before its end was lost")
		}
		if _, answered := await(t.Context(), room, result); answered {
			t.Fatal("a room that has ended answered")
		}
	}
}

// TestJoinsAreRefusedBeforeADrain: participants resume, and are not told of a drain.
func TestJoinsAreRefusedBeforeADrain(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), nil)
	s, former := enter(t, n, "alice", false)
	n.RefuseJoins()
	_, refused := n.Join(JoinRequest{Join: &signal.Join{Version: signal.Version}, Room: "room", Identity: "bob",
		Outbox: &shelf{}, At: time.Now()})
	if refused == nil || refused.Code != signal.CodeDraining {
		t.Errorf("a join: %v, expected %q", refused, signal.CodeDraining)
	}
	s.Detach()
	_, o := resume(t, n, "alice", former)
	if _, count := latest[*signal.Closing](o); count != 0 {
		t.Errorf("%d closing messages before the drain", count)
	}
}

// TestJoiningWhileDraining checks that a join in progress at the beginning of a drain is refused.
func TestJoiningWhileDraining(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), nil)
	enter(t, n, "alice", false)
	n.toAll(drainRequest{time.Minute})
	_, refused := n.Join(JoinRequest{Join: &signal.Join{Version: signal.Version}, Room: "room", Identity: "bob",
		Outbox: &shelf{}, At: time.Now()})
	if refused == nil || refused.Code != signal.CodeDraining {
		t.Errorf("got %v, expected %q", refused, signal.CodeDraining)
	}
}
