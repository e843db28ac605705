package sfu

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// arrives requests a place for a bearer.
func arrives(
	n *Node, room, identity string, bearer admission.Bearer, publications ...volumetric.Publication,
) (*Session, *signal.Error) {
	return n.Join(JoinRequest{
		Join: &signal.Join{Version: signal.Version, Publications: publications}, Room: room, Identity: identity,
		Bearer: bearer,
		Grants: Grants{Publish: true, Subscribe: true}, Outbox: &shelf{}, At: time.Now(),
	})
}

// hears waits until the room has handled all earlier requests.
func hears(t *testing.T, s *Session) { inRoom(t, s, func(*Room) {}) }

// TestRefusedJoinsMakeNoConnection checks that joins are refused before a peer connection is made, a room is opened or
// a publication is logged.
func TestRefusedJoinsMakeNoConnection(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), func(c *Config) {
		c.PublicationsPerParticipant, c.ParticipantsPerRoom, c.DescriptionBytes, c.BearerRoomPlaces = 2, 2, 4096, 1
	})
	core, logs := observer.New(zap.DebugLevel)
	n.log = zap.New(core)
	body := func(name string, tiles int) volumetric.Publication {
		p := bodyOf(tiles, 1)
		p.Name = name
		return p
	}
	if _, refused := arrives(n, "full", "ada", ""); refused != nil {
		t.Fatal(refused)
	}
	if _, refused := arrives(n, "full", "grace", ""); refused != nil {
		t.Fatal(refused)
	}
	if _, refused := arrives(n, "half", "mallory", "mallory", body("a", 8)); refused != nil {
		t.Fatal(refused)
	}
	logs.TakeAll()
	n.connect = func(*Room, *participant) (*connection, error) {
		t.Error("a peer connection is made for a join that is refused")
		return nil, errors.New("none for refused joins")
	}
	for _, test := range []struct {
		what, room, identity string
		bearer               admission.Bearer
		publications         []volumetric.Publication
		code                 signal.Code
	}{
		{"two of one name", "new", "eve", "", []volumetric.Publication{body("a", 1), body("a", 1)}, signal.CodeExists},
		{"one too many", "new", "eve", "", []volumetric.Publication{body("a", 1), body("b", 1), body("c", 1)},
			signal.CodeLimit},
		{"one with too long a description", "new", "eve", "", []volumetric.Publication{body("a", 60)},
			signal.CodeLimit},
		{"one that is not valid", "new", "eve", "", []volumetric.Publication{{Name: "a"}}, signal.CodeInvalid},
		{"an identity in use", "full", "ada", "", []volumetric.Publication{body("a", 1)},
			signal.CodeIdentityTaken},
		{"places of one token", "half", "eve", "mallory", nil, signal.CodeLimit},
		{"a full room", "full", "eve", "", []volumetric.Publication{body("a", 1)}, signal.CodeLimit},
	} {
		_, refused := arrives(n, test.room, test.identity, test.bearer, test.publications...)
		if codeOf(refused) != test.code {
			t.Errorf("%s: %v, expected %q", test.what, refused, test.code)
		}
	}
	if lines := logs.FilterMessage("published").Len(); lines != 0 {
		t.Errorf("%d publications of refused joins are in the log", lines)
	}
	if len(n.Summaries("new")) != 0 {
		t.Error("a room exists though all joins were refused")
	}
}

// TestOneBearerLeavesRoomForOthers checks the limits of rooms and places of one token, including places in their grace
// time, and that the places are released.
func TestOneBearerLeavesRoomForOthers(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), func(c *Config) {
		c.BearerRooms, c.BearerPlaces, c.BearerRoomPlaces = 2, 4, 2
	})
	take := func(room, identity string, bearer admission.Bearer, code signal.Code) *Session {
		t.Helper()
		s, refused := arrives(n, room, identity, bearer)
		if (refused == nil) != (code == "") || refused != nil && refused.Code != code {
			t.Fatalf("%s in room %s: %v, expected the code %q", identity, room, refused, code)
		}
		return s
	}
	first := take("one", "a", "mallory", "")
	take("one", "b", "mallory", "")
	take("one", "c", "mallory", signal.CodeLimit)
	take("one", "c", "ada", "")
	take("two", "a", "mallory", "")
	take("three", "a", "mallory", signal.CodeLimit)
	take("three", "a", "ada", "")
	take("three", "b", "mallory", "")
	take("three", "c", "mallory", signal.CodeLimit)
	// A place in its grace time counts.
	first.Detach()
	hears(t, first)
	take("one", "d", "mallory", signal.CodeLimit)
	inRoom(t, first, func(r *Room) { r.remove(first.participant, "left") })
	take("one", "d", "mallory", "")
	for range 10 {
		take("one", "host", "", "")
		s, _ := n.rooms.Room("one")
		done := make(chan struct{})
		s.post(inspection{func(r *Room) { r.remove(r.participants["host"], "left") }, done})
		<-done
	}
	over := func() bool {
		_, _, bearers := n.rooms.Counts()
		return bearers == 0
	}
	n.toAll(endRequest{})
	eventually(t, over, "no bearer to hold anything when all have gone")
}

// TestAnnouncementsOfABearerAreLimited joins and leaves repeatedly with long descriptions. The bearer is refused when
// the others have received the descriptions of a full room. Bearers with other tokens are not refused.
func TestAnnouncementsOfABearerAreLimited(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), func(c *Config) { c.DescriptionBytes = 64 << 10 })
	enter(t, n, "ada", false)
	joins := 0
	for ; ; joins++ {
		s, refused := arrives(n, "room", "mallory", "token", bodyOf(64, 1))
		if refused != nil {
			if refused.Code != signal.CodeLimit {
				t.Fatalf("refused with %v, expected %q", refused, signal.CodeLimit)
			}
			break
		}
		inRoom(t, s, func(r *Room) { r.remove(s.participant, "left") })
		if joins > 1000 {
			t.Fatal("1000 joins with descriptions of some kilobytes were admitted")
		}
	}
	if joins < 5 {
		t.Errorf("%d joins were admitted, expected as many as have the descriptions of a full room", joins)
	}
	if _, refused := arrives(n, "room", "grace", "another", bodyOf(64, 1)); refused != nil {
		t.Errorf("another token: %v", refused)
	}
}

// TestOneTextForAll checks that all participants receive a join as one message with one encoding.
func TestOneTextForAll(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), nil)
	_, first := enter(t, n, "ada", false)
	_, second := enter(t, n, "bob", false)
	enter(t, n, "grace", false, bodyOf(64, 1))
	texts := make([][]byte, 2)
	for i, o := range []*shelf{first, second} {
		m := expect[*signal.ParticipantJoined](t, o, 1)
		if m.Participant.Identity != "grace" {
			t.Fatalf("told of %q last", m.Participant.Identity)
		}
		text, err := signal.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = text
	}
	if &texts[0][0] != &texts[1][0] {
		t.Error("each recipient has a text of its own")
	}
}

// TestSummaries checks the numbers of rooms, participants and publications without requests to the rooms' goroutines.
func TestSummaries(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), nil)
	s, _ := enter(t, n, "ada", false, bodyOf(1, 1))
	if _, refused := arrives(n, "attic", "grace", ""); refused != nil {
		t.Fatal(refused)
	}
	expected := func(want string) {
		t.Helper()
		if got := fmt.Sprint(n.Summaries("")); got != want {
			t.Errorf("the rooms are %s, expected %s", got, want)
		}
	}
	expected("[{attic 1 0} {room 1 1}]")
	handle(s, &signal.Unpublish{Publication: "body"})
	enter(t, n, "bob", false, bodyOf(1, 1))
	expected("[{attic 1 0} {room 2 1}]")
	if got := fmt.Sprint(n.Summaries("room")); got != "[{room 2 1}]" {
		t.Errorf("one room is %s", got)
	}
}
