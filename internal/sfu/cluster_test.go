package sfu

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/internal/sfu/roomevent"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// bus joins nodes in one process. Its goroutine passes the events of each node to the others, and the state of a room
// to a node that enters the room.
type bus struct {
	mu     sync.Mutex
	nodes  map[string]*Node
	queue  []posted
	filled chan struct{}
	// present and published are the states of the participants of each node. The goroutine owns them.
	present   map[string]posted
	published map[volumetric.PublicationRef]posted
	shared    map[string]posted
}

type posted struct {
	from, room string
	event      roomevent.Event
}

// member is one node's side of a bus.
type member struct {
	*bus
	name string
}

// Tell implements Cluster.
func (m member) Tell(room string, e roomevent.Event) {
	m.mu.Lock()
	m.queue = append(m.queue, posted{m.name, room, e})
	m.mu.Unlock()
	select {
	case m.filled <- struct{}{}:
	default:
	}
}

func (b *bus) run(done <-chan struct{}) {
	for {
		select {
		case <-b.filled:
		case <-done:
			return
		}
		b.mu.Lock()
		events := b.queue
		b.queue = nil
		b.mu.Unlock()
		for _, e := range events {
			b.pass(e)
		}
	}
}

func (b *bus) pass(p posted) {
	switch e := p.event.(type) {
	case roomevent.Present:
		b.present[e.Identity] = p
	case roomevent.Left:
		delete(b.present, e.Identity)
		for ref := range b.published {
			if ref.Participant == e.Identity {
				delete(b.published, ref)
			}
		}
	case roomevent.Published:
		b.published[e.Ref] = p
	case roomevent.Unpublished:
		delete(b.published, e.Ref)
	case roomevent.Shared:
		b.shared[p.from] = p
	case roomevent.Exited:
		delete(b.shared, p.from)
		b.send(posted{p.from, p.room, roomevent.Shared{}})
	case roomevent.Entered:
		for _, known := range b.shared {
			b.nodes[p.from].Remote(known.room, known.from, known.event)
		}
		for _, known := range b.present {
			if known.from != p.from {
				b.nodes[p.from].Remote(known.room, known.from, known.event)
			}
		}
		for _, known := range b.published {
			if known.from != p.from {
				b.nodes[p.from].Remote(known.room, known.from, known.event)
			}
		}
	}
	b.send(p)
}

// send passes an event to the nodes for which it is.
func (b *bus) send(p posted) {
	nodes, others := destination(p.event)
	for name, node := range b.nodes {
		if name != p.from && others && (nodes == nil || slices.Contains(nodes, name)) {
			node.Remote(p.room, p.from, p.event)
		}
	}
}

// joinedNodes makes nodes that are joined by a bus.
func joinedNodes(t *testing.T, names ...string) []*Node {
	t.Helper()
	return joinedNodesWith(t, nil, names...)
}

// joinedNodesWith makes nodes with a changed configuration. adjust may be nil.
func joinedNodesWith(t *testing.T, adjust func(name string, c *Config), names ...string) []*Node {
	t.Helper()
	b := &bus{
		nodes: make(map[string]*Node), filled: make(chan struct{}, 1), present: make(map[string]posted),
		published: make(map[volumetric.PublicationRef]posted), shared: make(map[string]posted),
	}
	var nodes []*Node
	for _, name := range names {
		n := newTestNode(t, mediaOnLoopback(), func(c *Config) {
			strictly(c)
			c.Cluster = member{b, name}
			if adjust != nil {
				adjust(name, c)
			}
		})
		nodes = append(nodes, n)
		b.nodes[name] = n
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		b.run(done)
	}()
	t.Cleanup(func() {
		close(done)
		<-ended
	})
	return nodes
}

// knows waits until a client has been told of a participant with a number of publications: in the reply to its join, or
// by messages, as the state of the other node arrives before or after the join.
func knows(t *testing.T, o *shelf, identity string, publications int) {
	t.Helper()
	eventually(t, func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		present, published := false, 0
		for _, m := range o.all {
			var told []signal.Participant
			switch m := m.(type) {
			case *signal.Joined:
				told = m.Participants
			case *signal.ParticipantJoined:
				told = []signal.Participant{m.Participant}
			case *signal.Published:
				if m.Participant == identity {
					published++
				}
			}
			for _, p := range told {
				if p.Identity == identity {
					present, published = true, published+len(p.Publications)
				}
			}
		}
		return present && published == publications
	}, "%s with %d publications", identity, publications)
}

// TestTwoNodes checks a conference over two nodes with their goroutines: presence, slots and demand in both directions,
// an operator's removal, and the end of the room on one node.
func TestTwoNodes(t *testing.T) {
	nodes := joinedNodes(t, "a", "b")
	_, aliceBox := admitted(t, nodes[0], "alice", &signal.Join{
		Version: signal.Version, Receive: true, Pauses: true, Publications: []volumetric.Publication{bodyOf(2, 2)},
	})
	bob, bobBox := enter(t, nodes[1], "bob", true, bodyOf(1, 2))
	expect[*signal.ParticipantJoined](t, aliceBox, 1)
	knows(t, bobBox, "alice", 1)

	// Bob's client answers the offer with the line of its own body and of alice's.
	offer := expect[*signal.Offer](t, bobBox, 1)
	peer := newClientPeer(t)
	for {
		handle(bob, answerTo(t, peer, offer))
		answered := offer.Offer
		eventually(t, func() bool {
			var waiting bool
			inRoom(t, bob, func(*Room) {
				o := bob.participant.pendingOffer
				waiting = o != nil && o.number == answered
			})
			return !waiting
		}, "the answer to be taken")
		var pending *pendingOffer
		inRoom(t, bob, func(*Room) { pending = bob.participant.pendingOffer })
		if pending == nil {
			break
		}
		offer, _ = latest[*signal.Offer](bobBox)
	}
	assigned := expect[*signal.Assignments](t, bobBox, 1)
	if a := assigned.Assignments[0]; a.Track == nil || a.Track.Participant != "alice" {
		t.Fatalf("bob's slot has %+v", a)
	}
	// The expected lowest quality of each slot is a demand for alice's node.
	eventually(t, func() bool {
		m, n := latest[*signal.Wanted](aliceBox)
		return n > 0 && len(m.Publications[0].Tiles[0]) == 1 && len(m.Publications[0].Tiles[1]) == 1
	}, "the demand of node b")

	if _, refused := nodes[1].Join(JoinRequest{
		Join: &signal.Join{Version: signal.Version}, Room: "room", Identity: "alice", OwnsIdentity: true,
		Outbox: &shelf{}, At: time.Now(),
	}); refused == nil || refused.Code != signal.CodeIdentityTaken {
		t.Errorf("a second alice on node b: %v", refused)
	}
	ctx := context.Background()
	if err := nodes[1].Kick(ctx, "room", "carol", 0); !errors.Is(err, ErrNotFound) {
		t.Errorf("a participant on no node: %v", err)
	}
	if err := nodes[1].Kick(ctx, "room", "alice", 0); err != nil {
		t.Error(err)
	}
	eventually(t, func() bool { _, closed := aliceBox.ended(); return closed }, "alice's removal")
	expect[*signal.ParticipantLeft](t, bobBox, 1)

	_, carolBox := enter(t, nodes[0], "carol", true)
	knows(t, carolBox, "bob", 1)
	handle(bob, &signal.Leave{})
	expect[*signal.ParticipantLeft](t, carolBox, 1)
	eventually(t, func() bool { return !exists(nodes[1]) }, "the end of the room on node b")
}

// TestBanReachesTheTokenOnAllNodes checks that a ban by the operator of another node excludes the participant's token
// under any identity on all nodes, in whatever order the bans of both nodes arrive.
func TestBanReachesTheTokenOnAllNodes(t *testing.T) {
	nodes := joinedNodes(t, "a", "b", "c")
	token := admission.Token{ID: "e"}
	if _, refused := brings(nodes[0], "room", "eve", token); refused != nil {
		t.Fatal(refused)
	}
	_, bobBox := enter(t, nodes[1], "bob", true)
	knows(t, bobBox, "eve", 0)
	if err := nodes[1].Kick(t.Context(), "room", "eve", time.Hour); err != nil {
		t.Fatal(err)
	}
	nodes[2].Remote("room", "b", roomevent.Kick{Identity: "eve", Until: time.Now().Add(time.Hour)})
	for i, n := range nodes {
		eventually(t, func() bool {
			bans := n.Bans()
			return len(bans) == 1 && bans[0].TokenID == "e"
		}, "the ban of the token on node %d", i)
		if _, refused := brings(n, "room", "another", token); codeOf(refused) != signal.CodeKicked {
			t.Errorf("the banned token joins node %d as another: %v", i, refused)
		}
	}
	nodes[2].Remote("room", "b", roomevent.Kick{Identity: "eve", Until: time.Now().Add(time.Hour)})
	if bans := nodes[2].Bans(); bans[0].TokenID != "e" {
		t.Errorf("a ban without the token replaces that with the token: %+v", bans)
	}
}

// TestNodesWithoutACluster checks that a room without a cluster has no span.
func TestNodesWithoutACluster(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), nil)
	s, _ := enter(t, n, "alice", true)
	inRoom(t, s, func(r *Room) {
		if r.span != nil || r.span.ready() != nil {
			t.Error("the room waits for other nodes")
		}
	})
}
