package duplicator

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/netfn/paths"
)

const ms = time.Millisecond

// started returns the controller of three paths after three late intervals between requests.
func started(t *testing.T) *controller {
	t.Helper()
	now := time.Now()
	c := newController(3, now)
	for i, changed := range []bool{false, false, false, true} {
		if got := c.request(now.Add(time.Duration(i) * 151 * ms)); got != changed {
			t.Fatalf("request %d: the set has changed: %v, expected %v", i+1, got, changed)
		}
	}
	if c.set != 7 || !c.running() {
		t.Fatalf("the set is %v, expected all three paths", c.set)
	}
	return c
}

// packet delivers the copies of a packet on the paths of the controller's set, with delays by path.
func (c *controller) packet(identification int, sent time.Duration, delays ...time.Duration) {
	set := c.set
	for path, delay := range delays {
		if set.Has(path) {
			c.sample(uint16(identification), path, sent+delay)
		}
	}
}

// TestRequestsInTime: intervals of 150 ms do not start copies.
func TestRequestsInTime(t *testing.T) {
	now := time.Now()
	c := newController(3, now)
	for i := range 10 {
		c.request(now.Add(time.Duration(i) * 150 * ms))
	}
	if c.set != 1 || c.running() || len(c.runs) != 0 {
		t.Errorf("the set is %v after %d starts, expected the default path", c.set, len(c.runs))
	}
}

// TestElimination: a path that is never within 5 ms of the fastest copy leaves with packet 101, and when one path has
// been in time for a window, it is the only one.
func TestElimination(t *testing.T) {
	c := started(t)
	n := 0
	for ; n < 250; n++ {
		// Each of the first two paths is late now and then.
		first, second := 20*ms, 20*ms
		switch n % 10 {
		case 0:
			first += 30 * ms
		case 5:
			second += 30 * ms
		}
		c.packet(n, time.Duration(n)*ms, first, second, 100*ms)
	}
	run := &c.runs[0]
	if c.set != 3 || run.Set != 3 || run.Removed != [8]int{2: 101} || run.Packets != 250 {
		t.Fatalf("after 250 packets: %+v, expected that path 3 left with packet 101", run)
	}
	if want := [][8]int{{90, 90, 0}, {90, 90, 0}}; len(run.Rewards) != 2 || run.Rewards[0] != want[0] ||
		run.Rewards[1] != want[1] {
		t.Errorf("the rewards are %v, expected %v", run.Rewards, want)
	}
	for ; n < 400; n++ {
		c.packet(n, time.Duration(n)*ms, 50*ms, 20*ms, 100*ms)
	}
	if c.set != 2 || c.running() || run.Removed[0] == 0 {
		t.Errorf("the set is %v, expected path 2 alone: %+v", c.set, run)
	}
	packets := run.Packets
	c.packet(n, time.Duration(n)*ms, 20*ms, 20*ms)
	if run.Packets != packets {
		t.Error("the algorithm goes on with one path")
	}
	c.start(time.Now())
	if c.set != 7 || len(c.runs) != 2 {
		t.Errorf("the set is %v after %d starts, expected all paths again", c.set, len(c.runs))
	}
}

// TestIncomplete: a packet of which a copy is lost does not count, and an identification names another packet after a
// second.
func TestIncomplete(t *testing.T) {
	c := started(t)
	c.sample(1, 0, 20*ms)
	c.sample(1, 1, 21*ms)
	c.sample(1, 2, 1020*ms) // the copy of another packet
	c.sample(1, 9, 1020*ms) // no path
	if got := c.runs[0].Packets; got != 0 {
		t.Errorf("%d packets are complete, expected none", got)
	}
	c.sample(1, 0, 1021*ms)
	c.sample(1, 1, 1022*ms)
	c.sample(1, 1, 1023*ms) // repeated by the network
	if got := c.runs[0].Packets; got != 1 {
		t.Errorf("%d packets are complete, expected one", got)
	}
}

// TestFix: a fixed set ends a run until the trigger fires.
func TestFix(t *testing.T) {
	c := started(t)
	c.fix(paths.Set(5))
	c.packet(1, 0, 20*ms, 20*ms, 20*ms)
	if c.set != 5 || c.running() || c.runs[0].Packets != 0 {
		t.Errorf("the set is %v, running %v, expected paths 1 and 3 without the algorithm", c.set, c.running())
	}
}
