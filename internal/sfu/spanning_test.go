package sfu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/sfu/dataflow"
	"github.com/volsfu/volsfu/internal/sfu/roomevent"
	"github.com/volsfu/volsfu/internal/sfu/roomrecording"
	"github.com/volsfu/volsfu/pkg/recording"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// named returns the names of events, for example "Left Unpublished".
func named(events []roomevent.Event) (names []string) {
	for _, e := range events {
		names = append(names, fmt.Sprintf("%T", e)[len("roomevent."):])
	}
	return names
}

// TestLeaversWithdrawTheirPublications checks that the end of each publication follows the end of its participant, and
// that the clients of other nodes receive one message.
func TestLeaversWithdrawTheirPublications(t *testing.T) {
	c := newConference(t, nil, "a", "b")
	bob := c.enter(c[1], "bob", true, false)
	for range 3 {
		alice := c.enter(c[0], "alice", false, true, ladder(1, 2))
		c[0].out = nil
		id := alice.Publications[0].ID
		c[0].stage.ask(func(r *Room) { r.remove(alice.participant, "left") })
		if got := named(c[0].out); !slices.Equal(got, []string{"Left", "Unpublished"}) {
			t.Errorf("events %q, expected the end of the participant, then of its publication", got)
		}
		if e, ok := c[0].out[len(c[0].out)-1].(roomevent.Unpublished); !ok || e.ID != id || e.Ref != bodyRef {
			t.Errorf("%+v has ended", e)
		}
		c.exchange()
	}
	if _, n := latest[*signal.Unpublished](bob.shelf); n != 0 {
		t.Errorf("bob receives %d messages unpublished", n)
	}
	if _, n := latest[*signal.ParticipantLeft](bob.shelf); n != 3 {
		t.Errorf("bob receives %d messages participant_left, expected 3", n)
	}
}

// TestNoEventFollowsExited ends a room and lets its goroutine continue.
func TestNoEventFollowsExited(t *testing.T) {
	c := newConference(t, nil, "a", "b")
	alice := c.enter(c[0], "alice", false, true, ladder(1, 2))
	c.enter(c[1], "bob", true, true, ladder(1, 1))
	c[0].out = nil
	s := c[0].stage.room.span
	s.exited()
	s.left(alice.participant, alice.Publications, "panic")
	c[0].stage.ask(func(*Room) { s.end() })
	if got := named(c[0].out); !slices.Equal(got, []string{"Exited"}) {
		t.Errorf("events %q, expected Exited only", got)
	}
}

// TestPosesComeWithTheFirstTake checks that a node that takes a publication for the first time receives the pose of a
// resting object, and other nodes do not.
func TestPosesComeWithTheFirstTake(t *testing.T) {
	c := newConference(t, nil, "a", "b", "c")
	alice := c.enter(c[0], "alice", false, true, ladder(1, 3))
	alice.say(&signal.Pose{Publication: "body", Orientation: signal.Rotation{0, 0, 0, 1}})
	c[0].out = nil
	take := roomevent.Take{
		Ref: bodyRef, Node: "a", ID: alice.Publications[0].ID, Tiles: []allocate.QualitySet{1}, Near: []bool{false},
	}
	poses := func() (list []string) {
		for _, e := range c[0].out {
			if p, ok := e.(roomevent.Posed); ok {
				list = append(list, p.Node)
			}
		}
		c[0].out = nil
		return list
	}
	c[0].receive("b", take)
	c[0].receive("b", take)
	c[0].receive("c", take)
	if got := poses(); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("poses for %q, expected one for each node", got)
	}
	// The trunk has ended, and its successor takes again.
	c[0].receive("b", roomevent.Exited{})
	c[0].receive("b", take)
	if got := poses(); !slices.Equal(got, []string{"b"}) {
		t.Errorf("poses for %q after another trunk", got)
	}
}

// TestPublicationsOfFormerHomesEnd checks that a publication that the next home lacks ends once that home is complete.
func TestPublicationsOfFormerHomesEnd(t *testing.T) {
	c := newConference(t, nil, "a", "b")
	desk := ladder(1, 1)
	desk.Name = "desk"
	c.enter(c[0], "alice", false, true, ladder(1, 3), desk)
	bob := c.enter(c[1], "bob", true, false)
	present := roomevent.Participant{
		Identity: "alice", Session: "session of alice", Epoch: 1, Live: true, Complete: true,
	}
	c[1].receive("c", roomevent.Present{Participant: present})
	if _, n := latest[*signal.Unpublished](bob.shelf); n != 0 {
		t.Error("publications end before the next home has told its own")
	}
	c[1].receive("c", roomevent.Published{Ref: bodyRef, ID: 5, Description: ladder(1, 3)})
	c[1].receive("c", roomevent.Present{Participant: present})
	if m := expect[*signal.Unpublished](t, bob.shelf, 1); m.Publication != "desk" {
		t.Errorf("%q has ended", m.Publication)
	}
	if m := c[1].stage.room.span.mirrors["alice"]; len(m.remotes) != 1 || !m.remotes[0].bound {
		t.Errorf("%d publications remain", len(m.remotes))
	}
}

// TestMutingsComeWithPublications checks that a publication that is muted when it is told is muted on other nodes.
func TestMutingsComeWithPublications(t *testing.T) {
	c := newConference(t, nil, "a", "b")
	bob := c.enter(c[1], "bob", true, false)
	c[1].receive("a", roomevent.Present{Participant: roomevent.Participant{
		Identity: "alice", Session: "s", Live: true,
	}})
	c[1].receive("a", roomevent.Published{
		Ref: bodyRef, ID: 5, Description: ladder(1, 3), Mute: signal.MuteState{Publication: "body", Own: true},
	})
	bob.attach()
	if n := len(bob.subscriber.Slots.All()); n != 0 {
		t.Errorf("%d slots for a muted publication", n)
	}
	if list := c[1].stage.room.present.Get("alice").Mutings(); len(list) != 1 || !list[0].Own {
		t.Errorf("the mutings are %+v", list)
	}
}

// TestDataBetweenNodes checks the recipients, the limits and the counts of data messages.
func TestDataBetweenNodes(t *testing.T) {
	c := newConference(t, nil, "a", "b", "c")
	alice := c.enter(c[0], "alice", false, true)
	alice.grants.Data = true
	bob, carol := c.enter(c[1], "bob", true, true), c.enter(c[2], "carol", true, true)
	texts := func(p *player) (list []string) {
		for _, m := range p.all {
			if data, ok := m.(*signal.Data); ok {
				list = append(list, data.Text)
			}
		}
		return list
	}
	alice.say(&signal.Data{Seq: 1, Text: "all"}, &signal.Data{Seq: 2, To: []string{"bob"}, Text: "bob only"})
	c.exchange()
	if got := texts(bob); !slices.Equal(got, []string{"all", "bob only"}) {
		t.Errorf("bob receives %q", got)
	}
	if got := texts(carol); !slices.Equal(got, []string{"all"}) {
		t.Errorf("carol receives %q", got)
	}
	// The client repeats a message on its next home.
	from := func(seq int64, text string) roomevent.Sent {
		return roomevent.Sent{From: "alice", Data: &signal.Data{Seq: seq, Text: text}}
	}
	c[1].receive("a", from(2, "again"))
	c[1].receive("a", from(3, "next"))
	if got := texts(bob); !slices.Equal(got, []string{"all", "bob only", "next"}) {
		t.Errorf("bob receives %q", got)
	}
	// Messages that cannot be delivered are counted.
	c[1].receive("a", roomevent.Sent{From: "nobody", Data: &signal.Data{Text: "x"}})
	c[1].receive("a", roomevent.Sent{From: "alice", Data: &signal.Data{Text: "x", Binary: []byte("x")}})
	c[1].receive("a", roomevent.Sent{From: "alice"})
	c[1].stage.ask(func(r *Room) { r.deliveries.AllowN(r.now, int(r.deliveries.TokensAt(r.now))) })
	c[1].receive("a", from(4, "too much"))
	got := c[1].stage.room.node.DataLosses()
	if want := (dataflow.Losses{Limit: 1, Sender: 1, Invalid: 2}); got != want {
		t.Errorf("the losses are %+v, expected %+v", got, want)
	}
	// Recipients of other nodes count at the sender.
	c[0].stage.ask(func(r *Room) {
		r.deliveries.AllowN(r.now, int(r.deliveries.TokensAt(r.now))-1)
		if refused := r.forwardData(alice.participant, &signal.Data{Text: "x"}); refused == nil ||
			refused.Code != signal.CodeLimit {
			t.Errorf("a message beyond the limit of the room: %v", refused)
		}
	})
	// The home of a named recipient does not answer.
	c[0].receive("b", roomevent.Detached{Identity: "bob"})
	c[0].stage.ask(func(r *Room) {
		refused := r.forwardData(alice.participant, &signal.Data{To: []string{"bob"}, Text: "x"})
		if refused == nil || refused.RetryAfterMS == 0 {
			t.Errorf("a message for a dead node: %v", refused)
		}
	})
}

// TestHiddenMirrorsAreSilent checks that a second holder of an identity does not speak as the first.
func TestHiddenMirrorsAreSilent(t *testing.T) {
	c := newConference(t, nil, "a")
	c.enter(c[0], "alice", false, true)
	bob := c.enter(c[0], "bob", true, true)
	c[0].receive("b", roomevent.Present{Participant: roomevent.Participant{
		Identity: "alice", Session: "other", Live: true,
	}})
	c[0].receive("b", roomevent.Sent{From: "alice", Data: &signal.Data{Text: "x"}})
	if _, n := latest[*signal.Data](bob.shelf); n != 0 {
		t.Error("bob receives a message of the hidden mirror")
	}
}

// TestOperatorsOfOtherNodes checks changes of a participant by a moderator and by the API of another node.
func TestOperatorsOfOtherNodes(t *testing.T) {
	c := newConference(t, nil, "a", "b")
	alice := c.enter(c[0], "alice", true, true, ladder(1, 2))
	alice.grants.Data, alice.granted = true, alice.grants
	bob := c.enter(c[1], "bob", true, true)
	refuses := func(m signal.Message) signal.Code {
		_, before := latest[*signal.Error](bob.shelf)
		c[1].stage.room.do(c[1].stage.now, messageRequest{
			participant: bob.participant, outbox: bob.shelf, message: m, at: c[1].stage.now,
		})
		c.exchange()
		if refused, n := latest[*signal.Error](bob.shelf); n != before {
			return refused.Code
		}
		return ""
	}
	no := false
	mute := &signal.Mute{Participant: "alice", Publication: "body", Muted: true}
	attributes := &signal.Attributes{Participant: "alice", Attributes: map[string]string{"name": "Alice"}}
	permissions := &signal.SetPermissions{Participant: "alice", Data: &no}
	for _, m := range []signal.Message{mute, attributes, permissions} {
		if code := refuses(m); code != signal.CodeForbidden {
			t.Errorf("%T without the grant: %q", m, code)
		}
	}
	bob.grants.Admin = true
	for _, m := range []signal.Message{mute, attributes, permissions} {
		if code := refuses(m); code != "" {
			t.Errorf("%T: %q", m, code)
		}
	}
	if p := alice.Publications[0]; !p.Mute.Operator || alice.Attributes["name"] != "Alice" || alice.grants.Data {
		t.Errorf("alice has %+v, %v, %+v", p.Mute, alice.Attributes, alice.grants)
	}
	// Each change returns to the node of the operator.
	if m := expect[*signal.Muted](t, bob.shelf, 1); m.Participant != "alice" || !m.Operator {
		t.Errorf("bob receives %+v", m)
	}
	if m := expect[*signal.Attributes](t, bob.shelf, 1); m.Attributes["name"] != "Alice" {
		t.Errorf("bob receives %+v", m)
	}
	absent := &signal.Mute{Participant: "alice", Publication: "desk", Muted: true}
	if code := refuses(absent); code != signal.CodeNotFound {
		t.Errorf("a publication that alice does not have: %q", code)
	}
	// The home refuses what it cannot do.
	c[0].receive("b", roomevent.Operate{Identity: "nobody", Mute: mute})
	c[0].receive("b", roomevent.Operate{Identity: "alice"})
	c[1].receive("a", roomevent.Detached{Identity: "alice"})
	if code := refuses(mute); code != signal.CodeInternal {
		t.Errorf("a dead home: %q", code)
	}
}

// TestTheAPIReachesOtherNodes checks the same for the API.
func TestTheAPIReachesOtherNodes(t *testing.T) {
	nodes := joinedNodes(t, "a", "b")
	_, aliceBox := enter(t, nodes[0], "alice", true, bodyOf(1, 1))
	_, bobBox := enter(t, nodes[1], "bob", true)
	knows(t, bobBox, "alice", 1)
	ctx := context.Background()
	no := false
	for _, err := range []error{
		nodes[1].Mute(ctx, "room", "alice", "body", true),
		nodes[1].SetAttributes(ctx, "room", "alice", map[string]string{"name": "Alice"}),
		nodes[1].SetPermissions(ctx, "room", "alice", signal.SetPermissions{Subscribe: &no}),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	expect[*signal.Muted](t, aliceBox, 1)
	expect[*signal.Attributes](t, aliceBox, 1)
	expect[*signal.PermissionsChanged](t, aliceBox, 1)
	for _, err := range []error{
		nodes[1].Mute(ctx, "room", "alice", "desk", true), nodes[1].Mute(ctx, "room", "nobody", "body", true),
	} {
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("got %v, expected ErrNotFound", err)
		}
	}
}

// TestMetadataIsShared checks that metadata reach the other nodes, also a node that enters after the operator's node
// has left, and that the last change wins.
func TestMetadataIsShared(t *testing.T) {
	nodes := joinedNodes(t, "a", "b", "c")
	alice, _ := enter(t, nodes[0], "alice", true)
	_, bobBox := enter(t, nodes[1], "bob", true)
	knows(t, bobBox, "alice", 0)
	ctx := context.Background()
	if err := nodes[0].SetMetadata(ctx, "room", map[string]string{"title": "one"}); err != nil {
		t.Fatal(err)
	}
	if m := expect[*signal.Metadata](t, bobBox, 1); m.Metadata["title"] != "one" {
		t.Errorf("bob receives %v", m.Metadata)
	}
	handle(alice, &signal.Leave{})
	expect[*signal.ParticipantLeft](t, bobBox, 1)
	eventually(t, func() bool { return !exists(nodes[0]) }, "the end of the room on node a")
	carol, carolBox := enter(t, nodes[2], "carol", true)
	eventually(t, func() bool {
		title := ""
		inRoom(t, carol, func(r *Room) { title = r.metadata["title"] })
		return title == "one"
	}, "the metadata on node c")
	if err := nodes[2].SetMetadata(ctx, "room", map[string]string{"title": "two"}); err != nil {
		t.Fatal(err)
	}
	if m := expect[*signal.Metadata](t, bobBox, 2); m.Metadata["title"] != "two" {
		t.Errorf("bob receives %v", m.Metadata)
	}
	inRoom(t, carol, func(r *Room) {
		remoteEvent{"z", roomevent.Shared{Metadata: map[string]string{"title": "stale"}, MetadataAt: 1}}.apply(r)
		remoteEvent{"z", roomevent.Shared{Metadata: map[string]string{"": "bad"}, MetadataAt: 1 << 62}}.apply(r)
		if r.metadata["title"] != "two" {
			t.Errorf("the title is %q", r.metadata["title"])
		}
	})
	expect[*signal.Metadata](t, carolBox, 1)
}

// taped is a recorder that keeps the ends of its recordings.
type taped struct {
	automatic recording.Qualities
	mu        sync.Mutex
	begun     int
	ends      []string
}

// counts returns the number of recordings that have begun and of those that have not ended.
func (r *taped) counts() (begun, present int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begun, r.begun - len(r.ends)
}

// Automatic implements Recorder.
func (r *taped) Automatic() recording.Qualities { return r.automatic }

// Start implements Recorder.
func (r *taped) Start(string, time.Time) roomrecording.Writer {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun++
	return r
}

// Publish implements roomrecording.Writer.
func (r *taped) Publish(time.Time, string, recording.Qualities, volumetric.Publication) uint32 {
	return 0
}

// Read implements roomrecording.Writer.
func (r *taped) Read(time.Time, uint32, int, volumetric.Quality, *track.Track, bool) {}

// Unpublish implements roomrecording.Writer.
func (r *taped) Unpublish(time.Time, uint32) {}

// Message implements roomrecording.Writer.
func (r *taped) Message(time.Time, signal.Message) {}

// State implements roomrecording.Writer.
func (r *taped) State(string, signal.Message) {}

// Stop implements roomrecording.Writer.
func (r *taped) Stop(_ time.Time, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ends = append(r.ends, reason)
}

// TestRecordingsAreKnownOnAllNodes checks the notices on the nodes that do not record.
func TestRecordingsAreKnownOnAllNodes(t *testing.T) {
	tapes := map[string]*taped{"a": {}, "b": {}}
	nodes := joinedNodesWith(t, func(name string, c *Config) { c.Recorder = tapes[name] }, "a", "b")
	_, aliceBox := enter(t, nodes[0], "alice", true, bodyOf(1, 1))
	bob, bobBox := enter(t, nodes[1], "bob", true)
	knows(t, bobBox, "alice", 1)
	ctx := context.Background()
	if err := nodes[0].StartRecording(ctx, "room", recording.Best); err != nil {
		t.Fatal(err)
	}
	for _, o := range []*shelf{aliceBox, bobBox} {
		if m := expect[*signal.Recording](t, o, 1); !m.Active {
			t.Error("the recording is not active")
		}
	}
	_, carolBox := enter(t, nodes[1], "carol", true)
	if m := expect[*signal.Joined](t, carolBox, 1); !m.Recorded {
		t.Error("carol is not told that her media is recorded")
	}
	inRoom(t, bob, func(r *Room) {
		remoteEvent{"z", roomevent.Shared{Recording: 1}}.apply(r)
		remoteEvent{"z", roomevent.Shared{}}.apply(r)
	})
	if err := nodes[0].StopRecording(ctx, "room"); err != nil {
		t.Fatal(err)
	}
	if m := expect[*signal.Recording](t, bobBox, 2); m.Active {
		t.Error("the recording is still active")
	}
}

// TestOneNodeRecordsAutomatically checks that nodes which record every room agree on one, and that another node follows
// when the last participant of the recording node has moved away.
func TestOneNodeRecordsAutomatically(t *testing.T) {
	tapes := map[string]*taped{"a": {automatic: recording.Best}, "b": {automatic: recording.Best}}
	nodes := joinedNodesWith(t, func(name string, c *Config) { c.Recorder = tapes[name] }, "a", "b")
	alice, aliceBox := enter(t, nodes[0], "alice", true, bodyOf(1, 1))
	present := func() int {
		_, a := tapes["a"].counts()
		_, b := tapes["b"].counts()
		return a + b
	}
	inRoom(t, alice, func(r *Room) {
		if !r.recorder.delayed.running() && r.recorder.current == nil {
			t.Error("no automatic recording is scheduled")
		}
		automaticRequest{}.apply(r)
	})
	if n := present(); n != 1 {
		t.Fatalf("%d recordings, expected that of node a", n)
	}
	bob, bobBox := enter(t, nodes[1], "bob", true)
	knows(t, bobBox, "alice", 1)
	eventually(t, func() bool {
		known := false
		inRoom(t, bob, func(r *Room) { known = r.recorder.elsewhere() })
		return known
	}, "the recording to be known on node b")
	inRoom(t, bob, func(r *Room) {
		r.recorder.schedule()
		automaticRequest{}.apply(r)
		if r.recorder.current != nil {
			t.Error("node b records what node a records")
		}
		// Node b has begun before it knew of node a.
		r.recorder.start(recording.Best, true)
		r.recorder.yield(r.recorder.current.Since-1, "a")
		if r.recorder.current != nil {
			t.Error("the later recording continues")
		}
	})
	if n := present(); n != 1 {
		t.Fatalf("%d recordings", n)
	}
	joined := expect[*signal.Joined](t, aliceBox, 1)
	adopt(t, nodes[1], &Adoption{Session: joined.Session, Epoch: 1}, nil, Grants{Publish: true, Subscribe: true})
	eventually(t, func() bool {
		inRoom(t, bob, func(r *Room) {
			automaticRequest{}.apply(r)
		})
		_, a := tapes["a"].counts()
		_, b := tapes["b"].counts()
		return a == 0 && b == 1
	}, "the recording of node b")
	tapes["a"].mu.Lock()
	defer tapes["a"].mu.Unlock()
	if want := "the last participant has moved to another node"; !slices.Contains(tapes["a"].ends, want) {
		t.Errorf("the recording of node a has ended: %q", tapes["a"].ends)
	}
}

// TestOperatorEndsAnAutomaticRecording checks that no other node continues a recording that an operator has ended, also
// if the room has no metadata, and that another node continues one that ends with its node.
func TestOperatorEndsAnAutomaticRecording(t *testing.T) {
	tapes := map[string]*taped{"a": {automatic: recording.Best}, "b": {}}
	nodes := joinedNodesWith(t, func(name string, c *Config) { c.Recorder = tapes[name] }, "a", "b")
	alice, _ := enter(t, nodes[0], "alice", true, bodyOf(1, 1))
	bob, bobBox := enter(t, nodes[1], "bob", true)
	knows(t, bobBox, "alice", 1)
	begin := func(s *Session) {
		inRoom(t, s, func(r *Room) { automaticRequest{}.apply(r) })
	}
	recorder := func(want string) {
		t.Helper()
		eventually(t, func() bool {
			got := ""
			inRoom(t, bob, func(r *Room) { got = r.recorder.node })
			return got == want
		}, "node b to know the recording node %q", want)
	}
	begin(alice)
	recorder("a")
	inRoom(t, bob, func(*Room) { tapes["b"].automatic = recording.Best })
	if err := nodes[0].StopRecording(t.Context(), "room"); err != nil {
		t.Fatal(err)
	}
	recorder("")
	begin(bob)
	if begun, _ := tapes["b"].counts(); begun != 0 {
		t.Error("node b records the room after an operator has ended the recording of node a")
	}
	carol, _ := enter(t, nodes[0], "carol", false)
	enter(t, nodes[1], "dave", false)
	for _, s := range []*Session{alice, bob} {
		inRoom(t, s, func(r *Room) {
			if r.recorder.delayed.running() || r.recorder.current != nil {
				t.Error("a join begins the recording that an operator has ended")
			}
		})
	}
	// An operator begins another recording, which ends with the participants of its node.
	if err := nodes[0].StartRecording(t.Context(), "room", recording.Best); err != nil {
		t.Fatal(err)
	}
	recorder("a")
	handle(carol, &signal.Leave{})
	handle(alice, &signal.Leave{})
	recorder("")
	begin(bob)
	if begun, _ := tapes["b"].counts(); begun != 1 {
		t.Error("node b does not continue the recording of node a")
	}
}

// TestReleasedSessions checks that the former home withdraws a session some time after it has moved, unless the session
// has returned.
func TestReleasedSessions(t *testing.T) {
	for _, returns := range []bool{false, true} {
		c := newConference(t, nil, "a", "b")
		alice := c.enter(c[0], "alice", false, true, ladder(1, 2))
		c.enter(c[0], "bob", true, false)
		alice.connection.answerTimer, alice.connection.connectTimer = timer{}, timer{}
		id := alice.Publications[0].ID
		e := roomevent.Released{
			Identity: "alice", Session: alice.Session,
			Publications: []roomevent.Unpublished{{Ref: bodyRef, ID: id}},
		}
		if !returns {
			c[0].stage.ask(func(r *Room) { r.exit(r.participants["alice"]) })
		}
		c[0].stage.ask(func(r *Room) {
			r.span.releasing[alice.participant] = e
			releasedRequest{alice.participant}.apply(r)
			releasedRequest{alice.participant}.apply(r)
		})
		c.exchange()
		if n := len(c[0].released); n != map[bool]int{false: 1, true: 0}[returns] {
			t.Errorf("returns %v: %d sessions are released", returns, n)
		}
	}
}

// TestEventsOfOtherNodesAreBounded checks that a room applies some events per turn, and drops poses and lossy messages
// before others.
func TestEventsOfOtherNodesAreBounded(t *testing.T) {
	c := newConference(t, nil, "a")
	c.enter(c[0], "bob", true, true)
	r := c[0].stage.room
	for i := range 3 * eventsPerTurn {
		present := roomevent.Participant{Identity: fmt.Sprint(i), Session: "s"}
		r.span.inbox.put(remoteEvent{"z", roomevent.Present{Participant: present}})
	}
	turns := 0
	for {
		select {
		case <-r.span.ready():
			turns++
			c[0].stage.ask(remoteEvents{}.apply)
			continue
		default:
		}
		break
	}
	if n := len(r.span.mirrors); turns != 3 || n != 3*eventsPerTurn {
		t.Errorf("%d turns, %d mirrors", turns, n)
	}
	b := &r.span.inbox
	lossy := remoteEvent{"z", roomevent.Sent{Data: &signal.Data{Lossy: true}}}
	for range inboxLossy {
		if !b.put(lossy) {
			t.Fatal("a lossy message has no place")
		}
	}
	if b.put(lossy) || b.put(remoteEvent{"z", roomevent.Posed{}}) {
		t.Error("lossy events use the places of others")
	}
	for range inboxLimit - inboxLossy {
		if !b.put(remoteEvent{"z", roomevent.Sent{Data: &signal.Data{}}}) {
			t.Fatal("a reliable message has no place")
		}
	}
	if b.put(remoteEvent{"z", roomevent.Left{}}) {
		t.Error("the inbox has no limit")
	}
}

// TestKicksNameSessions checks that a kick and the end of a room spare later sessions.
func TestKicksNameSessions(t *testing.T) {
	c := newConference(t, nil, "a")
	alice := c.enter(c[0], "alice", true, true)
	alice.joined = start
	c[0].receive("b", roomevent.Kick{Identity: "alice", Session: "former"})
	c[0].receive("b", roomevent.Close{Before: start})
	if _, closed := alice.ended(); closed {
		t.Error("a later session is removed")
	}
	c[0].receive("b", roomevent.Kick{Identity: "alice", Session: "session of alice"})
	if code, _ := alice.ended(); code != signal.CodeKicked {
		t.Errorf("alice is closed with %q", code)
	}
}

// TestTheAudienceIsCounted checks that participants who may not publish are counted in a large room, on both nodes, and
// announced when they may publish.
func TestTheAudienceIsCounted(t *testing.T) {
	c := newConference(t, func(config *Config) { config.ParticipantsPerRoom = 1000 }, "a", "b")
	ann, ben := c.enter(c[0], "ann", true, true), c.enter(c[1], "ben", true, true)
	for i := range announcedParticipants - 2 {
		c[1].stage.enter(fmt.Sprint("p", i), false, true)
	}
	c[1].stage.ask(func(r *Room) {
		for _, p := range r.participants {
			p.Session = "session of " + p.Identity
			r.span.joined(p)
		}
	})
	c.exchange()
	announced := func(p *player) (n int) { _, n = latest[*signal.ParticipantJoined](p.shelf); return n }
	before := []int{announced(ann), announced(ben)}
	var viewers []*player
	join := func(identity string, publish bool) *player {
		v := c[0].stage.enter(identity, true, false)
		v.Session, v.grants.Publish = "session of "+identity, publish
		v.granted = v.grants
		c[0].stage.ask(func(r *Room) {
			r.exit(v.participant)
			v.Audience = r.joinsAudience(v.participant)
			r.enter(v.participant)
			r.audience.welcome(v.participant)
			r.audience.joined(&v.Presence, v.participant)
			r.span.joined(v.participant)
		})
		c.exchange()
		return v
	}
	for i := range 50 {
		viewers = append(viewers, join(fmt.Sprint("v", i), false))
		c.pass(10 * time.Millisecond)
	}
	c.pass(2 * time.Second)
	for i, p := range []*player{ann, ben} {
		m, n := latest[*signal.Audience](p.shelf)
		if m == nil || m.Count != 50 || n > 4 {
			t.Errorf("%s receives %d messages, the last %+v", p.Identity, n, m)
		}
		if announced(p) != before[i] {
			t.Errorf("%s receives %d joins of the audience", p.Identity, announced(p)-before[i])
		}
	}
	c[0].stage.ask(func(r *Room) {
		if n := len(r.present.Describe(&ann.Presence)); n != announcedParticipants-1 {
			t.Errorf("%d participants are described", n)
		}
	})
	if m := expect[*signal.Audience](t, join("late", false).shelf, 1); m.Count != 51 {
		t.Errorf("the last viewer receives %+v", m)
	}
	join("speaker", true)
	yes := true
	c[0].stage.ask(func(r *Room) {
		change{room: r}.permissions(viewers[0].participant, &signal.SetPermissions{Publish: &yes})
		change{room: r}.attributes(viewers[1].participant, map[string]string{"name": "x"})
		r.remove(viewers[2].participant, "left")
	})
	c.pass(2 * time.Second)
	for i, p := range []*player{ann, ben} {
		if n := announced(p) - before[i]; n != 2 {
			t.Errorf("%s receives %d joins, expected the speaker and the first viewer", p.Identity, n)
		}
		if m, _ := latest[*signal.Audience](p.shelf); m.Count != 49 {
			t.Errorf("%s receives a count of %d, expected 49", p.Identity, m.Count)
		}
		_, left := latest[*signal.ParticipantLeft](p.shelf)
		_, changed := latest[*signal.Attributes](p.shelf)
		if left+changed != 0 {
			t.Errorf("%s receives %d ends and %d changes of the audience", p.Identity, left, changed)
		}
	}
}
