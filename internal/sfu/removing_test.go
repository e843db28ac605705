package sfu

import (
	"context"
	"testing"
)

// TestLastAnswer asks a room that answered and has ended since, as a room does when its last participant is removed: it is heard. 100 times, since a choice among
// what is ready is random.
func TestLastAnswer(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), nil)
	room := newRoom(n, "room")
	close(room.done)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		result := make(chan bool, 1)
		result <- true
		if found, answered := hear(ended, room, result); !found || !answered {
			t.Fatal("what the room said before it ended was not heard")
		}
		if _, answered := hear(t.Context(), room, result); answered {
			t.Fatal("a room that has ended answered")
		}
	}
}
