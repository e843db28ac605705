package sfu

import (
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/sfu/roomevent"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// feeds returns the Mirrored, Unmirrored and Take events since the last call, as "+ home", "- home" and "take home".
func (w *wire) feeds() (list []string) {
	for _, e := range w.out {
		switch e := e.(type) {
		case roomevent.Mirrored:
			list = append(list, "+ "+e.Node)
		case roomevent.Unmirrored:
			list = append(list, "- "+e.Node)
		case roomevent.Take:
			list = append(list, "take "+e.Node)
		}
	}
	w.out = nil
	slices.Sort(list)
	return list
}

// expectFeeds checks the events since the last call, in alphabetical order.
func (w *wire) expectFeeds(what string, want ...string) {
	w.stage.t.Helper()
	if got := w.feeds(); !slices.Equal(got, want) {
		w.stage.t.Errorf("%s: node %s tells %q, expected %q", what, w.name, got, want)
	}
}

// endFeeds ends the feeds of former homes, as when their time has passed.
func (w *wire) endFeeds() {
	w.stage.ask(func(r *Room) {
		for _, end := range r.span.ending {
			end.apply(r)
		}
	})
}

// movedTo is the presence of alice on another node.
func movedTo(epoch uint64) roomevent.Present {
	return roomevent.Present{Participant: roomevent.Participant{
		Identity: "alice", Session: "session of alice", Epoch: epoch, Live: true, Complete: true,
	}}
}

// TestAFormerHomeFeedsAThirdNode checks that a third node keeps the feed of the former home with its demand beside that
// of the next home, until its time has passed.
func TestAFormerHomeFeedsAThirdNode(t *testing.T) {
	c := newConference(t, nil, "a", "third")
	alice := c.enter(c[0], "alice", false, true, ladder(1, 2))
	bob := c.enter(c[1], "bob", true, false)
	bob.attach()
	c.exchange()
	third := c[1]
	id := alice.Publications[0].ID
	third.feeds()
	third.receive("b", movedTo(1))
	third.expectFeeds("a present of the next home")
	third.receive("b", roomevent.Published{Ref: bodyRef, ID: id, Description: ladder(1, 2)})
	third.expectFeeds("a publication of the next home", "+ b", "take a", "take b")
	third.receive("b", movedTo(1))
	third.stage.ask(func(r *Room) { r.span.take(r.present.Publication(bodyRef)) })
	third.expectFeeds("another demand", "take a", "take b")
	if m := third.stage.room.span.mirrors["alice"]; len(m.remotes) != 1 || m.remotes[0].former {
		t.Errorf("the publications are %+v", m.remotes)
	}
	third.endFeeds()
	third.expectFeeds("the end of the former feed", "- a")

	// The publisher returns before the feed of node b has ended, and the publication has the former id.
	third.receive("a", movedTo(2))
	third.receive("a", roomevent.Published{Ref: bodyRef, ID: id, Description: ladder(1, 2)})
	third.expectFeeds("a return", "+ a", "take a", "take b")
	third.receive("b", movedTo(3))
	third.receive("b", roomevent.Published{Ref: bodyRef, ID: id, Description: ladder(1, 2)})
	third.expectFeeds("another return", "+ b", "take a", "take b")
	third.endFeeds()
	third.expectFeeds("the end of the feed of node a only", "- a")
	third.receive("b", roomevent.Left{Identity: "alice", Session: "session of alice", Reason: "left"})
	third.expectFeeds("the end of the publisher", "- b")
}

// TestADeadHomeFeedsNothing checks that the feed of a home that does not answer ends at once.
func TestADeadHomeFeedsNothing(t *testing.T) {
	c := newConference(t, nil, "a", "third")
	alice := c.enter(c[0], "alice", false, true, ladder(1, 2))
	third := c[1]
	c.enter(third, "bob", true, false)
	third.feeds()
	third.receive("a", roomevent.Detached{Identity: "alice"})
	third.receive("b", movedTo(1))
	third.expectFeeds("a present of the next home", "- a")
	third.receive("b", roomevent.Published{Ref: bodyRef, ID: alice.Publications[0].ID, Description: ladder(1, 2)})
	third.expectFeeds("a publication of the next home", "+ b", "take b")
}

// TestTheNextHomeKeepsTheFeed checks that the next home does not end the feed of the former one when the client joins,
// and tells others the rates that it knows.
func TestTheNextHomeKeepsTheFeed(t *testing.T) {
	c := newConference(t, nil, "a", "b")
	former := c.enter(c[0], "alice", false, true, ladder(1, 2))
	next := c[1]
	c.enter(next, "bob", true, false)
	id := former.Publications[0].ID
	rates := []volumetric.Bitrate{1e6, 2e6}
	next.receive("a", roomevent.Rates{Ref: bodyRef, ID: id, Rates: rates})
	next.feeds()
	p := next.stage.enter("alice", false, false)
	next.stage.ask(func(r *Room) {
		m := r.span.mirrors["alice"]
		p.Session, p.epoch = m.Session, 1
		r.span.adopt(m, p.participant, false)
		r.span.joined(p.participant)
	})
	var told []roomevent.Rates
	for _, e := range next.out {
		if e, ok := e.(roomevent.Rates); ok {
			told = append(told, e)
		}
	}
	if len(told) != 1 || !slices.Equal(told[0].Rates, rates) || len(p.Publications) != 1 {
		t.Errorf("the next home tells the rates %+v", told)
	}
	next.expectFeeds("an adoption")
	next.endFeeds()
	next.expectFeeds("the end of the former feed", "- a")
}

// TestTheNextHomeKeepsQualities checks under the policy strict that the next home does not ask a publisher to pause a
// track whose receivers are on other nodes, before these nodes have stated their demand, and that these nodes receive
// the first frames of a track that the next home has not taken itself.
func TestTheNextHomeKeepsQualities(t *testing.T) {
	c := newConference(t, nil, "a", "b")
	c.enter(c[0], "alice", false, true, ladder(2, 3))
	next := c[1]
	c.enter(next, "bob", true, false)
	p := next.stage.enter("alice", false, true)
	next.stage.ask(func(r *Room) {
		m := r.span.mirrors["alice"]
		p.Session, p.epoch = m.Session, 1
		r.span.adopt(m, p.participant, false)
		r.span.joined(p.participant)
	})
	next.stage.pass(time.Second)
	p.expectAsked("")
	body := p.Publications[0]
	for i, track := range body.Tracks {
		if track.Taken() < 0 {
			t.Errorf("track %d: another node would begin with the newest frame, not with the first one here", i)
		}
	}
	tiles := []allocate.QualitySet{allocate.Qualities(2), 0}
	next.receive("c", roomevent.Take{Ref: bodyRef, Node: "b", ID: body.ID, Tiles: tiles})
	next.stage.pass(2 * time.Second)
	p.expectAsked("2,")
	next.receive("c", roomevent.Take{Ref: bodyRef, Node: "b", ID: body.ID})
	next.stage.pass(10 * time.Millisecond)
	p.expectAsked(",")
}

// TestTheLoserOfTwoAdoptionsKeepsPublications checks that a node whose claim is the weaker of two with one epoch does
// not end the publications with the first state of the winner.
func TestTheLoserOfTwoAdoptionsKeepsPublications(t *testing.T) {
	c := newConference(t, nil, "loser")
	loser := c[0]
	c.enter(loser, "alice", false, true, ladder(1, 2))
	bob := c.enter(loser, "bob", true, false)
	loser.receive("winner", roomevent.Superseded{Identity: "alice", Session: "session of alice", Moved: true})
	loser.receive("winner", movedTo(0))
	loser.receive("winner", roomevent.Published{Ref: bodyRef, ID: 9, Description: ladder(1, 2)})
	loser.receive("winner", movedTo(0))
	if _, n := latest[*signal.Unpublished](bob.shelf); n != 0 {
		t.Errorf("bob is told of the end of %d publications", n)
	}
	if m := loser.stage.room.span.mirrors["alice"]; m.node != "winner" || len(m.remotes) != 1 || !m.remotes[0].bound {
		t.Errorf("the mirror is %+v", m)
	}
}

// TestAReturnKeepsPublications checks that the end of a first overlap withdraws no publication that a second one feeds.
func TestAReturnKeepsPublications(t *testing.T) {
	c := newConference(t, nil, "a")
	alice := c.enter(c[0], "alice", false, true, ladder(1, 2))
	id := alice.Publications[0].ID
	c[0].out = nil
	c[0].stage.ask(func(r *Room) {
		s := r.span
		kept := roomevent.Unpublished{Ref: bodyRef, ID: id}
		again := &participant{}
		s.releasing[alice.participant] = roomevent.Released{
			Identity: "alice", Session: "s", Publications: []roomevent.Unpublished{kept, {Ref: bodyRef, ID: id + 1}},
		}
		s.releasing[again] = roomevent.Released{
			Identity: "alice", Session: "s", Publications: []roomevent.Unpublished{kept},
		}
		s.released(alice.participant)
		delete(s.releasing, again)
	})
	var ended []roomevent.Unpublished
	for _, e := range c[0].out {
		if e, ok := e.(roomevent.Released); ok {
			ended = append(ended, e.Publications...)
		}
	}
	if len(ended) != 1 || ended[0].ID != id+1 {
		t.Errorf("the publications %+v are withdrawn", ended)
	}
}
