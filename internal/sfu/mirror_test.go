package sfu

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/sfu/roomevent"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// wire is the cluster of a stage. It keeps the events until they are exchanged.
type wire struct {
	name  string
	stage *stage
	out   []roomevent.Event
	// mirrored and takes have the last event for each publication, states those of sessions.
	mirrored map[volumetric.PublicationRef]roomevent.Mirrored
	takes    map[volumetric.PublicationRef]roomevent.Take
	states   []roomevent.SessionState
	released []roomevent.Released
}

// destination returns the nodes for which an event is, nil for all, and whether it is for other nodes at all.
func destination(e roomevent.Event) (nodes []string, others bool) {
	switch e := e.(type) {
	case roomevent.Entered, roomevent.Mirrored, roomevent.Unmirrored, roomevent.SessionState, roomevent.Released:
		return nil, false
	case roomevent.Take:
		return []string{e.Node}, true
	case roomevent.Operate:
		return []string{e.Node}, true
	case roomevent.Sent:
		return e.Nodes, true
	case roomevent.Posed:
		if e.Node != "" {
			return []string{e.Node}, true
		}
	}
	return nil, true
}

// Tell implements Cluster.
func (w *wire) Tell(_ string, e roomevent.Event) { w.out = append(w.out, e) }

// conference has a room on several nodes in virtual time.
type conference []*wire

// newConference makes a stage for each name. adjust may be nil.
func newConference(t *testing.T, adjust func(*Config), names ...string) conference {
	t.Helper()
	var c conference
	for _, name := range names {
		w := &wire{
			name: name, mirrored: make(map[volumetric.PublicationRef]roomevent.Mirrored),
			takes: make(map[volumetric.PublicationRef]roomevent.Take),
		}
		w.stage = newStage(t, func(config *Config) {
			strictly(config)
			if adjust != nil {
				adjust(config)
			}
			config.Cluster = w
		})
		c = append(c, w)
	}
	return c
}

// exchange passes all events to the other nodes until there are no more.
func (c conference) exchange() {
	for again := true; again; {
		again = false
		for _, from := range c {
			events := from.out
			from.out = nil
			for _, e := range events {
				again = true
				from.pass(c, e)
			}
		}
	}
}

func (w *wire) pass(c conference, e roomevent.Event) {
	switch e := e.(type) {
	case roomevent.Mirrored:
		w.mirrored[e.Ref] = e
	case roomevent.Unmirrored:
		if m := w.mirrored[e.Ref]; m.ID == e.ID && m.Node == e.Node {
			delete(w.mirrored, e.Ref)
		}
	case roomevent.Take:
		w.takes[e.Ref] = e
	case roomevent.SessionState:
		w.states = append(w.states, e)
	case roomevent.Released:
		w.released = append(w.released, e)
	}
	nodes, others := destination(e)
	for _, other := range c {
		if other != w && others && (nodes == nil || slices.Contains(nodes, other.name)) {
			other.receive(w.name, e)
		}
	}
}

// receive applies an event of another node.
func (w *wire) receive(node string, e roomevent.Event) {
	w.stage.ask(func(r *Room) {
		if !r.span.inbox.put(remoteEvent{node, e}) {
			w.stage.t.Fatal("the inbox is full")
		}
		for len(r.span.inbox.events) > 0 {
			remoteEvents{}.apply(r)
		}
	})
}

// enter adds a participant, as the stage, and tells the others.
func (c conference) enter(
	w *wire, identity string, receive, pauses bool, publications ...volumetric.Publication,
) *player {
	p := w.stage.enter(identity, receive, pauses, publications...)
	p.Session = "session of " + identity
	w.stage.ask(func(r *Room) { r.span.joined(p.participant) })
	c.exchange()
	return p
}

// pass advances the time of all nodes.
func (c conference) pass(d time.Duration) {
	for end := time.Duration(0); end < d; end += 10 * time.Millisecond {
		for _, w := range c {
			w.stage.pass(10 * time.Millisecond)
		}
		c.exchange()
	}
}

// taken returns the tiles of the last demand for alice's body, for example "0 -" for quality 0 of the first tile.
func (w *wire) taken() string {
	var tiles []string
	for _, set := range w.takes[bodyRef].Tiles {
		text := ""
		for q := range set.Each {
			text += fmt.Sprint(int(q))
		}
		if text == "" {
			text = "-"
		}
		tiles = append(tiles, text)
	}
	return strings.Join(tiles, " ")
}

var bodyRef = volumetric.PublicationRef{Participant: "alice", Publication: "body"}

// mirrorTracks returns the tracks of alice's body on a node.
func (w *wire) mirrorTracks() []*track.Track {
	if p := w.stage.room.present.Publication(bodyRef); p != nil {
		return p.Tracks
	}
	return nil
}

// TestMirrorsAppearAsParticipants checks the messages about a participant of another node from its join to its end.
func TestMirrorsAppearAsParticipants(t *testing.T) {
	c := newConference(t, nil, "a", "b")
	bob := c.enter(c[1], "bob", true, false)
	alice := c.enter(c[0], "alice", true, true, ladder(2, 3))
	if m := expect[*signal.ParticipantJoined](t, bob.shelf, 1); m.Participant.Identity != "alice" {
		t.Errorf("bob is told of %q", m.Participant.Identity)
	}
	if m := expect[*signal.Published](t, bob.shelf, 1); m.Publication.Name != "body" || len(m.Publication.Tiles) != 2 {
		t.Errorf("bob is told of %+v", m.Publication)
	}
	c[0].stage.ask(func(r *Room) {
		if list := r.present.Describe(&alice.Presence); len(list) != 1 || list[0].Identity != "bob" {
			t.Errorf("the join of alice is answered with %+v", list)
		}
	})
	c[1].stage.ask(func(r *Room) {
		list := r.present.Describe(&bob.Presence)
		if len(list) != 1 || list[0].Identity != "alice" || len(list[0].Publications) != 1 {
			t.Errorf("a join of bob is answered with %+v", list)
		}
	})
	bob.attach()
	if slots := bob.subscriber.Slots.All(); len(slots) != 2 || slots[0].Target.Tile.Participant != "alice" {
		t.Errorf("bob has %d slots for alice", len(slots))
	}
	alice.grants.Data = true
	alice.say(&signal.Attributes{Attributes: map[string]string{"name": "Alice"}},
		&signal.Mute{Publication: "body", Muted: true},
		&signal.Pose{Publication: "body", Position: [3]float64{1, 2, 3}, Orientation: signal.Rotation{0, 0, 0, 1}},
		&signal.Data{Seq: 1, Topic: "chat", Text: "hello"})
	c.exchange()
	if m := expect[*signal.Attributes](t, bob.shelf, 1); m.Participant != "alice" || m.Attributes["name"] != "Alice" {
		t.Errorf("bob is told %+v", m)
	}
	if m := expect[*signal.Muted](t, bob.shelf, 1); m.Participant != "alice" || !m.Own {
		t.Errorf("bob is told %+v", m)
	}
	if slots := bob.subscriber.Slots.All(); slots[0].Target != nil {
		t.Error("a slot still has the muted publication")
	}
	if m := expect[*signal.Pose](t, bob.shelf, 1); m.Participant != "alice" || m.Position[1] != 2 {
		t.Errorf("bob is told %+v", m)
	}
	if m := expect[*signal.Data](t, bob.shelf, 1); m.Participant != "alice" || m.Text != "hello" || m.Seq != 1 {
		t.Errorf("bob is told %+v", m)
	}
	tracks := c[1].mirrorTracks()
	alice.say(&signal.Unpublish{Publication: "body"})
	c.exchange()
	if m := expect[*signal.Unpublished](t, bob.shelf, 1); m.PublicationRef != bodyRef {
		t.Errorf("bob is told %+v", m)
	}
	if len(tracks) != 6 || len(c[1].mirrored) != 0 {
		t.Errorf("%d tracks, %d publications are still mirrored", len(tracks), len(c[1].mirrored))
	}
	alice.say(&signal.Leave{})
	c.exchange()
	if m := expect[*signal.ParticipantLeft](t, bob.shelf, 1); m.Identity != "alice" || m.Reason != "left" {
		t.Errorf("bob is told %+v", m)
	}
	if n := len(c[1].stage.room.span.mirrors); n != 0 {
		t.Errorf("%d mirrors remain", n)
	}
}

// TestDemandTravelsToTheHome checks that the demand of a node has neither neighbours nor a hold time, and that the home
// adds both.
func TestDemandTravelsToTheHome(t *testing.T) {
	c := newConference(t, func(config *Config) { config.Suppression = DefaultConfig().Suppression }, "a", "b")
	alice := c.enter(c[0], "alice", false, true, ladder(2, 4))
	c.pass(3 * time.Second)
	alice.expectAsked(",")
	bob := c.enter(c[1], "bob", true, false)
	bob.attach()
	c.exchange()
	bob.choose(-1, signal.Only(1))
	c.exchange()
	bob.begin()
	c.exchange()
	if got := c[1].taken(); got != "1 1" {
		t.Errorf("node b takes %q, expected quality 1", got)
	}
	c.pass(3 * time.Second)
	alice.expectAsked("012,012")
	// A local receiver and the other node count together.
	carol := c.enter(c[0], "carol", true, false)
	carol.attach()
	carol.choose(0, signal.Only(3))
	carol.choose(1, signal.Only(volumetric.QualityOff))
	carol.begin()
	c.pass(3 * time.Second)
	alice.expectAsked("0123,012")
	bob.choose(-1, signal.Only(volumetric.QualityOff))
	c.exchange()
	if got := c[1].taken(); got != "- -" {
		t.Errorf("node b takes %q after its last receiver, expected nothing", got)
	}
	c.pass(3 * time.Second)
	alice.expectAsked("23,")
	// A link that carries one tile keeps the lowest quality of the other tile near, without packets.
	bob.choose(-1, signal.Auto())
	bob.way.path = known(1)
	c.pass(3 * time.Second)
	if take := c[1].takes[bodyRef]; !slices.Equal(take.Near, []bool{false, true}) || c[1].taken() != "0 -" {
		t.Errorf("node b takes %q and is near %v", c[1].taken(), take.Near)
	}
	alice.expectAsked("0123,0")
	c[0].receive("b", roomevent.Exited{})
	c.pass(3 * time.Second)
	alice.expectAsked("23,")
}

// TestParityTravelsToTheHome checks that the largest need of all nodes counts.
func TestParityTravelsToTheHome(t *testing.T) {
	c := newConference(t, nil, "a", "b")
	alice := c.enter(c[0], "alice", false, true, ladder(1, 1))
	bob := c.enter(c[1], "bob", true, false)
	bob.way.path, bob.way.share = known(100e6), 0.1
	bob.attach()
	c.pass(time.Second)
	parity := func() float64 {
		m, _ := latest[*signal.Wanted](alice.shelf)
		return m.Publications[0].Parity
	}
	if got := parity(); got != 0.1 {
		t.Errorf("alice is asked for %g, expected 0.1", got)
	}
	bob.way.share = 0
	c.pass(3 * time.Second)
	if got := parity(); got != 0 {
		t.Errorf("alice is asked for %g, expected 0", got)
	}
}

// TestMirrorsHaveTheRatesOfTheHome checks rates and the qualities that the publisher or the trunk cannot carry.
func TestMirrorsHaveTheRatesOfTheHome(t *testing.T) {
	c := newConference(t, nil, "a", "b")
	alice := c.enter(c[0], "alice", false, true, bodyOf(1, 2))
	bob := c.enter(c[1], "bob", true, false)
	bob.attach()
	c.exchange()
	home, mirror := c[0].stage.room.present.Publication(bodyRef), c[1].stage.room.present.Publication(bodyRef)
	low, high := playedMeter(1e6), playedMeter(5e6)
	home.Levels.SetMeter(0, &low)
	home.Levels.SetMeter(1, &high)
	bob.choose(-1, signal.Only(1))
	c.pass(time.Second)
	if got := mirror.Levels.Rate(0, 1); got != 5e6 {
		t.Errorf("quality 1 has %d bit/s on node b, expected 5e6", got)
	}
	bob.begin()
	id := c[1].mirrored[bodyRef].ID
	alice.say(&signal.Uplink{GaveUp: []signal.OwnTrack{{Publication: "body", Quality: 1}}})
	c.pass(time.Second)
	bob.expectCarried("0")
	alice.say(&signal.Uplink{})
	c.pass(time.Second)
	bob.expectCarried("1")
	c[1].receive("a", roomevent.Masked{Ref: bodyRef, ID: id, Tiles: []allocate.QualitySet{allocate.Qualities(1)}})
	c.pass(time.Second)
	bob.expectCarried("0")
	c[1].receive("a", roomevent.Masked{Ref: bodyRef, ID: id + 1, Tiles: []allocate.QualitySet{0}})
	c.pass(time.Second)
	bob.expectCarried("0")
	c[1].receive("a", roomevent.Masked{Ref: bodyRef, ID: id, Tiles: []allocate.QualitySet{0}})
	c.pass(time.Second)
	bob.expectCarried("1")
}

// TestAnAlternatingUplinkCostsFewDecisionsElsewhere has a publisher alternate its reports as
// TestAnAlternatingUplinkCostsFewDecisions, with the receiver on another node.
func TestAnAlternatingUplinkCostsFewDecisionsElsewhere(t *testing.T) {
	c := newConference(t, nil, "a", "b")
	alice := c.enter(c[0], "alice", false, true, ladder(1, 2))
	bob := c.enter(c[1], "bob", true, false)
	bob.way.path = known(100e6)
	bob.attach()
	c.pass(time.Second)
	without := &signal.Uplink{GaveUp: []signal.OwnTrack{{Publication: "body", Quality: 1}}}
	before := c[1].stage.counts.allocations
	for range 150 {
		for _, report := range []*signal.Uplink{without, {}} {
			alice.say(report)
			c.pass(10 * time.Millisecond)
		}
	}
	if n := c[1].stage.counts.allocations - before; n > 30 {
		t.Errorf("a receiver decided %d times in 3 s, expected 30 at most", n)
	}
	alice.say(without)
	c.pass(time.Second)
	bob.expectCarried("0")
}

// TestMirrorsOutliveTheirHome checks that a participant whose home dies keeps its slots and tracks, also on its next
// home, and that others receive neither an offer nor a message.
func TestMirrorsOutliveTheirHome(t *testing.T) {
	c := newConference(t, nil, "a", "b", "c")
	c.enter(c[0], "alice", false, true, ladder(2, 3))
	bob := c.enter(c[1], "bob", true, false)
	bob.attach()
	bob.choose(-1, signal.Only(1))
	c.exchange()
	bob.begin()
	c.exchange()
	tracks, before := c[1].mirrorTracks(), c[1].mirrored[bodyRef]
	generations := fmt.Sprint(bob.subscriber.Slots.Assignments())
	bob.mu.Lock()
	messages := len(bob.all)
	bob.mu.Unlock()

	// The former home is silent from here on.
	survivors := c[1:]
	for _, w := range survivors {
		w.receive("a", roomevent.Detached{Identity: "alice"})
	}
	bob.choose(-1, signal.Only(2))
	survivors.exchange()
	if got := c[1].taken(); got != "1 1" {
		t.Errorf("node b tells a dead node its demand: %q", got)
	}
	present := roomevent.Participant{Identity: "alice", Session: "session of alice", Epoch: 1, Live: true}
	c[1].receive("c", roomevent.Present{Participant: present})
	c[1].receive("c", roomevent.Published{Ref: bodyRef, ID: 77, Description: ladder(2, 3)})
	survivors.exchange()
	if got := c[1].mirrored[bodyRef]; got.Node != "c" || got.ID != 77 || !slices.Equal(got.Tracks, before.Tracks) {
		t.Errorf("the tracks are bound to %q with id %d", got.Node, got.ID)
	}
	if take := c[1].takes[bodyRef]; take.Node != "c" || take.ID != 77 || c[1].taken() != "12 12" {
		t.Errorf("node b takes %q of node %q", c[1].taken(), take.Node)
	}
	// The former home is late.
	stale := present
	stale.Epoch = 0
	c[1].receive("a", roomevent.Present{Participant: stale})
	c[1].receive("a", roomevent.Left{Identity: "alice", Session: "session of alice"})
	c[1].receive("a", roomevent.Unpublished{Ref: bodyRef, ID: before.ID})
	if !slices.Equal(c[1].mirrorTracks(), tracks) {
		t.Error("the tracks have changed")
	}
	if got := fmt.Sprint(bob.subscriber.Slots.Assignments()); got != generations {
		t.Errorf("the assignments are %s, expected %s", got, generations)
	}
	bob.mu.Lock()
	for _, m := range bob.all[messages:] {
		if _, ok := m.(*signal.Sending); !ok {
			if _, ok := m.(*signal.OK); !ok {
				t.Errorf("bob receives %T", m)
			}
		}
	}
	bob.mu.Unlock()
	c[1].receive("c", roomevent.Left{Identity: "alice", Session: "session of alice", Reason: "connection lost"})
	if m := expect[*signal.ParticipantLeft](t, bob.shelf, 1); m.Reason != "connection lost" {
		t.Errorf("alice has left: %q", m.Reason)
	}
}

// TestAHomeThatComesBack checks that a mirror is bound again after a silence of its home.
func TestAHomeThatComesBack(t *testing.T) {
	c := newConference(t, nil, "a", "b")
	alice := c.enter(c[0], "alice", false, true, ladder(1, 3))
	bob := c.enter(c[1], "bob", true, false)
	bob.attach()
	bob.choose(-1, signal.Only(1))
	c.exchange()
	bob.begin()
	c.exchange()
	delete(c[1].mirrored, bodyRef)
	c[1].receive("a", roomevent.Detached{Identity: "alice"})
	bob.choose(-1, signal.Only(0))
	bob.begin()
	c.exchange()
	c[0].stage.ask(func(r *Room) { r.span.changed(alice.participant) })
	c.exchange()
	if got := c[1].mirrored[bodyRef]; got.Node != "a" || c[1].taken() != "0" {
		t.Errorf("the tracks are bound to %q, and node b takes %q", got.Node, c[1].taken())
	}
	if _, n := latest[*signal.ParticipantLeft](bob.shelf); n != 0 {
		t.Error("bob is told that alice has left")
	}
}

// TestIdentitiesOfTwoNodes checks that the winner remains on the node of the loser, in each order of the events.
func TestIdentitiesOfTwoNodes(t *testing.T) {
	for _, late := range []bool{false, true} {
		c := newConference(t, nil, "a", "b")
		bob := c.enter(c[1], "bob", true, false)
		// Both nodes have admitted alice.
		loser := c[1].stage.enter("alice", false, true)
		loser.Session = "another session"
		alice := c[0].stage.enter("alice", false, true, ladder(1, 2))
		alice.Session = "session of alice"
		c[0].stage.ask(func(r *Room) { r.span.joined(alice.participant) })
		decision := roomevent.Superseded{
			Identity: "alice", Session: "another session", Code: signal.CodeIdentityTaken,
			Reason: "joined earlier elsewhere",
		}
		if late {
			c.exchange()
			if c[1].mirrorTracks() != nil {
				t.Error("a hidden mirror has tracks")
			}
		}
		c[1].receive("a", decision)
		c[1].out = nil
		c.exchange()
		if code, closed := loser.ended(); !closed || code != signal.CodeIdentityTaken {
			t.Errorf("the loser is closed with %q", code)
		}
		if len(c[1].mirrorTracks()) != 2 {
			t.Error("the winner is not in the room of the loser")
		}
		_, joined := latest[*signal.ParticipantJoined](bob.shelf)
		_, left := latest[*signal.ParticipantLeft](bob.shelf)
		if joined < 1 || left != 1 {
			t.Errorf("bob is told of %d joins and %d ends", joined, left)
		}
	}
}

// TestJoinsBesideMirrors checks which joins of a mirror's identity are refused.
func TestJoinsBesideMirrors(t *testing.T) {
	c := newConference(t, func(config *Config) { config.ParticipantsPerRoom = 2 }, "a", "b")
	c.enter(c[0], "alice", false, true, ladder(1, 2))
	bob := c.enter(c[1], "bob", true, false)
	check := func(identity string, owns bool) signal.Code {
		var code signal.Code
		c[1].stage.ask(func(r *Room) {
			q := &JoinRequest{Join: &signal.Join{}, Room: "room", Identity: identity, OwnsIdentity: owns}
			if refused := q.checkEntry(r, nil); refused != nil {
				code = refused.Code
			}
		})
		return code
	}
	if got := check("alice", true); got != signal.CodeIdentityTaken {
		t.Errorf("a live participant of another node: %q", got)
	}
	if got := check("carol", true); got != signal.CodeLimit {
		t.Errorf("a third participant of two: %q", got)
	}
	c[1].receive("a", roomevent.Detached{Identity: "alice"})
	if got := check("alice", false); got != signal.CodeIdentityTaken {
		t.Errorf("a place that is kept for another client: %q", got)
	}
	if got := check("alice", true); got != "" {
		t.Errorf("the owner of a place that is kept: %q", got)
	}
	c[1].stage.ask(func(r *Room) { r.span.hideMirror("alice") })
	if m := expect[*signal.ParticipantLeft](t, bob.shelf, 1); m.Identity != "alice" || m.Reason != "rejoined" {
		t.Errorf("bob is told %+v", m)
	}
	if c[1].mirrorTracks() != nil {
		t.Error("a hidden mirror has tracks")
	}
	// The descriptions of mirrors count.
	c[1].receive("a", roomevent.Present{Participant: roomevent.Participant{Identity: "dave", Session: "s", Live: true}})
	c[1].stage.ask(func(r *Room) {
		big := r.node.config.DescriptionBytes
		r.span.mirrors["dave"].AttributesBytes = big
		if refused := r.checkDescriptions("bob", 1); refused == nil || refused.Code != signal.CodeLimit {
			t.Errorf("descriptions beyond the limit: %v", refused)
		}
	})
}

// TestMirrorsAreBounded checks that another node cannot fill the room.
func TestMirrorsAreBounded(t *testing.T) {
	c := newConference(t, func(config *Config) { config.ParticipantsPerRoom = 3 }, "a")
	bob := c.enter(c[0], "bob", true, false)
	for i := range 100 {
		c[0].receive("z", roomevent.Present{Participant: roomevent.Participant{
			Identity: fmt.Sprint("p", i), Session: "s", Live: true,
		}})
	}
	if n := len(c[0].stage.room.span.mirrors); n != 3*mirrorsPerPlace {
		t.Errorf("%d mirrors", n)
	}
	broken := ladder(1, 2)
	broken.Name = "broken"
	broken.Qualities = nil
	ref := volumetric.PublicationRef{Participant: "p0", Publication: "broken"}
	c[0].receive("z", roomevent.Published{Ref: ref, ID: 1, Description: broken})
	for i := range 100 {
		each := ladder(1, 2)
		each.Name = fmt.Sprint("n", i)
		ref.Publication = each.Name
		c[0].receive("z", roomevent.Published{Ref: ref, ID: uint64(i), Description: each})
	}
	if n := len(c[0].stage.room.present.Get("p0").Publications); n != DefaultConfig().PublicationsPerParticipant {
		t.Errorf("%d publications", n)
	}
	// Events that do not fit their publication change nothing.
	ref.Publication = "n0"
	for _, e := range []roomevent.Event{
		roomevent.Rates{Ref: ref, Rates: make([]volumetric.Bitrate, 1)}, roomevent.GaveUp{Ref: ref},
		roomevent.Masked{Ref: ref},
		roomevent.Posed{Ref: ref}, roomevent.Posed{Ref: ref, Pose: &signal.Pose{}}, roomevent.Sent{From: "p0"},
		roomevent.Sent{From: "bob", Data: &signal.Data{Text: "x"}},
		roomevent.Take{Ref: volumetric.PublicationRef{Participant: "bob", Publication: "n"}},
		roomevent.Superseded{Identity: "bob"},
		roomevent.Unpublished{Ref: ref, ID: 5}, roomevent.Left{Identity: "p0"},
		roomevent.Mirrored{}, roomevent.Unmirrored{}, roomevent.Entered{},
	} {
		c[0].receive("z", e)
	}
	if _, n := latest[*signal.Data](bob.shelf); n != 0 {
		t.Error("a message in bob's name was delivered")
	}
	b := &inbox{filled: make(chan struct{}, 1)}
	for range inboxLimit {
		b.put(remoteEvent{})
	}
	if b.put(remoteEvent{}) {
		t.Error("the inbox has no limit")
	}
}

// TestKickAndCloseOfOtherNodes checks the events of operators on other nodes.
func TestKickAndCloseOfOtherNodes(t *testing.T) {
	c := newConference(t, nil, "a", "b")
	alice, bob := c.enter(c[0], "alice", true, true), c.enter(c[0], "bob", true, true)
	c[0].receive("b", roomevent.Kick{})
	if _, closed := alice.ended(); closed {
		t.Fatal("a kick without a name removes alice")
	}
	c[0].receive("b", roomevent.Kick{Identity: "alice"})
	if code, closed := alice.ended(); !closed || code != signal.CodeKicked {
		t.Errorf("alice is closed with %q", code)
	}
	c[0].receive("b", roomevent.Close{})
	if code, closed := bob.ended(); !closed || code != signal.CodeClosed {
		t.Errorf("bob is closed with %q", code)
	}
}

// TestMirrorsEndWithTheRoom: a room that has ended has no participants of other nodes.
func TestMirrorsEndWithTheRoom(t *testing.T) {
	c := newConference(t, nil, "a")
	c.enter(c[0], "bob", true, false)
	alice := roomevent.Participant{Identity: "alice", Session: "s", Live: true}
	c[0].receive("z", roomevent.Present{Participant: alice})
	c[0].stage.ask(func(r *Room) {
		if n := r.present.Len(); n != 2 {
			t.Errorf("%d participants, expected alice and bob", n)
		}
		r.span.end()
		if r.present.Len() != 1 || r.present.Get("alice") != nil {
			t.Errorf("%d participants after the end, expected bob alone", r.present.Len())
		}
	})
}
