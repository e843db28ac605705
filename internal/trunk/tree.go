package trunk

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
	"time"
)

const (
	// DefaultFanout is the number of copies of a publication that a node sends before it assigns parents.
	// MaxFanout is the greatest such number.
	DefaultFanout = 8
	MaxFanout     = 1024
	// maxDepth bounds the trunks between the home and a node: with a fan-out of two, 510 nodes.
	maxDepth = 8
	// refusedTime is the time for which a node gets no parent that has failed once: trunks between nodes of a room open
	// within seconds. The time doubles with each further failure, up to maxRefusedTime.
	refusedTime    = 5 * time.Second
	maxRefusedTime = 80 * time.Second
	// moveInterval is the minimum time between two moves that improve the tree, movedTime that between two moves of one
	// node and between two searches without result.
	moveInterval = 500 * time.Millisecond
	movedTime    = 5 * time.Second
)

// tree assigns a parent to each node that takes a publication. The home of the publication alone has the tree. Up to
// fanout nodes take from the home. If there are more, each node has at most fanout children, one node of each region
// takes from another region, and none of the home's region does.
//
// A node that takes for the first time is placed at once. A node whose parent has failed returns to the home, and is
// placed elsewhere later. Other moves improve the tree, one at a time.
type tree struct {
	fanout       int
	home, region string
	// usable reports whether a node answers. Others are no parents.
	usable func(node string) bool
	// seed makes the choice between equal parents differ between publications.
	seed     string
	branches map[string]*branch
	// changed are the nodes whose paths may have changed since the last step.
	changed map[string]struct{}
	// due is the time from which a move may improve the tree.
	due    time.Time
	joined uint64
}

// branch is a node of the tree. It is at the home if parent is empty.
type branch struct {
	region, parent string
	// relays is set if the node can have children and a parent.
	relays bool
	// refused are the parents that have failed.
	refused map[string]refusal
	moved   time.Time
	// order is the number of the node in the order in which they began to take.
	order uint64
}

// refusal is a parent that a node does not get until a time, and the length of that time.
type refusal struct {
	until time.Time
	time  time.Duration
}

func newTree(fanout int, home, region, seed string, usable func(node string) bool) *tree {
	return &tree{
		fanout: fanout, home: home, region: region, usable: usable, seed: seed, branches: map[string]*branch{},
		changed: map[string]struct{}{},
	}
}

// take adds a node that takes from the home, or returns to the home because its parent refused has failed.
func (t *tree) take(node, region string, relays bool, refused string, now time.Time) {
	if t.branches[node] == nil {
		t.add(node, region, relays, now)
		t.move(node, t.best(node, now), now)
	}
	if refused != "" {
		t.refuse(node, refused, nil, now)
	}
}

// refuse records that the parent of a node has failed. The node takes from the end of path, from the home if the path
// is empty. refuse has no effect if the node has another parent meanwhile.
func (t *tree) refuse(node, parent string, path []string, now time.Time) {
	if b := t.branches[node]; b != nil && b.parent == parent && parent != "" {
		b.refuse(parent, now)
		t.move(node, t.end(node, path), now)
	}
}

// end returns the last node of the path of a node, empty for the home and for a node that cannot be its parent.
func (t *tree) end(node string, path []string) string {
	if len(path) > 0 {
		if last := path[len(path)-1]; t.branches[last] != nil && last != node && !t.below(last, node) {
			return last
		}
	}
	return ""
}

func (t *tree) add(node, region string, relays bool, now time.Time) *branch {
	t.joined++
	b := &branch{region: region, relays: relays, moved: now, order: t.joined}
	t.branches[node] = b
	return b
}

func (b *branch) refuse(parent string, now time.Time) {
	if b.refused == nil {
		b.refused = map[string]refusal{}
	}
	if r := b.refused[parent]; !now.Before(r.until) {
		r.time = min(max(2*r.time, refusedTime), maxRefusedTime)
		r.until = now.Add(r.time)
		b.refused[parent] = r
	}
}

// confirm records the path by which a node takes. A node with another path is told its path again.
func (t *tree) confirm(node, region string, path []string, now time.Time) {
	b := t.branches[node]
	if b == nil {
		b = t.add(node, region, true, now)
		b.parent = t.end(node, path)
	}
	if !slices.Equal(path, t.path(node)) {
		t.changed[node] = struct{}{}
	}
}

// remove removes a node that does not take, or whose trunk has ended. Its children return to the home.
func (t *tree) remove(node string, now time.Time) {
	if t.branches[node] == nil {
		return
	}
	delete(t.branches, node)
	delete(t.changed, node)
	t.release(node, now)
}

// release moves the children of a node to the home.
func (t *tree) release(node string, now time.Time) {
	for child, b := range t.branches {
		if b.parent == node {
			b.refuse(node, now)
			t.move(child, "", now)
		}
	}
}

// move changes the parent of a node.
func (t *tree) move(node, parent string, now time.Time) {
	b := t.branches[node]
	if b.parent == parent {
		return
	}
	b.parent, b.moved = parent, now
	for other := range t.branches {
		if other == node || t.below(other, node) {
			t.changed[other] = struct{}{}
		}
	}
}

// path returns the nodes by which a publication reaches a node, from the home to the node's parent.
func (t *tree) path(node string) []string {
	path := []string{t.home}
	for b := t.branches[node]; b != nil && b.parent != ""; b = t.branches[b.parent] {
		path = slices.Insert(path, 1, b.parent)
	}
	return path
}

// below reports whether a node takes from an ancestor, directly or not.
func (t *tree) below(node, ancestor string) bool {
	for b := t.branches[node]; b != nil && b.parent != ""; b = t.branches[b.parent] {
		if b.parent == ancestor {
			return true
		}
	}
	return false
}

// children returns the number of children of a node, of the home if the name is empty.
func (t *tree) children(node string) (n int) {
	for _, b := range t.branches {
		if b.parent == node {
			n++
		}
	}
	return n
}

// copies returns the number of nodes that take from the home.
func (t *tree) copies() int { return t.children("") }

// height returns the number of trunks from a node to the last node below it.
func (t *tree) height(node string) (height int) {
	depth := len(t.path(node))
	for other := range t.branches {
		if t.below(other, node) {
			height = max(height, len(t.path(other))-depth)
		}
	}
	return height
}

// regionOf returns the region of a node, of the home if the name is empty.
func (t *tree) regionOf(node string) string {
	if node == "" {
		return t.region
	}
	return t.branches[node].region
}

// best returns the best parent for a node: in the region of the node, then with the shortest path, then with the fewest
// children. The result is empty for the home, which also serves nodes beyond fanout if there is no other parent.
func (t *tree) best(node string, now time.Time) string {
	b := t.branches[node]
	if len(t.branches) <= t.fanout || !b.relays {
		return ""
	}
	height := t.height(node)
	best, found := "", t.room(b)
	for _, other := range slices.Sorted(maps.Keys(t.branches)) {
		children := t.children(other)
		if b.parent == other {
			children--
		}
		switch {
		case other == node, !t.branches[other].relays, children >= t.fanout, t.below(other, node),
			!t.usable(other), now.Before(b.refused[other].until),
			len(t.path(other))+1+height > maxDepth:
		case !found || t.compare(node, other, best) < 0:
			best, found = other, true
		}
	}
	return best
}

// room reports whether the home has room for a node. If nodes of the home's own region take the publication, one place
// is for them: they would take from another region otherwise.
func (t *tree) room(b *branch) bool {
	all, foreign := t.copies(), t.foreign()
	if b.parent == "" {
		all--
		if b.region != t.region {
			foreign--
		}
	}
	return all < t.fanout && (b.region == t.region || foreign < t.mostForeign())
}

// mostForeign returns the number of nodes of other regions that may take from the home.
func (t *tree) mostForeign() int {
	if t.fanout > 1 {
		for _, b := range t.branches {
			if b.region == t.region {
				return t.fanout - 1
			}
		}
	}
	return t.fanout
}

// foreign returns the number of nodes of other regions that take from the home.
func (t *tree) foreign() (n int) {
	for _, b := range t.branches {
		if b.parent == "" && b.region != t.region {
			n++
		}
	}
	return n
}

// overloaded reports whether too many nodes take from the home.
func (t *tree) overloaded() bool {
	return t.copies() > t.fanout || t.foreign() > t.mostForeign()
}

// compare orders two parents of a node.
func (t *tree) compare(node, a, b string) int {
	region := t.regionOf(node)
	far := func(parent string) int {
		if t.regionOf(parent) == region {
			return 0
		}
		return 1
	}
	depth := func(parent string) int {
		if parent == "" {
			return 0
		}
		return len(t.path(parent))
	}
	return cmp.Or(cmp.Compare(far(a), far(b)), cmp.Compare(depth(a), depth(b)),
		cmp.Compare(t.children(a), t.children(b)), cmp.Compare(t.hash(a), t.hash(b)))
}

// hash orders equal parents, differently for each publication.
func (t *tree) hash(node string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(t.seed + "\x00" + node))
	return h.Sum64()
}

// step moves the children of nodes that cannot be used to the home, improves the tree, and returns the nodes whose
// paths have changed.
func (t *tree) step(now time.Time) (changed []string) {
	for _, node := range slices.Sorted(maps.Keys(t.branches)) {
		if !t.usable(node) {
			t.release(node, now)
		}
	}
	if !now.Before(t.due) && t.imperfect() {
		t.due = now.Add(movedTime)
		if node, parent, found := t.improvement(now); found {
			t.due = now.Add(moveInterval)
			t.move(node, parent, now)
		}
	}
	changed = slices.Sorted(maps.Keys(t.changed))
	clear(t.changed)
	return changed
}

// idle reports whether step has nothing to do while no node is added or removed.
func (t *tree) idle() bool {
	return len(t.changed) == 0 && len(t.branches) <= t.fanout && t.copies() == len(t.branches)
}

// imperfect reports whether nodes may be moved to improve the tree: too many take from the home, or few enough for the
// home take from others, or two of a region take from other regions.
func (t *tree) imperfect() bool {
	if len(t.branches) <= t.fanout {
		return t.copies() < len(t.branches)
	}
	if t.overloaded() {
		return true
	}
	entered := map[string]bool{t.region: true}
	for node, b := range t.branches {
		if t.enters(node) {
			if entered[b.region] {
				return true
			}
			entered[b.region] = true
		}
	}
	return false
}

// improvement returns a node with a better parent. Nodes that began last, and have no children, come first.
func (t *tree) improvement(now time.Time) (node, parent string, found bool) {
	names := slices.SortedFunc(maps.Keys(t.branches), func(a, b string) int {
		return cmp.Or(cmp.Compare(t.children(a), t.children(b)),
			cmp.Compare(t.branches[b].order, t.branches[a].order))
	})
	overloaded := t.overloaded()
	for _, name := range names {
		b := t.branches[name]
		if now.Sub(b.moved) < movedTime || !t.usable(name) {
			continue
		}
		best := t.best(name, now)
		enters := t.enters(name) && (t.entries(b.region) > 1 || b.region == t.region) && t.regionOf(best) == b.region
		if best != b.parent && (len(t.branches) <= t.fanout || overloaded && b.parent == "" || enters) {
			return name, best, true
		}
	}
	return "", "", false
}

// enters reports whether a node takes from another region.
func (t *tree) enters(node string) bool {
	b := t.branches[node]
	return b.region != t.regionOf(b.parent)
}

// entries returns the number of nodes of a region that take from another region.
func (t *tree) entries(region string) (n int) {
	for node, b := range t.branches {
		if b.region == region && t.enters(node) {
			n++
		}
	}
	return n
}
