package trunk

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/long"
)

// forest simulates nodes that take one publication in virtual time, of which some die and return. Messages between two
// nodes arrive in order, after 1 to 60 ms.
type forest struct {
	t      *testing.T
	random *rand.Rand
	now    time.Time
	tree   *tree
	nodes  map[string]*leaf
	// queue are the messages and events that are due later.
	queue []event
	last  map[[2]string]time.Time
	moves int
}

// event is something that happens at a time.
type event struct {
	at time.Time
	do func()
}

// leaf is a node that takes the publication.
type leaf struct {
	name, region string
	alive        bool
	feed         *feed
	// life changes when the node dies or returns. Messages of a former life are lost.
	life int
	// children are the nodes to which the node passes the publication on. takes and sends are the demand at the home,
	// and whether the home sends the tracks.
	children     map[string]bool
	takes, sends bool
	// starved is the time since which the node has not been fed, zero if it is fed.
	starved time.Time
}

const (
	forestHome   = "home"
	forestFanout = 3
	forestTick   = 10 * time.Millisecond
)

func newForest(t *testing.T, seed uint64, nodes, regions int) *forest {
	f := &forest{t: t, random: rand.New(rand.NewPCG(seed, 1)), now: start, nodes: map[string]*leaf{},
		last: map[[2]string]time.Time{}}
	f.tree = newTree(forestFanout, forestHome, "r0", "seed", func(node string) bool {
		return f.nodes[node].alive || f.now.Before(f.nodes[node].starved)
	})
	for i := range nodes {
		name := fmt.Sprintf("n%02d", i)
		f.nodes[name] = &leaf{name: name, region: fmt.Sprintf("r%d", i%regions)}
		f.after(time.Duration(f.random.IntN(2000))*time.Millisecond, func() { f.begin(f.nodes[name]) })
	}
	return f
}

func (f *forest) after(d time.Duration, do func()) {
	f.queue = append(f.queue, event{f.now.Add(d), do})
}

// names returns the names of the nodes in a fixed order.
func (f *forest) names() []string { return slices.Sorted(maps.Keys(f.nodes)) }

// send delivers a message from a node to another, unless one of them dies before.
func (f *forest) send(from, to string, deliver func()) {
	key, at := [2]string{from, to}, f.now.Add(time.Duration(1+f.random.IntN(60))*time.Millisecond)
	if at.Before(f.last[key]) {
		at = f.last[key]
	}
	f.last[key] = at
	lives := func() (lives [2]int) {
		for i, name := range key {
			if n := f.nodes[name]; n != nil && n.alive {
				lives[i] = n.life
			} else if n != nil {
				lives[i] = -1
			}
		}
		return lives
	}
	began := lives()
	f.queue = append(f.queue, event{at, func() {
		if now := lives(); now == began && now[0] >= 0 && now[1] >= 0 {
			deliver()
		}
	}})
}

// begin starts a node, which takes from the home.
func (f *forest) begin(n *leaf) {
	n.alive, n.life, n.feed = true, n.life+1, newFeed(n.name, forestHome)
	n.children, n.starved = map[string]bool{}, f.now
	f.perform(n, []feedAction{{node: forestHome}})
}

// die ends a node. The others notice after half a second.
func (f *forest) die(n *leaf) {
	n.alive, n.life, n.takes, n.sends = false, n.life+1, false, false
	n.starved = f.now.Add(SilentAfter)
	life := n.life
	for _, name := range f.names() {
		other := f.nodes[name]
		f.after(SilentAfter+time.Duration(f.random.IntN(50))*time.Millisecond, func() {
			if other.alive && other != n {
				delete(other.children, n.name)
				f.perform(other, other.feed.lost(n.name, f.now))
			}
		})
	}
	f.after(SilentAfter+time.Duration(f.random.IntN(50))*time.Millisecond, func() {
		if n.life == life {
			f.tree.remove(n.name, f.now)
		}
	})
}

// perform performs the actions of the feed of a node.
func (f *forest) perform(n *leaf, actions []feedAction) {
	for _, a := range actions {
		path, refused := n.feed.pathBy(a.node), n.feed.refused
		switch {
		case a.end:
			f.send(n.name, a.node, func() { delete(f.nodes[a.node].children, n.name) })
		case a.node == forestHome:
			f.send(n.name, a.node, func() { f.takeAtHome(n, path, refused) })
		default:
			f.send(n.name, a.node, func() { f.takeAtParent(f.nodes[a.node], n, path) })
		}
	}
}

// takeAtHome handles a demand at the home, or a path.
func (f *forest) takeAtHome(n *leaf, path []string, refused string) {
	if len(path) > 0 {
		if refused != "" {
			f.tree.refuse(n.name, refused, path, f.now)
		}
		f.tree.confirm(n.name, n.region, path, f.now)
		n.takes, n.sends = false, false
		return
	}
	f.tree.take(n.name, n.region, true, refused, f.now)
	n.takes, n.sends = true, n.sends || refused != ""
	f.serve(n)
}

// serve makes the home send the tracks unless a parent has to.
func (f *forest) serve(n *leaf) {
	if n.takes && (n.sends || f.tree.branches[n.name].parent == "") {
		n.sends = true
		f.send(forestHome, n.name, func() { n.feed.bound(forestHome, f.now) })
	}
}

// takeAtParent handles a demand at a node that passes the publication on.
func (f *forest) takeAtParent(parent, n *leaf, path []string) {
	if !passesOn(path, parent.name, n.name, parent.feed.path) {
		delete(parent.children, n.name)
		f.send(parent.name, n.name, func() { f.perform(n, n.feed.refuse(parent.name, f.now)) })
		return
	}
	parent.children[n.name] = true
	f.send(parent.name, n.name, func() { n.feed.bound(parent.name, f.now) })
}

// run runs the simulation for a time.
func (f *forest) run(d time.Duration) {
	for end := f.now.Add(d); f.now.Before(end); {
		f.now = f.now.Add(forestTick)
		slices.SortStableFunc(f.queue, func(a, b event) int { return a.at.Compare(b.at) })
		for len(f.queue) > 0 && !f.queue[0].at.After(f.now) {
			do := f.queue[0].do
			f.queue = f.queue[1:]
			do()
		}
		for _, name := range f.tree.step(f.now) {
			n, path := f.nodes[name], f.tree.path(name)
			f.moves++
			f.send(forestHome, name, func() {
				possible := f.nodes[path[len(path)-1]] == nil || f.nodes[path[len(path)-1]].alive
				possible = possible && !slices.ContainsFunc(path, func(node string) bool { return n.children[node] })
				f.perform(n, n.feed.assign(path, possible, false, f.now))
			})
			f.serve(n)
		}
		for _, name := range f.names() {
			if n := f.nodes[name]; n.alive {
				// The packets of a former source arrive first for 300 ms.
				f.perform(n, n.feed.step(f.now, func(string) bool {
					return n.feed.drop.Sub(f.now) > time.Duration(len(n.feed.path))*overlapTime-300*time.Millisecond
				}))
				f.check(n)
			}
		}
	}
}

// check follows the packets of a node back to the home. They never pass a node twice, and no node is without packets
// for more than 1.5 s.
func (f *forest) check(n *leaf) {
	f.t.Helper()
	passed := map[string]bool{}
	for at := n; ; {
		if passed[at.name] {
			f.t.Fatalf("%v: the packets of %s pass %s twice", f.now.Sub(start), n.name, at.name)
		}
		passed[at.name] = true
		source := at.feed.source
		if source == forestHome {
			if at.sends {
				n.starved = time.Time{}
				return
			}
			break
		}
		next := f.nodes[source]
		if !next.alive || !next.children[at.name] {
			break
		}
		at = next
	}
	if n.starved.IsZero() {
		n.starved = f.now
	}
	if without := f.now.Sub(n.starved); without > 1500*time.Millisecond {
		f.t.Fatalf("%v: %s has had no packets for %v, its feed is %+v, the path is %v", f.now.Sub(start), n.name,
			without, n.feed, f.tree.path(n.name))
	}
}

// settled checks the tree: the home and each node have at most forestFanout children, and one node of each region takes
// from another region.
func (f *forest) settled() {
	f.t.Helper()
	for _, parent := range append(f.names(), "") {
		if n := f.tree.children(parent); n > forestFanout {
			f.t.Errorf("%q has %d children, expected at most %d", cmp.Or(parent, forestHome), n, forestFanout)
		}
	}
	for _, name := range f.names() {
		n := f.nodes[name]
		if entries := f.tree.entries(n.region); n.region != "r0" && entries != 1 || n.region == "r0" && entries != 0 {
			f.t.Errorf("%d nodes of region %s take from others", entries, n.region)
		}
		if want := f.tree.path(name); !slices.Equal(n.feed.path, want) {
			f.t.Errorf("%s takes by %v, expected %v", name, n.feed.path, want)
		}
	}
}

// TestTreeSimulation lets nodes of a tree die and return at random, most often those that pass the publication on.
func TestTreeSimulation(t *testing.T) { simulateTrees(t, 0, 2) }

// TestTreeSimulations is TestTreeSimulation with more seeds.
func TestTreeSimulations(t *testing.T) {
	long.Test(t)
	simulateTrees(t, 2, 8)
}

// simulateTrees simulates trees with the seeds from first to end - 1.
func simulateTrees(t *testing.T, first, end uint64) {
	for seed := first; seed < end; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			f := newForest(t, seed, 24, 4)
			f.run(40 * time.Second)
			f.settled()
			for range 12 {
				for range 1 + f.random.IntN(3) {
					names := slices.DeleteFunc(f.names(), func(name string) bool { return !f.nodes[name].alive })
					slices.SortStableFunc(names, func(a, b string) int {
						return cmp.Compare(f.tree.children(b), f.tree.children(a))
					})
					n := f.nodes[names[min(f.random.IntN(len(names)), f.random.IntN(len(names)))]]
					f.die(n)
					f.after(2*time.Second+time.Duration(f.random.IntN(4000))*time.Millisecond, func() { f.begin(n) })
				}
				f.run(4 * time.Second)
			}
			f.run(80 * time.Second)
			f.settled()
			before := f.moves
			f.run(10 * time.Second)
			if f.moves != before {
				t.Errorf("%d moves in a tree that nothing changes", f.moves-before)
			}
		})
	}
}
