package sfu

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/sfu/roomevent"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// tracksOn returns the tracks of alice's body in the room of a session.
func tracksOn(t *testing.T, s *Session) (tracks []*track.Track) {
	t.Helper()
	inRoom(t, s, func(r *Room) {
		if p := r.present.Publication(bodyRef); p != nil {
			tracks = slices.Clone(p.Tracks)
		}
	})
	return tracks
}

// TestASessionMovesToAnotherNode checks that a session continues on another node with the tracks that others receive,
// that others on both nodes notice nothing, and that the session can move back.
func TestASessionMovesToAnotherNode(t *testing.T) {
	nodes := joinedNodes(t, "a", "b")
	alice, aliceBox := admitted(t, nodes[0], "alice", &signal.Join{
		Version: signal.Version, Receive: true, Pauses: true, Publications: []volumetric.Publication{bodyOf(1, 2)},
	})
	joined := expect[*signal.Joined](t, aliceBox, 1)
	bob, bobBox := enter(t, nodes[0], "bob", true)
	carol, carolBox := enter(t, nodes[1], "carol", true)
	knows(t, carolBox, "alice", 1)
	ofBob, ofCarol := tracksOn(t, bob), tracksOn(t, carol)
	for move, to := range []int{1, 0} {
		o := &shelf{}
		next, refused := nodes[to].Join(JoinRequest{
			Join: &signal.Join{
				Version: signal.Version, Receive: true, Pauses: true,
				Resume: &signal.ResumeRequest{Session: joined.Session, NewConnection: true},
			},
			Room: "room", Identity: "alice", OwnsIdentity: true, Grants: Grants{Publish: true, Subscribe: true},
			Outbox: o, At: time.Now(),
			Adopt: &Adoption{Session: joined.Session, Secret: joined.Resume.Secret, Epoch: uint64(move + 1)},
		})
		if refused != nil {
			t.Fatal(refused)
		}
		reply := expect[*signal.Joined](t, o, 1)
		if !reply.Resumed || reply.Session != joined.Session || reply.Resume.Secret == joined.Resume.Secret {
			t.Errorf("move %d is answered with %+v", move, reply)
		}
		// The publisher's new offer has a line for each track of the publication.
		lines := 0
		for _, m := range expect[*signal.Offer](t, o, 1).Media {
			if m.Role == signal.RolePublish && m.Publication == "body" {
				lines++
			}
		}
		if lines != 2 {
			t.Errorf("move %d: the offer has %d lines of the publication", move, lines)
		}
		expect[*signal.Wanted](t, o, 1)
		// The mirror on the former home takes the tracks from the new home.
		other := []*Session{bob, carol}[1-to]
		eventually(t, func() bool {
			bound := false
			inRoom(t, other, func(r *Room) {
				m := r.span.mirrors["alice"]
				bound = m != nil && m.find("body") != nil && m.find("body").bound
			})
			return bound
		}, "the mirror on the former home")
		if _, closed := aliceBox.ended(); closed {
			t.Errorf("move %d: the former websocket has ended before the client has left", move)
		}
		alice.Detach()
		alice, aliceBox = next, o
	}
	if !slices.Equal(tracksOn(t, bob), ofBob) || !slices.Equal(tracksOn(t, carol), ofCarol) {
		t.Error("receivers have other tracks")
	}
	for name, box := range map[string]*shelf{"bob": bobBox, "carol": carolBox} {
		_, left := latest[*signal.ParticipantLeft](box)
		_, ended := latest[*signal.Unpublished](box)
		if left+ended != 0 {
			t.Errorf("%s is told of %d participants and %d publications that have ended", name, left, ended)
		}
	}
	if _, n := latest[*signal.ParticipantJoined](bobBox); n != 1 {
		t.Errorf("bob is told of %d joins, expected carol's", n)
	}
}

// TestAnAdoptionWithLessRights checks that the publications of a session end if its present token does not grant them.
func TestAnAdoptionWithLessRights(t *testing.T) {
	nodes := joinedNodes(t, "a", "b")
	_, aliceBox := enter(t, nodes[0], "alice", false, bodyOf(1, 1))
	joined := expect[*signal.Joined](t, aliceBox, 1)
	carol, carolBox := enter(t, nodes[1], "carol", true)
	knows(t, carolBox, "alice", 1)
	o := &shelf{}
	if _, refused := nodes[1].Join(JoinRequest{
		Join: &signal.Join{Version: signal.Version}, Room: "room", Identity: "alice", OwnsIdentity: true,
		Outbox: o, At: time.Now(), Adopt: &Adoption{Session: joined.Session, Epoch: 1},
	}); refused != nil {
		t.Fatal(refused)
	}
	expect[*signal.Unpublished](t, carolBox, 1)
	expect[*signal.Unpublished](t, o, 1)
	if tracks := tracksOn(t, carol); tracks != nil {
		t.Errorf("%d tracks remain", len(tracks))
	}
}

// TestAnAdoptionWithoutAMirror checks that a session continues with the publications of the join if the node has no
// mirror.
func TestAnAdoptionWithoutAMirror(t *testing.T) {
	nodes := joinedNodes(t, "a")
	o := &shelf{}
	join := JoinRequest{
		Join: &signal.Join{
			Version: signal.Version, Publications: []volumetric.Publication{bodyOf(1, 1)},
			Resume: &signal.ResumeRequest{Session: "session", Secret: "secret"},
		},
		Room: "room", Identity: "alice", OwnsIdentity: true, Grants: Grants{Publish: true},
		Outbox: o, At: time.Now(), Adopt: &Adoption{Session: "session", Secret: "secret", Epoch: 3},
	}
	s, refused := nodes[0].Join(join)
	if refused != nil {
		t.Fatal(refused)
	}
	if m := expect[*signal.Joined](t, o, 1); !m.Resumed || m.Session != "session" {
		t.Errorf("the reply is %+v", m)
	}
	if len(tracksOn(t, s)) != 1 {
		t.Error("the publication is missing")
	}
	// The client has not received the reply, and resumes with the secret of its former home.
	join.Outbox = &shelf{}
	if _, refused := nodes[0].Join(join); refused != nil {
		t.Error(refused)
	}
}

// TestTwoNodesAdoptASession checks that the node whose claim is weaker makes the participant a mirror, though both
// claims have the same epoch, and that others notice nothing.
func TestTwoNodesAdoptASession(t *testing.T) {
	nodes := joinedNodes(t, "a")
	alice, aliceBox := enter(t, nodes[0], "alice", false, bodyOf(1, 1))
	bob, bobBox := enter(t, nodes[0], "bob", true)
	before := tracksOn(t, bob)
	inRoom(t, alice, func(r *Room) {
		session := r.participants["alice"].Session
		present := roomevent.Participant{Identity: "alice", Session: session}
		remoteEvent{"b", roomevent.Present{Participant: present}}.apply(r)
		if r.participants["alice"] == nil {
			t.Error("a claim of the same epoch ends the session before the cluster has decided")
		}
		remoteEvent{"b", roomevent.Superseded{Identity: "alice", Session: session, Moved: true}}.apply(r)
		if m := r.span.mirrors["alice"]; r.participants["alice"] != nil || m == nil || m.node != "b" || !m.shown {
			t.Error("the participant is no mirror")
		}
	})
	if _, closed := aliceBox.ended(); closed {
		t.Error("alice's websocket has ended before the client has left")
	}
	alice.room.post(releasedRequest{alice.participant})
	eventually(t, func() bool {
		code, _ := aliceBox.ended()
		return code == signal.CodeReplaced
	}, "the end of the former websocket")
	if !slices.Equal(tracksOn(t, bob), before) {
		t.Error("bob has other tracks")
	}
	if _, n := latest[*signal.ParticipantLeft](bobBox); n != 0 {
		t.Error("bob is told of the end of alice")
	}
}

// TestTheFormerHomeKeepsReceiving checks that a participant that moves, the last of its node, keeps its slots and the
// room with their tracks until it has had time to connect to its next home.
func TestTheFormerHomeKeepsReceiving(t *testing.T) {
	nodes := joinedNodes(t, "a", "b")
	carol, carolBox := enter(t, nodes[1], "carol", true, bodyOf(1, 1))
	alice, aliceBox := enter(t, nodes[0], "alice", true)
	knows(t, aliceBox, "carol", 1)
	knows(t, carolBox, "alice", 0)
	room, _ := nodes[0].rooms.Room("room")
	// assigned reports whether a slot of alice on node a has a track.
	assigned := func() (yes bool) {
		q := inspection{func(*Room) {
			for _, slot := range alice.participant.subscriber.Slots.All() {
				yes = yes || slot.Target != nil
			}
		}, make(chan struct{})}
		room.post(q)
		select {
		case <-q.done:
		case <-room.done:
			return false
		}
		return yes
	}
	eventually(t, assigned, "the assignment of a slot")
	joined := expect[*signal.Joined](t, aliceBox, 1)
	adopt(t, nodes[1], &Adoption{Session: joined.Session, Epoch: 1}, nil, Grants{Subscribe: true})
	eventually(t, func() bool { return !nodes[0].HasSession(joined.Session) }, "the move")
	if !assigned() {
		t.Error("the slot has no track after the move")
	}
	if now, _ := nodes[0].rooms.Room("room"); now != room {
		t.Error("the room has ended")
	}
	room.post(releasedRequest{alice.participant})
	eventually(t, func() bool { return !exists(nodes[0]) }, "the end of the room on node a")
	inRoom(t, carol, func(r *Room) {
		if r.participants["alice"] == nil {
			t.Error("alice is not on node b")
		}
	})
}

// TestEventsBalanceOverMoves checks that in the events of each room id participants and publications end as often as
// they begin, for a session that moves to a node that has the room, back, and to one that does not.
func TestEventsBalanceOverMoves(t *testing.T) {
	diaries := map[string]*diary{"a": {}, "b": {}, "c": {}}
	nodes := joinedNodesWith(t, func(name string, c *Config) { c.Events = diaries[name] }, "a", "b", "c")
	present, aliceBox := enter(t, nodes[0], "alice", true, bodyOf(1, 2))
	joined := expect[*signal.Joined](t, aliceBox, 1)
	carol, carolBox := enter(t, nodes[1], "carol", true)
	knows(t, carolBox, "alice", 1)
	for move, to := range []int{1, 0, 2} {
		former := present
		present, _ = adopt(t, nodes[to], &Adoption{Session: joined.Session, Epoch: uint64(move + 1)}, nil,
			Grants{Publish: true, Subscribe: true})
		for _, s := range []*Session{former, carol} {
			eventually(t, func() bool {
				known := false
				inRoom(t, s, func(r *Room) {
					m := r.span.mirrors["alice"]
					known = m != nil && m.node == string("abc"[to]) || s == carol && to == 1
				})
				return known
			}, "move %d to be known", move)
		}
		former.Detach()
	}
	if m, _ := latest[*signal.ParticipantLeft](carolBox); m != nil {
		t.Errorf("carol is told that %s has left", m.Identity)
	}
	handle(present, &signal.Leave{})
	handle(carol, &signal.Leave{})
	eventually(t, func() bool {
		for _, n := range nodes {
			if exists(n) {
				return false
			}
		}
		return true
	}, "the end of the room on all nodes")
	visits := 0
	for name, d := range diaries {
		lines := d.lines(t)
		balance := map[string]int{}
		for _, line := range lines {
			text, _, _ := strings.Cut(line, ":")
			kind, of, _ := strings.Cut(text, " ")
			switch kind {
			case "participant_joined", "published":
				balance[of]++
			case "participant_left", "unpublished":
				balance[of]--
			}
			if kind == "participant_joined" && of == "room alice" {
				visits++
			}
		}
		for of, n := range balance {
			if n != 0 {
				t.Errorf("node %s: %d more events begin %q than end it:\n%s", name, n, of, strings.Join(lines, "\n"))
			}
		}
	}
	if visits != 4 {
		t.Errorf("alice has joined %d rooms, expected 4", visits)
	}
}
