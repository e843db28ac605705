package trunk

import (
	"slices"
	"time"
)

const (
	// bindTime is the time within which a parent has to offer the streams of a publication that this node takes:
	// several round trips between regions.
	bindTime = time.Second
	// overlapTime is the time for each trunk of a path within which the packets of a new source arrive: a round trip
	// and the steps of both nodes. After that, former sources end even if the new one has not taken their tracks over.
	overlapTime = 500 * time.Millisecond
	// slowTime is the time for which the trunk of a parent may leave out tracks that the node takes.
	slowTime = 2 * time.Second
)

// feed decides from which node this node takes a publication of another node: from its home, or from the parent that
// the home assigns. The home at once replaces a parent that fails. This node takes from a new parent before it ends its
// demand at the former one, and ends that demand when the packets of the new one have arrived: the ingresses let a
// stream take a track over at a boundary of its frames.
type feed struct {
	self, home string
	// source is the node from which this node takes. path are the nodes from the home to source.
	source string
	path   []string
	// next is a parent that has not offered its streams, empty if there is none. nextPath are the nodes from the home
	// to next. A parent other than the home fails at deadline.
	next     string
	nextPath []string
	deadline time.Time
	// formers are the nodes before source, with their paths, while their packets may still arrive first. The demand
	// at all of them ends at drop at the latest. Each change of source moves drop.
	formers []former
	drop    time.Time
	// refused is the last parent that has failed, until another has offered its streams.
	refused string
	// slow is the time since which the trunk of source leaves out tracks, zero if it leaves out none.
	slow time.Time
	// offerBy is the time by which a parent that is the source without an offer has to offer streams, zero if the
	// parent has offered streams, and while this node takes no track.
	offerBy time.Time
}

// former is a former source. path are the nodes from the home to the node.
type former struct {
	node string
	path []string
}

// feedAction is a consequence of a change of a feed. Begin adds the publication to the trunk to a node, rebind binds
// the streams that the node has offered meanwhile, and end removes the publication. Otherwise the demand and the path
// have to be sent to the node, as with begin and rebind.
type feedAction struct {
	node               string
	begin, rebind, end bool
}

func newFeed(self, home string) *feed {
	return &feed{self: self, home: home, source: home, path: []string{home}}
}

// nodes returns the nodes from which this node takes packets.
func (f *feed) nodes() []string {
	nodes := []string{f.source}
	if f.next != "" {
		nodes = append(nodes, f.next)
	}
	for _, former := range f.formers {
		nodes = append(nodes, former.node)
	}
	return nodes
}

// takes reports whether this node takes packets from a node.
func (f *feed) takes(node string) bool { return slices.Contains(f.nodes(), node) }

// binds reports whether the streams that a node offers are bound. The demand at a former source is about to end.
func (f *feed) binds(node string) bool { return node == f.source || node == f.next }

// pathBy returns the path of the demand at a node, nil at the home while the home has to send the tracks.
func (f *feed) pathBy(node string) []string {
	switch {
	case node == f.home && f.takes(node):
		return nil
	case node == f.next:
		return f.nextPath
	}
	if at := f.formerly(node); at >= 0 {
		return f.formers[at].path
	}
	return f.path
}

// formerly returns the index of a former source, -1 if the node is none.
func (f *feed) formerly(node string) int {
	return slices.IndexFunc(f.formers, func(former former) bool { return former.node == node })
}

// changeSource makes a node the source. The demand at the present source remains until the packets of the node arrive.
func (f *feed) changeSource(node string, path []string, now time.Time) {
	if at := f.formerly(node); at >= 0 {
		f.formers = slices.Delete(f.formers, at, at+1)
	}
	f.formers = append(f.formers, former{f.source, f.path})
	f.source, f.path, f.slow, f.offerBy = node, path, time.Time{}, time.Time{}
	f.drop = now.Add(overlapTime * time.Duration(len(path)))
}

// assign follows the path that the home has assigned. The path is refused if it contains this node, or if possible is
// not set: there is no trunk to the last node of the path, or this node passes the publication on to a node of the
// path. If this node takes no track at present (nothing), the parent offers no streams.
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
	if f.formerly(parent) >= 0 {
		// The parent still has the demand.
		actions := f.cancel()
		f.changeSource(parent, path, now)
		f.refused = ""
		actions = append(actions, feedAction{node: parent, rebind: true})
		if f.source != f.home && !f.takes(f.home) {
			actions = append(actions, feedAction{node: f.home})
		}
		return actions
	}
	actions := f.cancel(feedAction{node: parent, begin: true})
	f.next, f.nextPath, f.deadline = parent, path, now.Add(bindTime)
	if nothing {
		f.bound(parent, now)
	}
	return actions
}

// follow follows the demand of this node, which takes no track if nothing is set. Next becomes the source then, since
// next offers no streams. When this node takes tracks again, the time begins in which a parent that has become the
// source in this way has to offer streams. fresh reports whether this node has no offer of the source.
func (f *feed) follow(nothing bool, fresh func(source string) bool, now time.Time) {
	if nothing {
		f.bound(f.next, now)
	}
	switch {
	case nothing || f.source == f.home || !fresh(f.source):
		f.offerBy = time.Time{}
	case f.offerBy.IsZero():
		f.offerBy = now.Add(bindTime)
	}
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
func (f *feed) bound(node string, now time.Time) {
	if f.next == "" || node != f.next {
		return
	}
	path := f.nextPath
	f.next, f.nextPath, f.refused = "", nil, ""
	f.changeSource(node, path, now)
}

// lost follows the failure of a parent, which is silent or has no trunk.
func (f *feed) lost(node string, now time.Time) []feedAction {
	switch {
	case node == f.home || node == "":
		return nil
	case node == f.next:
		f.refused = node
		return f.cancel(feedAction{node: f.home})
	case node == f.source:
		actions := f.leave(now)
		return append(f.endFormer(node), actions...)
	}
	return f.endFormer(node)
}

// refuse follows a parent that does not pass the publication on. Its last packets may be on their way.
func (f *feed) refuse(node string, now time.Time) []feedAction {
	switch {
	case node == f.home || node == "":
		return nil
	case node == f.source:
		return f.leave(now)
	case node == f.next:
		return f.lost(node, now)
	}
	return nil
}

// leave makes the home the source in place of a parent that has failed. The parent's last packets may be on their way,
// and another parent may be about to offer its streams.
func (f *feed) leave(now time.Time) []feedAction {
	failed, known := f.source, f.takes(f.home)
	if f.next == f.home {
		f.next, f.nextPath = "", nil
	}
	f.changeSource(f.home, []string{f.home}, now)
	f.refused = failed
	return []feedAction{{node: f.home, begin: !known, rebind: known}}
}

// endFormer ends the demand at a former source.
func (f *feed) endFormer(node string) []feedAction {
	at := f.formerly(node)
	if at < 0 {
		return nil
	}
	f.formers = slices.Delete(f.formers, at, at+1)
	return []feedAction{f.end(node)}
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
func (f *feed) settled() bool {
	return f.next == "" && len(f.formers) == 0 && f.slow.IsZero() && f.offerBy.IsZero()
}

// pause extends all time limits by a time for which this node did not run: what has arrived meanwhile was not read.
func (f *feed) pause(d time.Duration) {
	for _, at := range []*time.Time{&f.deadline, &f.drop, &f.slow, &f.offerBy} {
		if !at.IsZero() {
			*at = at.Add(d)
		}
	}
}

// step does what is due. carried reports whether tracks are still bound to the streams of a former source.
func (f *feed) step(now time.Time, carried func(node string) bool) (actions []feedAction) {
	if f.next != "" && f.next != f.home && !now.Before(f.deadline) {
		actions = append(actions, f.lost(f.next, now)...)
	}
	ended := false
	for _, former := range slices.Clone(f.formers) {
		if !now.Before(f.drop) || !carried(former.node) {
			actions = append(actions, f.endFormer(former.node)...)
			ended = true
		}
	}
	if ended && f.source != f.home && !f.takes(f.home) && !slices.Contains(actions, feedAction{node: f.home}) {
		actions = append(actions, feedAction{node: f.home})
	}
	slow := !f.slow.IsZero() && now.Sub(f.slow) >= slowTime
	if f.source != f.home && (slow || !f.offerBy.IsZero() && !now.Before(f.offerBy)) {
		actions = append(actions, f.leave(now)...)
	}
	return actions
}

// passesOn reports whether a node may pass a publication on by a path to another node: the path ends with the node, and
// neither the path nor that by which the node takes the publication contains the other node.
func passesOn(path []string, node, to string, own []string) bool {
	return len(path) > 0 && path[len(path)-1] == node && !slices.Contains(path, to) && !slices.Contains(own, to) &&
		!slices.Contains(own, node)
}
