package trunk

import (
	"slices"
	"time"
)

const (
	// bindTime is the time within which a parent has to offer the streams of a publication: several round trips between
	// regions.
	bindTime = time.Second
	// overlapTime is the time for which a node takes from its former parent, too: until the packets of the next one
	// arrive.
	overlapTime = 500 * time.Millisecond
	// slowTime is the time for which the trunk of a parent may leave out tracks that the node takes.
	slowTime = 2 * time.Second
)

// feed decides from which node this node takes a publication of another node: from its home, or from the parent that
// the home assigns. The home at once replaces a parent that fails. This node takes from a new parent before it ends its
// demand at the former one.
type feed struct {
	self, home string
	// source is the node from which this node takes. path are the nodes from the home to source.
	source string
	path   []string
	// next is a parent that has not offered its streams, empty if there is none. nextPath are the nodes from the home to
	// next. A parent other than the home fails at deadline.
	next     string
	nextPath []string
	deadline time.Time
	// former is the node before source, empty if there is none. The demand there ends at drop.
	former string
	drop   time.Time
	// refused is the last parent that has failed, until another has offered its streams.
	refused string
	// slow is the time since which the trunk of source leaves out tracks, zero if it leaves out none.
	slow time.Time
}

// feedAction is a consequence of a change of a feed. Begin adds the publication to the trunk to a node, end removes the
// publication. Otherwise the demand and the path have to be sent to the node.
type feedAction struct {
	node       string
	begin, end bool
}

func newFeed(self, home string) *feed {
	return &feed{self: self, home: home, source: home, path: []string{home}}
}

// nodes returns the nodes from which this node takes packets.
func (f *feed) nodes() []string {
	return slices.DeleteFunc([]string{f.source, f.next, f.former}, func(node string) bool { return node == "" })
}

// takes reports whether this node takes packets from a node.
func (f *feed) takes(node string) bool { return slices.Contains(f.nodes(), node) }

// binds reports whether the streams that a node offers are bound. Those of a former source are on their way out.
func (f *feed) binds(node string) bool { return node == f.source || node == f.next }

// pathBy returns the path of the demand at a node, nil at the home while the home has to send the tracks.
func (f *feed) pathBy(node string) []string {
	switch {
	case node == f.home && f.takes(node):
		return nil
	case node == f.next:
		return f.nextPath
	}
	return f.path
}

// assign follows the path that the home has assigned. The path is refused if it contains this node, or if possible is
// not set: there is no trunk to the last node of the path, or this node passes the publication on to a node of the path.
// If this node takes no track at present (nothing), the parent offers no streams.
func (f *feed) assign(path []string, possible, nothing bool, now time.Time) []feedAction {
	parent := path[len(path)-1]
	switch {
	case path[0] != f.home || slices.Contains(path, f.self) || parent != f.home && !possible:
		f.refused = parent
		return f.cancel(feedAction{node: f.home})
	case parent == f.source:
		f.path = path
		return f.cancel(f.report()...)
	case parent == f.next:
		f.nextPath = path
		return []feedAction{{node: parent}}
	}
	actions := f.cancel(feedAction{node: parent, begin: true})
	if parent == f.former {
		f.former = ""
	}
	f.next, f.nextPath, f.deadline = parent, path, now.Add(bindTime)
	if nothing {
		actions = append(actions, f.bound(parent, now)...)
	}
	return actions
}

// cancel ends the demand at next, and returns the actions for that before others.
func (f *feed) cancel(then ...feedAction) (actions []feedAction) {
	if next := f.next; next != "" {
		f.next, f.nextPath = "", nil
		actions = append(actions, f.end(next))
	}
	return append(actions, then...)
}

// end returns the action that ends the demand at a node. The home receives the path instead.
func (f *feed) end(node string) feedAction { return feedAction{node: node, end: node != f.home} }

// report returns the actions that send the path to source and to the home.
func (f *feed) report() []feedAction {
	if f.source == f.home {
		return []feedAction{{node: f.home}}
	}
	return []feedAction{{node: f.source}, {node: f.home}}
}

// bound makes next the source when its streams are bound.
func (f *feed) bound(node string, now time.Time) (actions []feedAction) {
	if f.next == "" || node != f.next {
		return nil
	}
	if f.former != "" {
		actions = append(actions, f.end(f.former))
	}
	f.former, f.drop = f.source, now.Add(overlapTime)
	f.source, f.path, f.refused, f.slow = f.next, f.nextPath, "", time.Time{}
	f.next, f.nextPath = "", nil
	return actions
}

// lost follows the failure of a parent: the node is silent, has no trunk, or does not pass the publication on.
func (f *feed) lost(node string) (actions []feedAction) {
	switch node {
	case f.home, "":
		return nil
	case f.former:
		f.former = ""
		return []feedAction{{node: node, end: true}}
	case f.next:
		f.refused = node
		return f.cancel(feedAction{node: f.home})
	case f.source:
		for _, n := range f.nodes() {
			if n != f.home {
				actions = append(actions, feedAction{node: n, end: true})
			}
		}
		*f = *newFeed(f.self, f.home)
		f.refused = node
		return append(actions, feedAction{node: f.home, begin: true})
	}
	return nil
}

// masked records whether the trunk of a node leaves out tracks.
func (f *feed) masked(node string, masked bool, now time.Time) {
	switch {
	case node != f.source:
	case !masked:
		f.slow = time.Time{}
	case f.slow.IsZero():
		f.slow = now
	}
}

// settled reports whether step has nothing to do while nothing changes.
func (f *feed) settled() bool { return f.next == "" && f.former == "" && f.slow.IsZero() }

// step does what is due.
func (f *feed) step(now time.Time) (actions []feedAction) {
	if f.next != "" && f.next != f.home && !now.Before(f.deadline) {
		actions = append(actions, f.lost(f.next)...)
	}
	if former := f.former; former != "" && !now.Before(f.drop) {
		f.former = ""
		actions = append(actions, f.end(former))
		if former != f.home && f.source != f.home {
			actions = append(actions, feedAction{node: f.home})
		}
	}
	if f.source != f.home && !f.slow.IsZero() && now.Sub(f.slow) >= slowTime {
		actions = append(actions, f.lost(f.source)...)
	}
	return actions
}

// passesOn reports whether a node may pass a publication on by a path to another node: the path ends with the node, and
// neither the path nor that by which the node takes the publication contains the other node.
func passesOn(path []string, node, to string, own []string) bool {
	return len(path) > 0 && path[len(path)-1] == node && !slices.Contains(path, to) && !slices.Contains(own, to) &&
		!slices.Contains(own, node)
}
