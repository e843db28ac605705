package trunk

import (
	"testing"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/wait"
)

// mirroring is a publication of two tracks at node one, which node two mirrors and takes.
type mirroring struct {
	t        *testing.T
	one, two *node
	p        *publishing
	tracks   []*track.Track
	viewer   *viewer
}

var bothQualities = []allocate.QualitySet{allocate.Qualities(0, 1)}

// unfit are rates of two qualities of which no estimate carries the second: a mask of its track stays.
var unfit = []volumetric.Bitrate{1000, 2 * DefaultLimits.Max}

func startMirroring(t *testing.T) *mirroring {
	a := newAuthority()
	m := &mirroring{t: t, one: a.start(t, "one", options{}), two: a.start(t, "two", options{})}
	m.p = publish(t, m.one, 1, 2)
	m.tracks = mirrorAt(m.two, "one", 1, 2)
	connect(t, m.one, m.two, "one", "two")
	m.viewer = view(m.two, m.tracks)
	takeAt(m.two, "one", bothQualities...)
	m.expectFrames()
	return m
}

// expectFrames publishes frames until one of each track arrives, and then ten frames that all must arrive.
func (m *mirroring) expectFrames() {
	m.t.Helper()
	wait.Until(m.t, "the slots", func() bool {
		return m.p.tracks[0].Followers() == 1 && m.p.tracks[1].Followers() == 1
	})
	before := [2]int{m.viewer.complete(0), m.viewer.complete(1)}
	wait.Until(m.t, "a frame of each track", func() bool {
		m.p.frame(3000)
		return m.viewer.complete(0) > before[0] && m.viewer.complete(1) > before[1]
	})
	for range 10 {
		m.p.frame(3000)
		frame := m.p.publishers[0].Number
		wait.Until(m.t, "the next frame of each track", func() bool {
			return m.viewer.has(0, frame) && m.viewer.has(1, frame)
		})
	}
}

// TestMirrorAgain mirrors a publication again on the same trunk, as when a participant's websocket returns. Its streams
// stay bound, to the same tracks or to others, and the origin is asked for nothing.
func TestMirrorAgain(t *testing.T) {
	m := startMirroring(t)
	var offers uint64
	m.one.do(func(h *Host) { offers = h.links["two"].origin.takes[publicationOf(room, ref, id)].offer })
	m.two.do(func(h *Host) {
		h.Mirror("one", room, ref, id, 2, m.tracks)
		h.Take("one", room, ref, id, Demand{Tiles: bothQualities})
	})
	m.expectFrames()
	others := newTracks(m.two.engine, 1, 2, 9, volumetric.MIMEVolumetric)
	m.two.do(func(h *Host) {
		h.Mirror("one", room, ref, id, 2, others)
		h.Take("one", room, ref, id, Demand{Tiles: bothQualities})
	})
	m.viewer = view(m.two, others)
	m.expectFrames()
	m.one.do(func(h *Host) {
		if n := h.links["two"].origin.takes[publicationOf(room, ref, id)].offer; n != offers {
			t.Errorf("%d offers, expected %d", n, offers)
		}
	})
	m.expectCounts()
}

// TestUnmirrorAndMirror ends the mirror of a publication and mirrors the publication again before the origin learns of
// the end. The origin repeats its offer.
func TestUnmirrorAndMirror(t *testing.T) {
	m := startMirroring(t)
	for range 3 {
		m.two.do(func(h *Host) {
			h.Unmirror("one", room, ref, id)
			h.Mirror("one", room, ref, id, 2, m.tracks)
			h.Take("one", room, ref, id, Demand{Tiles: bothQualities})
		})
		m.expectFrames()
	}
	m.expectCounts()
}

// TestMirrorOfAnotherID mirrors a publication that its home has published again, with another number of qualities.
func TestMirrorOfAnotherID(t *testing.T) {
	m := startMirroring(t)
	m.one.do(func(h *Host) {
		h.Withdraw(room, ref, id)
		h.Offer(room, ref, id+1, 1, m.p.tracks[:1])
	})
	m.two.do(func(h *Host) {
		h.Mirror("one", room, ref, id+1, 1, m.tracks[:1])
		h.Take("one", room, ref, id+1, Demand{Tiles: []allocate.QualitySet{allocate.Qualities(0)}})
	})
	before := m.viewer.complete(0)
	wait.Until(t, "a frame", func() bool {
		m.p.frame(3000)
		return m.viewer.complete(0) > before
	})
	wait.Until(t, "the end of the former demand", func() bool {
		s := m.one.stats()
		return s.Takes == 1 && s.Publications == 1
	})
	m.expectCounts()
}

// expectCounts checks that nothing was refused or lost.
func (m *mirroring) expectCounts() {
	m.t.Helper()
	for _, n := range []*node{m.one, m.two} {
		if s := n.stats(); s.Untaken != 0 || s.Malformed != 0 || s.Failed != 0 || s.Closed != 0 {
			m.t.Errorf("the counts are %+v", s)
		}
	}
}

// TestMasksAreRepeated takes a publication again. The origin sends the masks, also if there are none: the room of the
// taking node may have forgotten them, or may remember those of a former trunk.
func TestMasksAreRepeated(t *testing.T) {
	m := startMirroring(t)
	await(t, m.two, "no masks", func(e Masked) bool { return len(e.Tiles) == 1 && e.Tiles[0] == 0 })
	m.one.do(func(h *Host) {
		h.SetRates(room, ref, id, unfit)
		l := h.links["two"]
		l.origin.mask(publicationOf(room, ref, id), 1, true)
		l.updates.add(publicationOf(room, ref, id), stateMasks)
	})
	masked := func(e Masked) bool { return e.Tiles[0] == allocate.Qualities(1) }
	await(t, m.two, "a mask", masked)
	m.two.forget()
	m.two.do(func(h *Host) {
		h.Mirror("one", room, ref, id, 2, m.tracks)
		h.Take("one", room, ref, id, Demand{Tiles: bothQualities})
	})
	await(t, m.two, "masks after another take", func(Masked) bool { return true })
}
