package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// large is a cluster with 10,000 rooms of 10, whose publishers send 10 Mbit/s to receivers of 5 Mbit/s each. A copy for
// another node has all 10 Mbit/s if that node has both kinds of receivers.
func large() Plan {
	p := Default()
	p.Rooms, p.Nodes, p.Qualities = 10_000, 300, []Quality{{5e6, 1}}
	return p
}

// TestPlacements compares traffic between nodes with independent results: expected numbers of copies by hand.
func TestPlacements(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Plan)
		// copies of each object, and nodes of a room.
		copies, nodes float64
	}{
		{"one node for each room", func(*Plan) {}, 0, 1},
		{"a tenth of the rooms on two nodes", func(p *Plan) { p.Spilled = 0.1 }, 0.1, 1.1},
		// The sum over the regions of the probability that the region is present, minus its share.
		{"three regions", func(p *Plan) { p.Regions = []float64{0.6, 0.3, 0.1} },
			3 - math.Pow(0.4, 10) - math.Pow(0.7, 10) - math.Pow(0.9, 10) - 1,
			3 - math.Pow(0.4, 10) - math.Pow(0.7, 10) - math.Pow(0.9, 10)},
		{"any node", func(p *Plan) { p.Anywhere = true },
			300*(1-math.Pow(1-1.0/300, 10)) - 1, 300 * (1 - math.Pow(1-1.0/300, 10))},
	} {
		p := large()
		test.change(&p)
		r, err := Compute(p)
		if err != nil {
			t.Fatal(err)
		}
		if !near(r.Room.Copies, test.copies) || !near(r.Room.Nodes, test.nodes) {
			t.Errorf("%s: %.4f copies and %.4f nodes, expected %.4f and %.4f", test.name, r.Room.Copies, r.Room.Nodes,
				test.copies, test.nodes)
		}
		// With one quality, a copy has the whole rate.
		if want := 10 * 5e6 * test.copies; !near(r.Room.Trunk, want) {
			t.Errorf("%s: %g bit/s between nodes, expected %g", test.name, r.Room.Trunk, want)
		}
		if !near(r.Room.Down, 90*5e6) || !near(r.Room.Up, 10*5e6) {
			t.Errorf("%s: %g to receivers, %g from publishers", test.name, r.Room.Down, r.Room.Up)
		}
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(1, math.Abs(b)) }

// TestQualities: a copy has the qualities that at least one receiver of the node gets, so that more receivers need more
// of the qualities, and all of them at most.
func TestQualities(t *testing.T) {
	p := Default()
	p.Qualities = []Quality{{1e6, 0.5}, {4e6, 0.5}}
	for _, test := range []struct{ receivers, want float64 }{{0, 0}, {1, 2.5e6}, {2, 3.75e6}, {1000, 5e6}} {
		if got := p.copyRate(test.receivers); !near(got, test.want) {
			t.Errorf("%g receivers: %g bit/s, expected %g", test.receivers, got, test.want)
		}
	}
	p.Seen, p.Watched = 0.5, 3
	if got, want := p.copyRate(1), 0.5*3/9*2.5e6; !near(got, want) {
		t.Errorf("half of the tiles of a third of the objects: %g bit/s, expected %g", got, want)
	}
}

// TestAudience: many viewers use several nodes, each of which gets one copy, and fan-out limits the copies that an
// origin sends.
func TestAudience(t *testing.T) {
	p := Default()
	p.Rooms, p.Participants, p.Viewers, p.Nodes, p.Tiles = 1, 1, 100_000, 100, 9
	p.Qualities = []Quality{{10e6, 1}}
	star, err := Compute(p)
	if err != nil {
		t.Fatal(err)
	}
	// 1 Tbit/s of frames, 7 % more on the wire, on nodes of 25 Gbit/s at 85 %.
	if want := math.Ceil(1.0e12 * 1224 / 1144 / 25e9 / 0.85); math.Abs(star.Room.Nodes-want) > 1 {
		t.Errorf("%g nodes, expected %g", star.Room.Nodes, want)
	}
	if star.Room.Sent != star.Room.Copies || star.Room.Hops != 1 {
		t.Errorf("%g of %g copies from the origin over %d hops, expected all over one", star.Room.Sent,
			star.Room.Copies, star.Room.Hops)
	}
	p.FanOut = 8
	tree, err := Compute(p)
	// 8 + 64 reach 50 nodes.
	if err != nil || tree.Room.Sent != 8 || tree.Room.Hops != 2 || tree.Room.Trunk != star.Room.Trunk {
		t.Errorf("with a fan-out of 8: %+v, %v", tree.Room, err)
	}
}

// TestNodes: the mean node has its share of the cluster, and the others take over a dead node's.
func TestNodes(t *testing.T) {
	p := Default()
	r, err := Compute(p)
	if err != nil {
		t.Fatal(err)
	}
	if !near(r.Node.Participants, 1000.0/3) || !near(r.Node.Egress*3, r.Cluster.Down+r.Cluster.Trunk) {
		t.Errorf("a node has %+v of %+v", r.Node, r.Cluster)
	}
	if !near(r.Failure.Link, r.Node.Link*1.5) || r.Failure.Setup <= 0 {
		t.Errorf("after a death: %+v", r.Failure)
	}
	needed := math.Ceil((r.Cluster.Down + r.Cluster.Trunk) / 15e9)
	if r.Cluster.NodesByLink != int(needed) {
		t.Errorf("%d nodes by the network, expected %g", r.Cluster.NodesByLink, needed)
	}
	p.Nodes, p.Regions = 1, []float64{1}
	if r, err = Compute(p); err != nil || r.Failure != (FailureResult{}) || r.State.Beats != 0 || r.State.Rate != 0 {
		t.Errorf("one node: %+v, %+v, %v", r.Failure, r.State, err)
	}
}

// TestState: the rates of messages follow from joins, nodes and the lengths of the encoders.
func TestState(t *testing.T) {
	p := Default()
	p.Nodes, p.Spilled, p.Stay, p.Poses = 50, 1, 1000*time.Second, 10
	r, err := Compute(p)
	if err != nil {
		t.Fatal(err)
	}
	s := r.State
	if s.Beats != 245 || !near(s.Changes, 2*1000/1000.0/50) || !near(s.Poses, 10*1000/50.0) {
		t.Errorf("%+v, expected 245 beats, 0.04 changes and 200 poses per second", s)
	}
	// docs/cluster.md: 436 bytes with a fingerprint, 1,593 for a join with 15 tiles, 14,832 for a room of 10.
	if s.BeatBytes < 250 || s.BeatBytes > 600 || s.JoinBytes < 1200 || s.JoinBytes > 2200 ||
		s.SnapshotBytes < 10*1200 || s.SnapshotBytes > 10*2200 {
		t.Errorf("the lengths are %+v", s)
	}
	p.Stay = time.Second
	busy, err := Compute(p)
	if err != nil || busy.State.BeatBytes <= s.BeatBytes {
		t.Errorf("a beat with changes has %d bytes, without %d, %v", busy.State.BeatBytes, s.BeatBytes, err)
	}
}

func TestValidate(t *testing.T) {
	for text, change := range map[string]func(*Plan){
		"rooms is 0":               func(p *Plan) { p.Rooms = 0 },
		"viewers is -1":            func(p *Plan) { p.Viewers = -1 },
		"seen is 1.5":              func(p *Plan) { p.Seen = 1.5 },
		"use is NaN":               func(p *Plan) { p.Use = math.NaN() },
		"spilled is -1":            func(p *Plan) { p.Spilled = -1 },
		"link is 0":                func(p *Plan) { p.Link = 0 },
		"poses is -1":              func(p *Plan) { p.Poses = -1 },
		"stay is 0":                func(p *Plan) { p.Stay = 0 },
		"4 regions with 3":         func(p *Plan) { p.Regions = []float64{0.25, 0.25, 0.25, 0.25} },
		"regions make 0.9":         func(p *Plan) { p.Regions = []float64{0.9} },
		"shares of qualities make": func(p *Plan) { p.Qualities = nil },
		"quality 0 is 0":           func(p *Plan) { p.Qualities = []Quality{{0, 1}} },
		"share of regions is -1":   func(p *Plan) { p.Regions = []float64{2, -1} },
	} {
		p := Default()
		change(&p)
		if _, err := Compute(p); !errors.Is(err, ErrPlan) || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, expected an error with %q", err, text)
		}
	}
}

func TestCommand(t *testing.T) {
	run := func(arguments ...string) (string, error) {
		var out bytes.Buffer
		cmd := Command()
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(append([]string{"plan"}, arguments...))
		err := cmd.Execute()
		return out.String(), err
	}
	text, err := run("--regions", "0.6,0.3,0.1", "--qualities", "5", "--rooms", "10000", "--nodes", "300")
	if err != nil || !strings.Contains(text, "each of 300 nodes") || !strings.Contains(text, "Tbit/s") {
		t.Errorf("%s, %v", text, err)
	}
	text, err = run("--json")
	var result struct {
		Plan Plan
		Result
	}
	if err != nil || json.Unmarshal([]byte(text), &result) != nil || result.Plan.Nodes != 3 ||
		result.Cluster.Participants != 1000 {
		t.Errorf("%s, %v", text, err)
	}
	for _, arguments := range [][]string{
		{"--qualities", "fast"}, {"--qualities", "1:x"}, {"--regions", "eu"}, {"--nodes", "0"}, {"all"},
	} {
		if text, err := run(arguments...); err == nil {
			t.Errorf("%q: %s, expected an error", arguments, text)
		}
	}
}
