package duplicator

import (
	"time"

	"github.com/volsfu/volsfu/internal/netfn/paths"
	"github.com/volsfu/volsfu/internal/netfn/trigger"
	"github.com/volsfu/volsfu/internal/netfn/wire"
)

// The parameters of paper 003, section IV-A, and the time for which an identification names one packet (section III-B).
const (
	Window    = 100                  // W, in packets
	tolerance = 5 * time.Millisecond // α
	forgotten = time.Second
)

// Run is one run of Algorithm 1, from the trigger on.
type Run struct {
	// Started is when all paths were enabled.
	Started time.Time
	// Packets is the number of packets of which all copies have arrived.
	Packets int
	// Rewards are the rewards of all paths at the end of each window of packets: N of the listing.
	Rewards [][wire.MaxPaths]int
	// Removed has the number of the packet at which a path left, 0 for paths that stayed.
	Removed [wire.MaxPaths]int
	// Set are the paths that are left.
	Set paths.Set
}

// controller is the paper's controller with the user-space program of the receiver. It is pure: stepped with explicit
// times, and owned by one goroutine at a time.
type controller struct {
	created time.Time
	all     paths.Set
	set     paths.Set // paths of the sender
	trigger trigger.Paper
	paper   *paths.Paper // nil before the first run, and while the set is fixed
	arrived map[uint16]*arrivals
	runs    []Run
}

// arrivals are the arrival times of the copies of a packet, by path.
type arrivals struct {
	first  time.Duration
	times  [wire.MaxPaths]time.Duration
	paths  paths.Set
	judged bool
}

// newController returns the controller of a number of paths. The default path is path 0.
func newController(number int, now time.Time) *controller {
	return &controller{created: now, all: 1<<number - 1, set: 1, arrived: map[uint16]*arrivals{}}
}

// request takes a request for a frame. It reports whether the set has changed.
func (c *controller) request(now time.Time) bool {
	if c.trigger.Request(now.Sub(c.created)) == trigger.Nothing {
		return false
	}
	c.start(now)
	return true
}

// start enables all paths and starts Algorithm 1.
func (c *controller) start(now time.Time) {
	c.set, c.paper = c.all, paths.NewPaper(c.all, Window, tolerance)
	clear(c.arrived)
	c.runs = append(c.runs, Run{Started: now, Set: c.all})
}

// fix sets the paths without Algorithm 1, until the trigger fires.
func (c *controller) fix(set paths.Set) { c.set, c.paper = set, nil }

// running reports whether Algorithm 1 needs the arrival times of copies.
func (c *controller) running() bool { return c.paper != nil && c.set.Len() > 1 }

// sample takes the arrival of a copy, on the receiver's clock. It reports whether the set has changed. A packet of
// which a copy is lost never reaches the algorithm.
func (c *controller) sample(identification uint16, path int, at time.Duration) bool {
	if !c.running() || path >= wire.MaxPaths {
		return false
	}
	a := c.arrived[identification]
	if a == nil || at-a.first >= forgotten {
		a = &arrivals{first: at}
		c.arrived[identification] = a
	}
	a.times[path] = at
	a.paths |= 1 << path
	if a.judged || c.set&^a.paths != 0 {
		return false
	}
	a.judged = true
	return c.judge(a.times)
}

// judge hands the arrival times of a packet to the algorithm, and records the result.
func (c *controller) judge(times [wire.MaxPaths]time.Duration) bool {
	before := c.set
	c.set = c.paper.Packet(times)
	run := &c.runs[len(c.runs)-1]
	run.Packets++
	run.Set = c.set
	for path := range wire.MaxPaths {
		if (before &^ c.set).Has(path) {
			run.Removed[path] = run.Packets
		}
	}
	if run.Packets%Window == 0 {
		var rewards [wire.MaxPaths]int
		for path := range rewards {
			if c.set.Has(path) {
				rewards[path] = c.paper.Reward(path)
			}
		}
		run.Rewards = append(run.Rewards, rewards)
	}
	return c.set != before
}
