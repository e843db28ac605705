package trunk

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/long"
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
func startChain(t *testing.T, each map[string]options) *chain {
	a, first := newAuthority(), each["home"]
	first.fanout = 1
	c := &chain{
		t: t, asked: &countingPeer{}, home: a.start(t, "home", first), nodes: map[string]*node{},
		tracks: map[string][]*track.Track{}, viewers: map[string]*viewer{},
	}
	c.p = publishBy(t, c.home, c.asked, 1, 2)
	for _, name := range []string{"two", "three"} {
		c.nodes[name] = a.start(t, name, each[name])
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
		return f.source == source && f.next == "" && len(f.formers) == 0
	})
}

// startThrough starts a chain in which node three takes from node two.
func startThrough(t *testing.T) *chain { return startThroughWith(t, nil) }

func startThroughWith(t *testing.T, each map[string]options) *chain {
	t.Helper()
	c := startChain(t, each)
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
		h.SetRates(room, ref, id, unfit)
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
	if n := c.asked.requests.Load(); n != 0 && !c.p.paused() {
		t.Errorf("%d requests to the publisher", n)
	}
}

// TestDemandOfChildren changes the demand of a third node. The home learns of the union only.
func TestDemandOfChildren(t *testing.T) {
	c := startThrough(t)
	if n := c.nodes["two"].stats().Passed; n != 1 {
		t.Errorf("the parent passes %d publications on, expected 1", n)
	}
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
		if s := n.stats(); s.Untaken != 0 || s.Malformed != 0 || s.Failed != 0 || s.Closed != 0 || s.Passed != 0 {
			t.Errorf("the counts of %s are %+v", name, s)
		}
	}
}

// TestParentOffersNothing takes tracks again from a parent that became the source while the third node took none. The
// parent offers no streams, and the third node takes from the home.
func TestParentOffersNothing(t *testing.T) {
	c := startThrough(t)
	c.take("three", 0)
	p, passed := publicationOf(room, ref, id), publicationOf(room, ref, id)
	passed.Home = "home"
	wait.Until(t, "the end of the third node's track", func() (ended bool) {
		c.nodes["two"].do(func(h *Host) {
			t := h.links["three"].origin.takes[passed]
			if ended = len(t.streams) == 0; ended {
				t.held, t.offer = true, 0
			}
		})
		return ended
	})
	c.nodes["three"].do(func(h *Host) {
		h.links["two"].mirror(h.catalog.mirror("home", p))
		clear(h.catalog.changes.unsettled)
		h.Take("home", room, ref, id, Demand{Tiles: []allocate.QualitySet{allocate.Qualities(1)}})
		if len(h.catalog.changes.unsettled) != 1 {
			t.Error("the next step leaves the feed out")
		}
	})
	c.fedBy("three", "home")
	c.frames("three", 1)
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

// TestLossOnTwoTrunks loses 1 % of the packets of each node in both directions. Lost packets are requested from the
// node before, so that the publisher is asked for nothing and almost all frames arrive at the third node.
func TestLossOnTwoTrunks(t *testing.T) {
	long.Test(t)
	stalls := wait.WatchStalls(t)
	network := netem.NewNetwork(1)
	t.Cleanup(func() { _ = network.Close() })
	each, addresses := map[string]options{}, map[string]netip.Addr{}
	for i, name := range []string{"home", "two", "three"} {
		addresses[name] = netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + i)})
		each[name] = options{measured: true, address: addresses[name].String() + ":7883",
			open: func(address netip.AddrPort) (net.PacketConn, error) { return network.Listen(address) }}
	}
	access := func(loss float64) {
		for _, address := range addresses {
			config := netem.DefaultConfig()
			config.Delay, config.Loss = roundTrip/4, loss
			if err := network.SetAccess(address, config, config); err != nil {
				t.Fatal(err)
			}
		}
	}
	access(0)
	c := startThroughWith(t, each)
	access(0.01)
	const frames = 300
	first := c.p.publishers[1].Number
	for range frames {
		c.p.frame(12_000)
		time.Sleep(time.Second / 60)
	}
	arrived := func() (complete int) {
		for frame := first + 1; frame <= first+frames; frame++ {
			if c.viewers["three"].has(1, frame) {
				complete++
			}
		}
		return complete
	}
	wait.For(2*time.Second, func() bool { return arrived() == frames })
	repaired := c.nodes["two"].engine.Stats().Recovered + c.nodes["three"].engine.Stats().Recovered
	t.Logf("%d of %d frames, %d packets repaired, %d requests to the publisher, %d and %d tracks masked at the end, "+
		"stalls of %v", arrived(), frames, repaired, c.asked.requests.Load(), c.home.stats().Masked,
		c.nodes["two"].stats().Masked, stalls.Longest())
	if arrived() < frames*999/1000 && stalls.Longest() < tolerated {
		t.Errorf("%d of %d frames", arrived(), frames)
	}
	if n := c.asked.requests.Load(); repaired == 0 || n > 0 && stalls.Longest() < tolerated && !c.p.paused() {
		t.Errorf("%d packets repaired, %d requests to the publisher", repaired, n)
	}
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

// TestSourcesThatCarry checks the order in which the streams of several sources are bound to other tracks: the source
// that carries the tracks comes first, also while another node is or becomes the source.
func TestSourcesThatCarry(t *testing.T) {
	c := startThrough(t)
	for _, f := range []feed{
		{source: "two", formers: []former{{node: "home"}}},
		{source: "home", formers: []former{{node: "two"}}},
		{source: "two", next: "home"},
		{source: "home", next: "two"},
	} {
		c.nodes["three"].do(func(h *Host) {
			m := *h.catalog.mirror("home", publicationOf(room, ref, id))
			m.feed = &f
			if got := h.sources(&m); !slices.Equal(got, []string{"two", "home"}) {
				t.Errorf("source %s, next %q, formers %v: the order is %v", f.source, f.next, f.formers, got)
			}
		})
	}
}

// TestMovesAreLossless moves node three from the home to node two, whose path is 60 ms longer, and back, while the
// publisher sends. No frame is missing, and no packet arrives twice. Both sources carry all frames: however late a busy
// machine delivers them, neither fails.
func TestMovesAreLossless(t *testing.T) {
	network := netem.NewNetwork(1)
	t.Cleanup(func() { _ = network.Close() })
	each := map[string]options{}
	for i, name := range []string{"home", "two", "three"} {
		address := netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + i)})
		each[name] = options{address: address.String() + ":7883", deadline: wait.Patience,
			open: func(address netip.AddrPort) (net.PacketConn, error) { return network.Listen(address) }}
		config := netem.DefaultConfig()
		if config.Delay = 0; name == "two" {
			config.Delay = 30 * time.Millisecond
		}
		if err := network.SetAccess(address, config, config); err != nil {
			t.Fatal(err)
		}
	}
	c := startChain(t, each)
	c.home.do(func(h *Host) { h.catalog.publications[publicationOf(room, ref, id)].tree.fanout = 2 })
	for _, name := range []string{"two", "three"} {
		c.take(name, allocate.Qualities(0))
		c.frames(name, 0)
		c.fedBy(name, "home")
	}
	number := func() uint32 { return c.p.publishers[0].Number }
	wait.Until(t, "the last frame", func() bool { return c.viewers["three"].has(0, number()) })
	first, before := number()+1, c.tracks["three"][0].Stats().Packets
	for _, parent := range []string{"two", ""} {
		source := cmp.Or(parent, "home")
		wait.Until(t, "three takes from "+source, func() bool {
			// A parent fails if the machine delays its offer. The home then moves the node back.
			c.home.do(func(h *Host) {
				h.catalog.publications[publicationOf(room, ref, id)].tree.move("three", parent, time.Now())
				h.catalog.changes.arrange(publicationOf(room, ref, id))
			})
			c.p.frame(3000)
			time.Sleep(10 * time.Millisecond)
			f := c.feedOf("three")
			return f.source == source && f.settled()
		})
	}
	wait.Until(t, "the last frame", func() bool { return c.viewers["three"].has(0, number()) })
	for frame := first; frame <= number(); frame++ {
		if !c.viewers["three"].has(0, frame) {
			t.Errorf("frame %d of %d to %d is missing", frame, first, number())
		}
	}
	if got, want := c.tracks["three"][0].Stats().Packets-before, 3*uint64(number()+1-first); got != want {
		t.Errorf("%d packets, expected %d", got, want)
	}
}
