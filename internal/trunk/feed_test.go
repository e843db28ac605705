package trunk

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
)

// describe returns actions as text: "+two" begins at two, "*two" binds its streams again, "-two" ends, "two" sends the
// demand.
func describe(actions []feedAction) string {
	words := make([]string, len(actions))
	for i, a := range actions {
		switch {
		case a.begin:
			words[i] = "+" + a.node
		case a.rebind:
			words[i] = "*" + a.node
		case a.end:
			words[i] = "-" + a.node
		default:
			words[i] = a.node
		}
	}
	return strings.Join(words, " ")
}

// feeding is a feed of node self in virtual time.
type feeding struct {
	t   *testing.T
	now time.Time
	*feed
}

func startFeeding(t *testing.T) *feeding { return &feeding{t, start, newFeed("self", "home")} }

func (f *feeding) expect(actions []feedAction, want string) {
	f.t.Helper()
	if got := describe(actions); got != want {
		f.t.Errorf("the actions are %q, expected %q", got, want)
	}
}

// after steps the feed after a time. The packets of a former source still arrive first if its name is in carried.
func (f *feeding) after(d time.Duration, carried ...string) []feedAction {
	f.now = f.now.Add(d)
	return f.step(f.now, func(node string) bool { return slices.Contains(carried, node) })
}

// takeFrom makes a parent the source.
func (f *feeding) takeFrom(parent string) {
	f.t.Helper()
	f.expect(f.assign([]string{"home", parent}, true, false, f.now), "+"+parent)
	f.bound(parent, f.now)
	f.expect(f.after(overlapTime, "home"), "")
	f.expect(f.after(0), "home")
	if f.source != parent || !f.settled() {
		f.t.Fatalf("the feed is %+v", f.feed)
	}
}

// TestFeedChangesParents takes from a parent and then from another one. The demand at the former one ends after an
// overlap, and the home learns of the path.
func TestFeedChangesParents(t *testing.T) {
	f := startFeeding(t)
	f.takeFrom("two")
	f.expect(f.assign([]string{"home", "three", "four"}, true, false, f.now), "+four")
	f.expect(f.after(bindTime/2), "")
	if !f.takes("two") || !f.binds("four") || f.binds("home") {
		t.Errorf("the feed is %+v", f.feed)
	}
	f.bound("four", f.now)
	f.expect(f.after(0, "two"), "")
	if want := []string{"home", "two"}; !slices.Equal(f.pathBy("two"), want) {
		t.Errorf("the path of the demand at the former parent is %v, expected %v", f.pathBy("two"), want)
	}
	f.expect(f.after(overlapTime), "-two home")
	if want := []string{"home", "three", "four"}; !slices.Equal(f.pathBy("home"), want) {
		t.Errorf("the path is %v, expected %v", f.pathBy("home"), want)
	}
	f.expect(f.assign([]string{"home", "five", "four"}, true, false, f.now), "four home")
	f.expect(f.assign([]string{"home"}, true, false, f.now), "+home")
	f.bound("home", f.now)
	f.expect(f.after(overlapTime), "-four")
	if f.pathBy("home") != nil || !f.settled() {
		t.Errorf("the feed is %+v", f.feed)
	}
}

// TestFeedRefuses refuses paths that contain this node, that do not begin at the home, and that cannot be followed. The
// present parent remains.
func TestFeedRefuses(t *testing.T) {
	f := startFeeding(t)
	f.takeFrom("two")
	for _, c := range []struct {
		path     []string
		possible bool
	}{
		{[]string{"home", "self", "three"}, true},
		{[]string{"other", "three"}, true},
		{[]string{"home", "three"}, false},
	} {
		f.expect(f.assign(c.path, c.possible, false, f.now), "home")
		if f.refused != "three" || f.source != "two" || f.next != "" {
			t.Errorf("after path %v the feed is %+v", c.path, f.feed)
		}
	}
}

// TestFeedReturnsHome takes from the home again when a parent fails, offers no streams in time, or leaves out tracks.
func TestFeedReturnsHome(t *testing.T) {
	f := startFeeding(t)
	f.takeFrom("two")
	f.expect(f.lost("three", f.now), "")
	f.expect(f.lost("home", f.now), "")
	f.expect(f.lost("two", f.now), "-two +home")
	if f.refused != "two" || f.source != "home" {
		t.Errorf("the feed is %+v", f.feed)
	}

	f.expect(f.assign([]string{"home", "three"}, true, false, f.now), "+three")
	f.expect(f.after(bindTime), "-three home")
	if f.refused != "three" || f.source != "home" {
		t.Errorf("the feed is %+v", f.feed)
	}

	f.takeFrom("four")
	f.masked("four", true, f.now)
	f.expect(f.after(slowTime/2), "")
	f.masked("four", true, f.now)
	f.masked("home", false, f.now)
	f.expect(f.after(slowTime/2), "+home")
	f.expect(f.after(0, "four"), "")
	f.expect(f.after(0), "-four")

	f.takeFrom("five")
	f.masked("five", true, f.now)
	f.masked("five", false, f.now)
	f.expect(f.after(slowTime), "")
}

// TestFeedWithoutTracks follows a parent at once while this node takes no track: the parent offers no streams.
func TestFeedWithoutTracks(t *testing.T) {
	f := startFeeding(t)
	f.expect(f.assign([]string{"home", "two"}, true, true, f.now), "+two")
	f.expect(f.after(0), "home")
	if f.source != "two" || !f.settled() {
		t.Errorf("the feed is %+v", f.feed)
	}

	f.expect(f.assign([]string{"home", "two", "three"}, true, false, f.now), "+three")
	f.follow(true, noOffer, f.now)
	f.expect(f.after(bindTime), "-two home")
	if f.source != "three" || f.refused != "" || !f.settled() {
		t.Errorf("the feed is %+v", f.feed)
	}
}

// noOffer and anOffer are the states of a source that has not offered streams, and of one that has.
func noOffer(string) bool { return true }
func anOffer(string) bool { return false }

// TestFeedWithoutOffer takes from a parent that became the source while this node took no track. When the node takes
// tracks again, the parent has to offer streams in time.
func TestFeedWithoutOffer(t *testing.T) {
	f := startFeeding(t)
	f.expect(f.assign([]string{"home", "two"}, true, true, f.now), "+two")
	f.follow(true, noOffer, f.now)
	f.expect(f.after(2*bindTime), "home")
	f.follow(false, noOffer, f.now)
	f.expect(f.after(bindTime-1), "")
	f.follow(true, noOffer, f.now)
	if !f.settled() {
		t.Errorf("without tracks the feed is %+v", f.feed)
	}
	f.follow(false, noOffer, f.now)
	f.expect(f.after(bindTime-1), "")
	f.follow(false, anOffer, f.now)
	if f.expect(f.after(bindTime), ""); f.source != "two" || !f.settled() {
		t.Errorf("after an offer the feed is %+v", f.feed)
	}

	f.follow(false, noOffer, f.now)
	f.follow(false, noOffer, f.now.Add(bindTime/2))
	if f.settled() {
		t.Errorf("before an offer the feed is %+v", f.feed)
	}
	f.expect(f.after(bindTime), "+home")
	f.follow(false, noOffer, f.now)
	f.expect(f.after(0), "-two")
	if f.source != "home" || f.refused != "two" || !f.settled() {
		t.Errorf("without an offer the feed is %+v", f.feed)
	}
}

// TestFeedOverlaps keeps the demand at former sources while their packets arrive first, and for no longer than
// overlapTime for each trunk of the new path. A former source that is assigned again has the demand.
func TestFeedOverlaps(t *testing.T) {
	f := startFeeding(t)
	f.takeFrom("two")
	f.expect(f.assign([]string{"home", "three", "four"}, true, false, f.now), "+four")
	f.bound("four", f.now)
	f.expect(f.assign([]string{"home", "five"}, true, false, f.now), "+five")
	f.bound("five", f.now)
	f.expect(f.after(0, "two"), "-four home")
	f.expect(f.after(2*overlapTime, "two"), "-two home")

	f.expect(f.assign([]string{"home", "three", "four"}, true, false, f.now), "+four")
	f.bound("four", f.now)
	f.expect(f.after(overlapTime, "five"), "")
	f.expect(f.assign([]string{"home", "five"}, true, false, f.now), "*five home")
	f.expect(f.after(0), "-four home")
	if f.source != "five" || !f.settled() {
		t.Errorf("the feed is %+v", f.feed)
	}

	f.expect(f.assign([]string{"home"}, true, false, f.now), "+home")
	f.bound("home", f.now)
	f.expect(f.assign([]string{"home", "five"}, true, false, f.now), "*five")
	f.expect(f.assign([]string{"home", "two"}, true, false, f.now), "+two")
	f.expect(f.lost("five", f.now), "-five *home")
	if f.next != "two" || f.pathBy("home") != nil {
		t.Errorf("the feed is %+v", f.feed)
	}
	f.bound("two", f.now)
	f.expect(f.after(0), "home")
}

// TestFeedWithoutParent takes from the home when the parent does not pass the publication on. What the parent has sent
// before still arrives.
func TestFeedWithoutParent(t *testing.T) {
	f := startFeeding(t)
	f.takeFrom("two")
	f.expect(f.refuse("three", f.now), "")
	f.expect(f.refuse("home", f.now), "")
	f.expect(f.refuse("two", f.now), "+home")
	f.expect(f.after(overlapTime/2, "two"), "")
	f.expect(f.after(overlapTime/2, "two"), "-two")
	if f.refused != "two" || f.source != "home" || !f.settled() {
		t.Errorf("the feed is %+v", f.feed)
	}
}

// TestFeedPauses lets this node pause. The time counts neither for a parent that offers streams or leaves out tracks,
// nor for the packets of a former source.
func TestFeedPauses(t *testing.T) {
	f := startFeeding(t)
	pause := func() {
		const pause = time.Minute
		f.now = f.now.Add(pause)
		f.pause(pause)
	}
	f.expect(f.assign([]string{"home", "two"}, true, false, f.now), "+two")
	pause()
	f.expect(f.after(bindTime-1), "")
	f.bound("two", f.now)
	pause()
	f.expect(f.after(2*overlapTime-1, "home"), "")
	f.expect(f.after(1, "home"), "home")
	f.masked("two", true, f.now)
	pause()
	f.expect(f.after(slowTime-1), "")
	f.expect(f.after(1), "+home")
}

// TestHostPauses steps a host that is to take from a parent. The time between two steps that are far apart is a pause.
func TestHostPauses(t *testing.T) {
	n := newAuthority().start(t, "self", options{})
	mirrorAt(n, "home", 1, 1)
	takeAt(n, "home", allocate.Qualities(0))
	n.do(func(h *Host) {
		m, now := h.catalog.mirror("home", publicationOf(room, ref, id)), h.now
		h.feedFrom(m, m.feed.assign([]string{"home", "two"}, true, false, now))
		const pause = 2 * bindTime
		h.Step(now.Add(pause))
		if m.feed.next != "two" {
			t.Error("a pause of this node counts as the failure of a parent")
		}
		for at := time.Duration(0); at <= bindTime; at += tickInterval {
			h.Step(now.Add(pause + at))
		}
		if m.feed.next != "" || m.feed.refused != "two" {
			t.Errorf("the parent offers no streams, but the feed is %+v", m.feed)
		}
	})
}

// TestPassesOn checks the paths by which a node passes a publication on.
func TestPassesOn(t *testing.T) {
	for _, c := range []struct {
		path, own []string
		want      bool
	}{
		{[]string{"home", "self"}, []string{"home"}, true},
		{[]string{"home", "two", "self"}, []string{"home", "two"}, true},
		{[]string{"home", "two"}, []string{"home"}, false},
		{nil, []string{"home"}, false},
		{[]string{"home", "child", "self"}, []string{"home"}, false},
		{[]string{"home", "self"}, []string{"home", "child"}, false},
	} {
		if got := passesOn(c.path, "self", "child", c.own); got != c.want {
			t.Errorf("path %v, own path %v: %t, expected %t", c.path, c.own, got, c.want)
		}
	}
}
