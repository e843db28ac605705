package trunk

import (
	"testing"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/forward/forwardtest"
	"github.com/volsfu/volsfu/internal/forward/ingress"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/test/wait"
)

// move is a publication of one track that moves from node a to node b, with viewers on both and on node c.
type move struct {
	t       *testing.T
	a, b, c *node
	tracks  map[*node][]*track.Track
	viewers map[*node]*viewer
	p       *publishing
}

const nextID = id + 7

var wholeTile = []allocate.QualitySet{allocate.Qualities(0)}

func startMove(t *testing.T) *move {
	authority := newAuthority()
	m := &move{t: t, a: authority.start(t, "a", options{}), b: authority.start(t, "b", options{}),
		c: authority.start(t, "c", options{})}
	m.p = publish(t, m.a, 1, 1)
	m.tracks = map[*node][]*track.Track{
		m.a: m.p.tracks, m.b: mirrorAt(m.b, "a", 1, 1), m.c: mirrorAt(m.c, "a", 1, 1),
	}
	connect(t, m.a, m.b, "a", "b")
	connect(t, m.a, m.c, "a", "c")
	connect(t, m.b, m.c, "b", "c")
	m.viewers = map[*node]*viewer{}
	for n, tracks := range m.tracks {
		m.viewers[n] = view(n, tracks)
	}
	takeAt(m.b, "a", wholeTile...)
	takeAt(m.c, "a", wholeTile...)
	wait.Until(t, "the first frame at all nodes", func() bool {
		m.p.frame(3000)
		return m.viewers[m.b].complete(0) > 0 && m.viewers[m.c].complete(0) > 0
	})
	return m
}

// number returns the number of the last frame.
func (m *move) number() uint32 { return m.p.publishers[0].Number }

// everywhere waits until the last frame is at all nodes.
func (m *move) everywhere() {
	m.t.Helper()
	for n, v := range m.viewers {
		wait.Until(m.t, "the frame at node "+n.host.cfg.Node, func() bool { return v.has(0, m.number()) })
	}
}

// connection returns the publisher's second connection, to node b, over which nothing has arrived.
func (m *move) connection() *ingress.Ingress {
	second := m.b.engine.NewIngress(&publisherPeer{})
	m.t.Cleanup(second.Close)
	second.Bind(70, 71, m.tracks[m.b][0])
	return second
}

// adopt makes node b the home, from which the others take the publication.
func (m *move) adopt() {
	m.b.do(func(h *Host) { h.Offer(room, ref, nextID, 1, m.tracks[m.b]) })
	for _, n := range []*node{m.a, m.c} {
		n.do(func(h *Host) {
			h.Mirror("b", room, ref, nextID, 1, m.tracks[n])
			h.Take("b", room, ref, nextID, Demand{Tiles: wholeTile})
		})
	}
}

// selected waits until node b has selected the track for the others.
func (m *move) selected() {
	wait.Until(m.t, "the streams to both nodes", func() bool {
		selected := 0
		m.b.do(func(h *Host) {
			for _, l := range h.links {
				if t := l.origin.takes[publicationOf(room, ref, nextID)]; t != nil && t.streams[0] != nil &&
					t.streams[0].selected {
					selected++
				}
			}
		})
		return selected == 2
	})
}

// switchOver sends the next frames over the second connection.
func (m *move) switchOver(second *ingress.Ingress) {
	former := m.p.publishers[0]
	next := forwardtest.NewPublisher(m.t, second, 70)
	next.Number, next.Timestamp = former.Number, former.Timestamp
	m.p.publishers[0] = next
}

// check checks that all nodes have all frames since the first one, each packet once, and that no packet was sent that
// no node took.
func (m *move) check(first uint32, packets map[*node]uint64) {
	m.t.Helper()
	for n, v := range m.viewers {
		for frame := first; frame <= m.number(); frame++ {
			if !v.has(0, frame) {
				m.t.Errorf("node %s misses frame %d of %d to %d", n.host.cfg.Node, frame, first, m.number())
			}
		}
		// Frames of 3,000 bytes have three packets.
		want := packets[n] + 3*uint64(m.number()+1-first)
		if got := m.tracks[n][0].Stats().Packets; got != want {
			m.t.Errorf("node %s has %d packets of the track, expected %d", n.host.cfg.Node, got, want)
		}
		if s := n.stats(); s.Untaken != 0 || s.Malformed != 0 || s.Failed != 0 || s.Closed != 0 {
			m.t.Errorf("node %s: the counts are %+v", n.host.cfg.Node, s)
		}
	}
}

// packets returns the number of packets of the track at each node.
func (m *move) packets() map[*node]uint64 {
	counts := map[*node]uint64{}
	for n, tracks := range m.tracks {
		counts[n] = tracks[0].Stats().Packets
	}
	return counts
}

// TestAPublisherMoves checks that the next home, the former home and a third node get every packet of a publisher once,
// while its second connection is blocked, and afterwards, and that the feeds of the former home may end then.
func TestAPublisherMoves(t *testing.T) {
	m := startMove(t)
	m.p.frame(3000)
	m.everywhere()
	first, before := m.number()+1, m.packets()
	second := m.connection()
	m.adopt()
	m.selected()
	for range 20 {
		m.p.frame(3000)
		m.everywhere()
	}
	m.check(first, before)
	m.switchOver(second)
	for range 20 {
		m.p.frame(3000)
	}
	m.everywhere()
	for _, n := range []*node{m.b, m.c} {
		n.do(func(h *Host) { h.Unmirror("a", room, ref, id) })
	}
	m.a.do(func(h *Host) { h.Withdraw(room, ref, id) })
	for range 20 {
		m.p.frame(3000)
		m.everywhere()
	}
	m.check(first, before)
}

// TestAPublisherIsFaster checks that nodes that take the publication from the next home only after the publisher has
// switched still get every frame: the next home keeps the packets.
func TestAPublisherIsFaster(t *testing.T) {
	m := startMove(t)
	m.p.frame(3000)
	m.everywhere()
	first, before := m.number()+1, m.packets()
	m.switchOver(m.connection())
	for range 5 {
		m.p.frame(3000)
	}
	m.adopt()
	m.everywhere()
	m.p.frame(3000)
	m.everywhere()
	m.check(first, before)
}
