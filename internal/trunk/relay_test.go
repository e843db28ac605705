package trunk

import (
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/wait"
)

// chain is a publication of one tile in two qualities, whose home sends one copy. The nodes two and three take it.
type chain struct {
	t       *testing.T
	asked   *countingPeer
	home    *node
	p       *publishing
	nodes   map[string]*node
	tracks  map[string][]*track.Track
	viewers map[string]*viewer
}

// startChain starts the nodes home, two and three with trunks between all.
func startChain(t *testing.T) *chain {
	a := newAuthority()
	c := &chain{
		t: t, asked: &countingPeer{}, home: a.start(t, "home", options{fanout: 1}), nodes: map[string]*node{},
		tracks: map[string][]*track.Track{}, viewers: map[string]*viewer{},
	}
	c.p = publishBy(t, c.home, c.asked, 1, 2)
	for _, name := range []string{"two", "three"} {
		c.nodes[name] = a.start(t, name, options{})
		connect(t, c.home, c.nodes[name], "home", name)
	}
	connect(t, c.nodes["three"], c.nodes["two"], "three", "two")
	return c
}

// take mirrors the publication at a node, and takes qualities.
func (c *chain) take(name string, qualities allocate.QualitySet) {
	if c.viewers[name] == nil {
		c.tracks[name] = mirrorAt(c.nodes[name], "home", 1, 2)
		c.viewers[name] = view(c.nodes[name], c.tracks[name])
	}
	takeAt(c.nodes[name], "home", qualities)
}

// frames publishes frames until the viewer of a node has another complete one of each quality.
func (c *chain) frames(name string, qualities ...int) {
	c.t.Helper()
	before := [2]int{c.viewers[name].complete(0), c.viewers[name].complete(1)}
	wait.Until(c.t, "a frame at "+name, func() bool {
		c.p.frame(3000)
		return !slices.ContainsFunc(qualities, func(q int) bool { return c.viewers[name].complete(q) <= before[q] })
	})
}

// feedOf returns the feed of the mirror at a node.
func (c *chain) feedOf(name string) (f feed) {
	c.nodes[name].do(func(h *Host) { f = *h.catalog.mirror("home", publicationOf(room, ref, id)).feed })
	return f
}

// fedBy waits until a node takes from another one only.
func (c *chain) fedBy(name, source string) {
	c.t.Helper()
	wait.Until(c.t, name+" takes from "+source, func() bool {
		f := c.feedOf(name)
		return f.source == source && f.next == "" && f.former == ""
	})
}

func startThrough(t *testing.T) *chain {
	c := startChain(t)
	c.take("two", allocate.Qualities(0))
	c.frames("two", 0)
	c.take("three", allocate.Qualities(1))
	c.fedBy("three", "two")
	c.frames("three", 1)
	return c
}

// TestParentPassesOn takes a publication at a third node, to which the second node passes it on. The parent takes the
// union of the demand. Frames, timestamps, rates and qualities that the publisher has given up are those of the home.
func TestParentPassesOn(t *testing.T) {
	c := startThrough(t)
	wait.Until(t, "one copy", func() bool { return c.p.tracks[0].Followers() == 1 && c.p.tracks[1].Followers() == 1 })
	if f := c.feedOf("three"); !slices.Equal(f.path, []string{"home", "two"}) {
		t.Errorf("the path is %v", f.path)
	}
	both := allocate.Qualities(0, 1)
	await(t, c.home, "the union of the demand", func(e Took) bool { return e.Node == "two" && e.Tiles[0] == both })
	await(t, c.home, "no demand of the third node", func(e Took) bool { return e.Node == "three" && len(e.Tiles) == 0 })

	c.p.frame(3000)
	frame := c.p.publishers[1].Number
	wait.Until(t, "the frame", func() bool { return c.viewers["three"].has(1, frame) })
	c.p.frame(3000)
	wait.Until(t, "the next frame", func() bool { return c.viewers["three"].has(1, frame+1) })
	step := c.viewers["three"].timestamp(1, frame+1) - c.viewers["three"].timestamp(1, frame)
	if want := c.viewers["two"].timestamp(1, frame+1) - c.viewers["two"].timestamp(1, frame); step != want {
		t.Errorf("timestamps differ by %d, expected %d", step, want)
	}

	given := []allocate.QualitySet{allocate.Qualities(1)}
	c.home.do(func(h *Host) {
		h.SetRates(room, ref, id, []volumetric.Bitrate{1000, 2000})
		h.SetGaveUp(room, ref, id, given)
	})
	await(t, c.nodes["three"], "rates of the home", func(e Rates) bool {
		return e.Node == "home" && slices.Equal(e.Rates, []volumetric.Bitrate{1000, 2000})
	})
	await(t, c.nodes["three"], "qualities given up", func(e GaveUp) bool {
		return e.Node == "home" && slices.Equal(e.Tiles, given)
	})
	c.home.do(func(h *Host) {
		l := h.links["two"]
		l.origin.mask(publicationOf(room, ref, id), 1, true)
		l.updates.add(publicationOf(room, ref, id), stateMasks)
	})
	await(t, c.nodes["three"], "masks of the trunk to the parent", func(e Masked) bool {
		return e.Node == "home" && slices.Equal(e.Tiles, given)
	})
	if f := c.feedOf("three"); !f.slow.IsZero() {
		t.Error("the parent counts as slow because of the masks of the home")
	}
	if c.asked.requests != 0 {
		t.Errorf("%d requests to the publisher", c.asked.requests)
	}
}

// TestDemandOfChildren changes the demand of a third node. The home learns of the union only.
func TestDemandOfChildren(t *testing.T) {
	c := startThrough(t)
	c.take("three", 0)
	none := func(e Took) bool { return e.Node == "two" && len(e.Tiles) == 1 && e.Tiles[0] == allocate.Qualities(0) }
	wait.Until(t, "the end of the third node's track", func() bool {
		e, _ := last[Took](c.home)
		return none(e) && c.p.tracks[1].Followers() == 0
	})
	c.take("three", allocate.Qualities(0))
	c.frames("three", 0)
	c.take("two", 0)
	c.frames("three", 0)
	c.nodes["three"].do(func(h *Host) { h.Unmirror("home", room, ref, id) })
	wait.Until(t, "the end of all tracks", func() bool { return c.p.tracks[0].Followers() == 0 })
	for name, n := range c.nodes {
		if s := n.stats(); s.Untaken != 0 || s.Malformed != 0 || s.Failed != 0 || s.Closed != 0 {
			t.Errorf("the counts of %s are %+v", name, s)
		}
	}
}

// TestParentEnds ends the mirror at a parent, and then the parent itself. The third node takes from the home again.
func TestParentEnds(t *testing.T) {
	for name, end := range map[string]func(c *chain){
		"mirror": func(c *chain) {
			c.nodes["two"].do(func(h *Host) { h.Unmirror("home", room, ref, id) })
		},
		"node": func(c *chain) { c.nodes["two"].stop() },
	} {
		t.Run(name, func(t *testing.T) {
			c, stalls := startThrough(t), wait.WatchStalls(t)
			began := time.Now()
			end(c)
			c.frames("three", 1)
			c.fedBy("three", "home")
			c.frames("three", 1)
			if took := time.Since(began); took > 1500*time.Millisecond && stalls.Longest() < tolerated {
				t.Errorf("frames after %v, expected 1.5 s", took)
			}
		})
	}
}

// TestTrunkOfParentEnds passes a publication on while the trunk between the home and the parent ends and returns.
func TestTrunkOfParentEnds(t *testing.T) {
	c := startThrough(t)
	c.home.do(func(h *Host) { h.unlink(h.links["two"], "closed by the test") })
	c.frames("three", 1)
	c.frames("two", 0)
	wait.Until(t, "one copy again", func() bool {
		c.p.frame(3000)
		return c.home.stats().Copies == 1 && c.p.tracks[0].Followers()+c.p.tracks[1].Followers() == 2
	})
	c.frames("three", 1)
	c.frames("two", 0)
}

// TestOtherTracks gives the mirror at a parent other tracks. The third node goes on without another offer.
func TestOtherTracks(t *testing.T) {
	c := startThrough(t)
	others := newTracks(c.nodes["two"].engine, 1, 2, 9, volumetric.MIMEVolumetric)
	c.nodes["two"].do(func(h *Host) { h.Mirror("home", room, ref, id, 2, others) })
	for _, former := range c.tracks["two"] {
		former.Close()
	}
	c.frames("three", 1)
	if f := c.feedOf("three"); f.source != "two" {
		t.Errorf("the third node takes from %s", f.source)
	}
}
