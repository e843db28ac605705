package placement

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/claim"
)

var start = time.Unix(1_795_188_600, 0)

// names returns the names of n nodes.
func names(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("node-%d", i)
	}
	return list
}

// loaded returns nodes with loads in the ranking of a room.
func loaded(room string, loads ...float64) []Node {
	var nodes []Node
	for i, name := range Rank(room, names(len(loads))) {
		nodes = append(nodes, Node{Name: name, Load: loads[i], PerJoin: 0.001})
	}
	return nodes
}

// TestRankKeepsTheOrderOfTheRest checks rendezvous hashing: without a node, only the rooms of the node change.
func TestRankKeepsTheOrderOfTheRest(t *testing.T) {
	all := names(5)
	first := make(map[string]int)
	for i := range 1000 {
		room := fmt.Sprint("room ", i)
		ranked := Rank(room, all)
		first[ranked[0]]++
		left := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == ranked[0] })
		if got := Rank(room, left); !slices.Equal(got, ranked[1:]) {
			t.Fatalf("%s: %v without the first, %v with it", room, got, ranked)
		}
	}
	for name, rooms := range first {
		if rooms < 150 || rooms > 250 {
			t.Errorf("%s is the first of %d of 1,000 rooms", name, rooms)
		}
	}
}

// TestChoose places one join on three nodes in the ranking of the room.
func TestChoose(t *testing.T) {
	const room = "hall"
	for _, test := range []struct {
		name  string
		loads []float64
		has   []int
		want  int // index in the ranking, -1 for ErrFull
	}{
		{"an empty cluster", []float64{0, 0, 0}, nil, 0},
		{"equal loads", []float64{0.5, 0.5, 0.5}, nil, 0},
		{"the first is 4 % above the mean", []float64{0.52, 0.49, 0.49}, nil, 0},
		{"the first is 6 % above the mean", []float64{0.53, 0.485, 0.485}, nil, 1},
		{"two are above", []float64{0.6, 0.6, 0.3}, nil, 2},
		{"the room runs on a loaded node", []float64{0.1, 0.8, 0.1}, []int{1}, 1},
		{"the room's node is full", []float64{0.1, 0.86, 0.1}, []int{1}, 0},
		{"the room runs on two", []float64{0.86, 0.8, 0.1}, []int{0, 1}, 1},
		{"both nodes of the room are full", []float64{0.86, 0.86, 0.84}, []int{0, 1}, 2},
		{"all are full", []float64{0.86, 0.9, 1}, []int{0}, -1},
		{"only a node above the mean is not full", []float64{0.9, 0.9, 0.84}, nil, 2},
	} {
		nodes := loaded(room, test.loads...)
		for _, i := range test.has {
			nodes[i].HasRoom = true
		}
		var p Placement
		got, err := p.Choose(start, room, "", nodes)
		switch {
		case test.want < 0 && !errors.Is(err, ErrFull):
			t.Errorf("%s: %v, %v, expected ErrFull", test.name, got, err)
		case test.want >= 0 && (err != nil || got.Name != nodes[test.want].Name):
			t.Errorf("%s: %v, %v, expected %s", test.name, got, err, nodes[test.want].Name)
		}
	}
}

// TestRegions checks that another region serves a join only if the own region cannot.
func TestRegions(t *testing.T) {
	near := Node{Name: "near", Region: "eu"}
	far := Node{Name: "far", Region: "us", HasRoom: true}
	busy := Node{Name: "near", Region: "eu", Load: 0.9}
	for _, test := range []struct {
		region string
		nodes  []Node
		want   string
	}{
		{"eu", []Node{near, far}, "near"},
		{"us", []Node{near, far}, "far"},
		{"eu", []Node{busy, far}, "far"},
		{"asia", []Node{near, far}, "far"},
		{"asia", []Node{near}, "near"},
	} {
		var p Placement
		if got, err := p.Choose(start, "hall", test.region, test.nodes); err != nil || got.Name != test.want {
			t.Errorf("region %s of %v: %v, %v, expected %s", test.region, test.nodes, got, err, test.want)
		}
	}
	var p Placement
	if got, err := p.Choose(start, "hall", "eu", nil); !errors.Is(err, ErrFull) {
		t.Errorf("without nodes: %v, %v", got, err)
	}
}

// TestRecentJoinsCount checks that joins count until a report includes them.
func TestRecentJoinsCount(t *testing.T) {
	const room = "hall"
	nodes := loaded(room, 0.5, 0.5)
	first, second := nodes[0].Name, nodes[1].Name
	var p Placement
	for range 30 {
		p.Sent(start, first)
	}
	for _, test := range []struct {
		at, reported time.Duration
		want         string
	}{
		// Both nodes send as many joins. 0.56 is above 1.05 × 0.53.
		{time.Millisecond, 0, second},
		{2 * time.Second, 999 * time.Millisecond, second},
		{20 * time.Second, 0, second},
		{20 * time.Second, 1100 * time.Millisecond, first},
		{memory + time.Second, 0, first},
	} {
		for i := range nodes {
			nodes[i].Reported = start.Add(test.reported)
		}
		copied := Placement{recent: map[string][]time.Time{first: slices.Clone(p.recent[first])}}
		got, err := copied.Choose(start.Add(test.at), room, "", nodes)
		if err != nil || got.Name != test.want {
			t.Errorf("%v later, %v reported: %v, %v, expected %s", test.at, test.reported, got, err, test.want)
		}
	}
}

// TestMemoryIsBounded sends more joins to one node than are stored.
func TestMemoryIsBounded(t *testing.T) {
	var p Placement
	for range 3 * maxRecent {
		p.Sent(start, "node")
	}
	if n := len(p.recent["node"]); n > maxRecent {
		t.Errorf("%d joins are stored, expected at most %d", n, maxRecent)
	}
	p.expire(start.Add(memory + time.Second))
	if len(p.recent) != 0 {
		t.Errorf("joins of %d nodes are stored later", len(p.recent))
	}
}

// simulation is a cluster whose reported loads are stale.
type simulation struct {
	nodes []string
	// size is the number of participants of each room, capacity that of each node.
	size     []int
	capacity float64
	// interval is the time between two joins, stale the age of the reported loads in joins. interleaved reports that
	// rooms fill at the same time.
	interval    time.Duration
	stale       int
	interleaved bool
}

// run places all participants from random entry nodes and returns the participants of each node. moved is the number of
// joins that left the node of their room although the node was not full.
func (s *simulation) run(random *rand.Rand) (counts map[string]int, moved int) {
	var joins []int
	for room, size := range s.size {
		for range size {
			joins = append(joins, room)
		}
	}
	if s.interleaved {
		random.Shuffle(len(joins), func(i, j int) { joins[i], joins[j] = joins[j], joins[i] })
	}
	counts = make(map[string]int)
	home := make(map[int]string)
	entries := make([]Placement, len(s.nodes))
	var past []string
	now := start
	reported := make(map[string]int)
	for i, room := range joins {
		now = now.Add(s.interval)
		if i > s.stale {
			reported[past[i-s.stale-1]]++
		}
		var nodes []Node
		for _, name := range s.nodes {
			nodes = append(nodes, Node{
				Name: name, Load: float64(reported[name]) / s.capacity, PerJoin: 1 / s.capacity,
				HasRoom: home[room] == name, Reported: now.Add(time.Second - time.Duration(s.stale)*s.interval),
			})
		}
		chosen, err := entries[random.IntN(len(entries))].Choose(now, fmt.Sprint("room ", room), "", nodes)
		if err != nil {
			panic(err)
		}
		switch home[room] {
		case "":
			home[room] = chosen.Name
		case chosen.Name:
		default:
			moved++
		}
		counts[chosen.Name]++
		past = append(past, chosen.Name)
	}
	return counts, moved
}

// TestLoadIsEvenWithStaleReports places 1,000 rooms on 5 nodes. The most loaded node may exceed the mean by 10 %.
func TestLoadIsEvenWithStaleReports(t *testing.T) {

	const rooms, nodes, seeds, allowed = 1000, 5, 2, 1.10
	ten := func(*rand.Rand) int { return 10 }
	// A lognormal size with σ = 0.8 has the median 7, the mean 10 and a hundredth part above 46.
	lognormal := func(r *rand.Rand) int { return max(1, int(math.Round(7.3*math.Exp(0.8*r.NormFloat64())))) }
	for _, test := range []struct {
		name        string
		size        func(*rand.Rand) int
		interval    time.Duration
		stale       int
		interleaved bool
	}{
		{"ten each, loads of 200 ms ago", ten, 500 * time.Microsecond, 400, false},
		{"ten each, 2,000 joins stale, 2,000 joins/s", ten, 500 * time.Microsecond, 2000, false},
		{"ten each, 2,000 joins stale, 200 joins/s", ten, 5 * time.Millisecond, 2000, false},
		{"ten each, 2,000 joins stale, rooms fill together", ten, 500 * time.Microsecond, 2000, true},
		{"lognormal, 2,000 joins stale, 2,000 joins/s", lognormal, 500 * time.Microsecond, 2000, false},
		{"lognormal, 2,000 joins stale, 200 joins/s", lognormal, 5 * time.Millisecond, 2000, false},
		{"lognormal, 2,000 joins stale, rooms fill together", lognormal, 500 * time.Microsecond, 2000, true},
	} {
		worst, sum, left := 0.0, 0.0, 0
		for seed := range uint64(seeds) {
			random := rand.New(rand.NewPCG(seed, 1))
			s := simulation{
				nodes: names(nodes), capacity: 4000, interval: test.interval, stale: test.stale,
				interleaved: test.interleaved,
			}
			total := 0
			for range rooms {
				s.size = append(s.size, test.size(random))
				total += s.size[len(s.size)-1]
			}
			counts, moved := s.run(random)
			if left += moved; moved > 0 {
				t.Errorf("%s, seed %d: %d joins left the node of their room", test.name, seed, moved)
			}
			most := 0
			for _, n := range counts {
				most = max(most, n)
			}
			ratio := float64(most) * nodes / float64(total)
			worst, sum = max(worst, ratio), sum+ratio
		}
		t.Log(claim.Figure(claim.Information(test.name+": most loaded node, average", sum/seeds, "× mean")))
		t.Log(claim.Figure(claim.AtMost(fmt.Sprintf("%s: most loaded node, worst of %d runs", test.name, seeds), worst,
			"× mean", allowed)))
		t.Log(claim.Figure(claim.Exactly(test.name+": joins that left the node of their room", int64(left), "", 0)))
		if worst > allowed {
			t.Errorf("%s: the most loaded node has %.3f × the mean, expected at most %.2f", test.name, worst, allowed)
		}
	}
}
