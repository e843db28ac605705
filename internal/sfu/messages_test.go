package sfu

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/panics"
	"github.com/volsfu/volsfu/internal/sfu/peer"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestARefusedMessageSetsNoChoice(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), func(c *Config) { c.ChoicesPerParticipant = 2 })
	s, o := enter(t, n, "bob", true)
	m := &signal.SetQuality{Header: signal.Header{ID: "1"}}
	for _, name := range []string{"body", "desk", "voice"} {
		ref := volumetric.PublicationRef{Participant: "alice", Publication: name}
		m.Choices = append(m.Choices, signal.Choice{PublicationRef: ref, Quality: signal.Only(0)})
	}
	handle(s, m)
	if refused := expect[*signal.Error](t, o, 1); refused.Code != signal.CodeLimit {
		t.Errorf("got %q, expected %q", refused.Code, signal.CodeLimit)
	}
	inRoom(t, s, func(*Room) {
		for _, choice := range m.Choices {
			tile := volumetric.TileRef{PublicationRef: choice.PublicationRef}
			if got := s.participant.subscriber.Choices.Of(tile); !got.Auto {
				t.Errorf("the choice for %s was taken", choice.PublicationRef)
			}
		}
	})
}

func TestAnOlderAcknowledgementIsPassedOver(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), nil)
	enter(t, n, "alice", false, bodyOf(1, 1))
	s, o := enter(t, n, "bob", true)
	assignment := expect[*signal.Assignments](t, o, 1).Assignments[0]
	for _, generation := range []uint32{assignment.Generation, assignment.Generation - 1} {
		handle(s, &signal.Acknowledge{
			Header: signal.Header{ID: "1"},
			Slots:  []signal.SlotGeneration{{MID: assignment.MID, Generation: generation}},
		})
	}
	expect[*signal.OK](t, o, 2)
	if refused, count := latest[*signal.Error](o); count != 0 {
		t.Errorf("refused with %v", refused)
	}
}

// TestLeavingWithAFullOutbox checks a leave whose reply finds the client's queue full.
func TestLeavingWithAFullOutbox(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), nil)
	s, o := enter(t, n, "mallory", false)
	o.fill()
	handle(s, &signal.Leave{Header: signal.Header{ID: "1"}})
	eventually(t, func() bool {
		rooms, sessions, _ := n.rooms.Counts()
		return rooms == 0 && sessions == 0
	}, "the room to end")
}

// TestTimersEndWithTheirParticipant checks that no timer keeps a closed connection in memory.
func TestTimersEndWithTheirParticipant(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), nil)
	stays, _ := enter(t, n, "alice", false)
	s, o := enter(t, n, "bob", true)
	expect[*signal.Offer](t, o, 1)
	running := func() (answer, connect bool) {
		inRoom(t, stays, func(*Room) {
			c := s.participant.connection
			answer, connect = c.answerTimer.running(), c.connectTimer.running()
		})
		return answer, connect
	}
	eventually(t, func() bool { answer, connect := running(); return answer && connect }, "both timers to run")
	handle(s, &signal.Leave{})
	if answer, connect := running(); answer || connect {
		t.Errorf("after leaving the timer of the answer runs is %v, that of the connection %v", answer, connect)
	}
}

// TestAPanicEndsOneRoom lets the goroutine of a room panic. The participants of the room are notified, even if they
// cannot be removed. The other rooms stay, and a room with the same name can be opened again.
func TestAPanicEndsOneRoom(t *testing.T) {
	reported := make(chan panics.Report, 3)
	guard := panics.NewGuard(func(r panics.Report) { reported <- r }, PanicPlaces...)
	n := newTestNode(t, mediaOnLoopback(), func(c *Config) { c.Guard = guard })
	mallory, outbox := enter(t, n, "mallory", true)
	broken, other := enter(t, n, "broken", true)
	kept := &shelf{}
	if _, refused := n.Join(JoinRequest{
		Join: &signal.Join{Version: signal.Version}, Room: "another", Identity: "alice", Outbox: kept, At: time.Now(),
	}); refused != nil {
		t.Fatal(refused)
	}
	room := mallory.room
	room.post(inspection{look: func(*Room) {
		broken.participant.subscriber = nil
		panic("test")
	}})
	for name, o := range map[string]*shelf{"mallory": outbox, "broken": other} {
		eventually(t, func() bool {
			code, closed := o.ended()
			return closed && code == signal.CodeInternal
		}, name+"'s websocket to end")
	}
	if r := <-reported; r.Where != placeRoom || r.Value != "test" {
		t.Errorf("the panic is %v of %q, expected that of the room", r.Value, r.Where)
	}
	eventually(t, func() bool { return len(n.Summaries("")) == 1 && !n.HasSession(broken.participant.Session) },
		"the room to be forgotten")
	if _, closed := kept.ended(); closed {
		t.Error("the websocket of another room has ended, too")
	}
	again, _ := enter(t, n, "mallory", true)
	if again.room == room {
		t.Error("the room that panicked is entered again")
	}
	if count := guard.Count(placeRoom); count != 2 {
		t.Errorf("%d panics are counted, expected that of the room and that of the participant", count)
	}
}

// TestAPanicInAJoin lets the room's goroutine panic during a join, when the connection is made. The join is refused,
// the place of its bearer is released, and the connection ends, so that the node can stop.
func TestAPanicInAJoin(t *testing.T) {
	guard := panics.NewGuard(func(panics.Report) {}, PanicPlaces...)
	n := newTestNode(t, mediaOnLoopback(), func(c *Config) { c.Guard = guard })
	n.connect = func(r *Room, p *participant) (*connection, error) {
		if _, err := newConnection(r, p); err != nil {
			return nil, err
		}
		panic("test")
	}
	_, refused := n.Join(JoinRequest{
		Join: &signal.Join{Version: signal.Version}, Room: "room", Identity: "mallory", Outbox: &shelf{},
		At: time.Now(), Bearer: "b",
	})
	if refused == nil || refused.Code != signal.CodeInternal {
		t.Errorf("the join is answered by %v, expected the code internal", refused)
	}
	eventually(t, func() bool {
		rooms, _, bearers := n.rooms.Counts()
		return rooms == 0 && bearers == 0
	}, "the room and the bearer's place to be released")
	n.Drain(t.Context(), 0)
}

// TestAFailureForGoodEndsOneParticipant lets a participant's peer connection fail finally, as after a panic in one of
// its goroutines. The participant is notified at once without another attempt, and the others stay.
func TestAFailureForGoodEndsOneParticipant(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), nil)
	alice, kept := enter(t, n, "alice", true)
	s, o := enter(t, n, "mallory", true)
	expect[*signal.Offer](t, o, 1)
	inRoom(t, alice, func(r *Room) {
		peerEvent{s.participant.connection, transport.Event{State: transport.StateFailed, Final: true}}.apply(r)
	})
	eventually(t, func() bool {
		code, closed := o.ended()
		return closed && code == signal.CodeConnection
	}, "mallory's websocket to end")
	expect[*signal.ParticipantLeft](t, kept, 1)
	if _, closed := kept.ended(); closed {
		t.Error("alice's websocket has ended, too")
	}
}

// TestAPanicEndsOneParticipant lets the goroutine of a participant's connection panic. The others stay.
func TestAPanicEndsOneParticipant(t *testing.T) {
	reported := make(chan panics.Report, 1)
	guard := panics.NewGuard(func(r panics.Report) { reported <- r }, PanicPlaces...)
	n := newTestNode(t, mediaOnLoopback(), func(c *Config) { c.Guard = guard })
	alice, kept := enter(t, n, "alice", true)
	s, o := enter(t, n, "mallory", true)
	expect[*signal.Offer](t, o, 1)
	type unknown struct{}
	inRoom(t, alice, func(*Room) { s.participant.connection.Do(unknown{}) })
	eventually(t, func() bool {
		code, closed := o.ended()
		return closed && code == signal.CodeConnection
	}, "mallory's websocket to end")
	if r := <-reported; r.Where != peer.PanicPlace {
		t.Errorf("the panic is one of %q, expected %q", r.Where, peer.PanicPlace)
	}
	expect[*signal.ParticipantLeft](t, kept, 1)
	if _, closed := kept.ended(); closed {
		t.Error("alice's websocket has ended, too")
	}
}
