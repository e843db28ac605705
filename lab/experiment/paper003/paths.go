package paper003

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab/topology"
)

// Hosts of the network.
const (
	HostServer = "server"
	HostViewer = "viewer"
)

// pathQuality is a row of table I. The delay is that of one direction.
type pathQuality struct {
	rateBPS int
	delay   time.Duration
	loss    float64
	// varies is the range of the delay during the variation.
	varies [2]time.Duration
}

// tableOne has the paths of table I. The first is the default path.
var tableOne = []pathQuality{
	{400e6, 20 * time.Millisecond, 0.0005, [2]time.Duration{20 * time.Millisecond, 70 * time.Millisecond}},
	{400e6, 30 * time.Millisecond, 0.0005, [2]time.Duration{30 * time.Millisecond, 35 * time.Millisecond}},
	{150e6, 100 * time.Millisecond, 0.0005, [2]time.Duration{100 * time.Millisecond, 110 * time.Millisecond}},
	{50e6, 100 * time.Millisecond, 0.0005, [2]time.Duration{100 * time.Millisecond, 110 * time.Millisecond}},
	{50e6, 30 * time.Millisecond, 0, [2]time.Duration{30 * time.Millisecond, 35 * time.Millisecond}},
}

// The kinds of variation. The paper does not contain how its delays vary within their ranges.
const (
	// VariationPacket draws the delay of each packet independently and uniformly, as the emulator of the paper's
	// testbed does, so that packets overtake each other.
	VariationPacket = "packet"
	// VariationDrift changes the delay every driftStep by a random walk that returns to the middle of the range within
	// about driftTime, and packets stay in order.
	VariationDrift = "drift"
)

const (
	driftStep = 50 * time.Millisecond
	driftTime = time.Second
)

// queueDelay is the depth of each path's queue: the paper does not contain it. 50 ms is common for routers.
const queueDelay = 50 * time.Millisecond

// Variation is a time in which the delays of all paths vary within their ranges.
type Variation struct {
	// Kind is VariationPacket or VariationDrift.
	Kind string
	// Begin and End count from the restart of the network.
	Begin, End time.Duration
}

// Layout returns the network of table I, in which delays vary at the given times, in order.
func Layout(varying []Variation, seed uint64) *topology.Topology {
	t := &topology.Topology{
		Hosts:    map[string]topology.Host{HostServer: {}, HostViewer: anyInterface()},
		Links:    make(map[string]topology.Link),
		Ethernet: true,
		Seed:     seed,
	}
	for i := range tableOne {
		name := fmt.Sprintf("path%d", i+1)
		t.Links[name] = topology.Link{
			Forth: tableOne[i].direction(varying, rand.New(rand.NewPCG(seed, uint64(2*i)))),
			Back:  tableOne[i].direction(varying, rand.New(rand.NewPCG(seed, uint64(2*i+1)))),
		}
		t.Paths = append(t.Paths, topology.Path{From: HostServer, To: HostViewer,
			Through: []topology.Passage{{Link: name}}})
	}
	return t
}

// anyInterface returns a host that accepts packets of one source on every path: the paper's copies have the addresses
// of the first. Edges of volnet set this themselves.
func anyInterface() topology.Host {
	const loose = "2" // of rp_filter
	h := topology.Host{Sysctls: make(map[string]string)}
	for i := range tableOne {
		h.Sysctls["net.ipv4.conf."+topology.InterfaceName(i)+".rp_filter"] = loose
	}
	return h
}

// direction returns one direction of a path.
func (p *pathQuality) direction(varying []Variation, random *rand.Rand) topology.Direction {
	quiet := netem.DefaultConfig()
	quiet.RateBPS, quiet.Delay, quiet.Loss, quiet.QueueDelay = p.rateBPS, p.delay, p.loss, queueDelay
	d := topology.Direction{Config: quiet}
	for _, v := range varying {
		d.Schedule = append(append(d.Schedule, p.vary(v, quiet, random)...), topology.Change{At: v.End, Config: quiet})
	}
	return d
}

// vary returns the changes of one variation, from a quiet path.
func (p *pathQuality) vary(v Variation, c netem.Config, random *rand.Rand) (changes []topology.Change) {
	middle, half := (p.varies[0]+p.varies[1])/2, (p.varies[1]-p.varies[0])/2
	if v.Kind == VariationPacket {
		c.Delay, c.Jitter = middle, half
		c.JitterDistribution, c.JitterReorders = netem.JitterUniform, true
		return []topology.Change{{At: v.Begin, Config: c}}
	}
	// The walk is a process of order 1: x' = a·x + noise, with a = 1 - step/time and noise such that x has a standard
	// deviation of half the range; values beyond the range are the range's end.
	const keep = 1 - float64(driftStep)/float64(driftTime)
	x := 0.0
	for at := v.Begin; at < v.End; at += driftStep {
		x = keep*x + math.Sqrt(1-keep*keep)*random.NormFloat64()
		c.Delay = middle + time.Duration(min(max(x, -1), 1)*float64(half))
		changes = append(changes, topology.Change{At: at, Config: c})
	}
	return changes
}
