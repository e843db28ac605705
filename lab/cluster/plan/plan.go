package plan

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// ErrPlan is wrapped with the invalid value and the expected one.
var ErrPlan = errors.New("invalid plan")

// Quality is one quality of each object.
type Quality struct {
	// Rate is the rate of an object with all its tiles, in bit/s of frames.
	Rate float64 `json:"rate_bps"`
	// Share is the share of the receivers that get this quality of a tile. The shares of all qualities make 1.
	Share float64 `json:"share"`
}

// Plan describes the use of a cluster and its nodes.
type Plan struct {
	// Rooms have Participants each, which publish one object and receive, and Viewers, which only receive.
	Rooms        int `json:"rooms"`
	Participants int `json:"participants"`
	Viewers      int `json:"viewers"`
	// Watched is the number of objects that each of them receives; 0 is all objects of others.
	Watched   int       `json:"watched"`
	Tiles     int       `json:"tiles"`
	Qualities []Quality `json:"qualities"`
	// Seen is the share of an object's tiles that a receiver gets.
	Seen float64 `json:"seen"`
	// Poses is the number of poses per second of each object.
	Poses float64 `json:"poses_per_second"`
	// Stay is the time for which a participant stays in a room.
	Stay time.Duration `json:"stay_ns"`

	Nodes int `json:"nodes"`
	// Regions are the shares of the participants by region.
	Regions []float64 `json:"regions"`
	// Spilled is the share of the rooms that span two nodes in each region. Anywhere places each participant on a
	// random node, as a cluster without placement would.
	Spilled  float64 `json:"spilled"`
	Anywhere bool    `json:"anywhere"`
	// FanOut is the maximum number of copies of an object that its origin sends; the others are passed on by nodes that
	// have a copy. 0 is no limit.
	FanOut int `json:"fanout"`

	// Link is the rate of a node's network in one direction, in bit/s, Cores the number of its processor cores, and Use
	// the share of both that is planned with.
	Link  float64 `json:"link_bps"`
	Cores int     `json:"cores"`
	Use   float64 `json:"use"`
}

// Default returns the plan of the command without flags.
func Default() Plan {
	return Plan{
		Rooms: 100, Participants: 10, Tiles: 15, Seen: 1, Stay: 30 * time.Minute,
		Qualities: []Quality{{1.25e6, 0.2}, {2.5e6, 0.3}, {5e6, 0.5}},
		Nodes:     3, Regions: []float64{1}, Link: 25e9, Cores: 16, Use: 0.6,
	}
}

// Validate reports the first invalid value.
func (p *Plan) Validate() error {
	for _, n := range []struct {
		name       string
		value, low int
	}{
		{"rooms", p.Rooms, 1}, {"participants", p.Participants, 1}, {"viewers", p.Viewers, 0},
		{"watched", p.Watched, 0}, {"tiles", p.Tiles, 1}, {"nodes", p.Nodes, 1}, {"fanout", p.FanOut, 0},
		{"cores", p.Cores, 1},
	} {
		if n.value < n.low {
			return fmt.Errorf("%w: %s is %d, expected at least %d", ErrPlan, n.name, n.value, n.low)
		}
	}
	for _, s := range []struct {
		name  string
		value float64
	}{{"seen", p.Seen}, {"use", p.Use}} {
		if !(s.value > 0 && s.value <= 1) {
			return fmt.Errorf("%w: %s is %g, expected a share above 0 and up to 1", ErrPlan, s.name, s.value)
		}
	}
	switch {
	case !(p.Spilled >= 0 && p.Spilled <= 1):
		return fmt.Errorf("%w: spilled is %g, expected a share from 0 to 1", ErrPlan, p.Spilled)
	case !(p.Link > 0):
		return fmt.Errorf("%w: link is %g bit/s, expected a rate above 0", ErrPlan, p.Link)
	case !(p.Poses >= 0):
		return fmt.Errorf("%w: poses is %g per second, expected 0 or more", ErrPlan, p.Poses)
	case p.Stay <= 0:
		return fmt.Errorf("%w: stay is %v, expected a duration above 0", ErrPlan, p.Stay)
	case len(p.Regions) > p.Nodes:
		return fmt.Errorf("%w: %d regions with %d nodes, expected a node for each region", ErrPlan, len(p.Regions),
			p.Nodes)
	}
	rates, shares := make([]float64, len(p.Qualities)), make([]float64, len(p.Qualities))
	for i, q := range p.Qualities {
		rates[i], shares[i] = q.Rate, q.Share
		if !(q.Rate > 0) {
			return fmt.Errorf("%w: the rate of quality %d is %g bit/s, expected a rate above 0", ErrPlan, i, q.Rate)
		}
	}
	if err := makeOne("qualities", shares); err != nil {
		return err
	}
	return makeOne("regions", p.Regions)
}

// makeOne returns an error unless shares make 1.
func makeOne(name string, shares []float64) error {
	sum := 0.0
	for _, share := range shares {
		if !(share >= 0) {
			return fmt.Errorf("%w: a share of %s is %g, expected 0 to 1", ErrPlan, name, share)
		}
		sum += share
	}
	if !(math.Abs(sum-1) < 1e-6) {
		return fmt.Errorf("%w: the shares of %s make %g, expected 1", ErrPlan, name, sum)
	}
	return nil
}

// Figures of single packets and messages. docs/cluster.md has their sources.
const (
	// fragment is the data of a packet, overhead what is added to it on the wire, in bytes: the descriptor (16), RTP
	// with an extension (20), the tag of SRTP (16), UDP (8) and IPv4 (20).
	fragment = 1144
	overhead = 80
	// forwardCost is the processor time for a packet to a client, with the share of receiving it. relayCost is the time
	// for a packet between nodes at both of them.
	forwardCost = 2650 * time.Nanosecond
	relayCost   = 1.5 * 2340 * time.Nanosecond
	// offerCost is the time to set up the peer connection of a client with offerLines lines.
	offerCost  = 21 * time.Millisecond
	offerLines = 300
	// beatRate is the number of beats per second.
	beatRate = 5
	// spillAt is the share of its capacity above which a node takes no more joins.
	spillAt = 0.85
)

// Result has the needs of a plan. Rates are in bit/s on the wire.
type Result struct {
	Room    RoomResult    `json:"room"`
	Cluster ClusterResult `json:"cluster"`
	Node    NodeResult    `json:"node"`
	State   StateResult   `json:"state"`
	Failure FailureResult `json:"failure"`
}

// RoomResult describes one room. The rates are those of frames, without headers.
type RoomResult struct {
	// Up is the rate from all publishers, Down that to all receivers, Trunk that between nodes.
	Up    float64 `json:"up_bps"`
	Down  float64 `json:"down_bps"`
	Trunk float64 `json:"trunk_bps"`
	// Nodes is the mean number of nodes that a room spans.
	Nodes float64 `json:"nodes"`
	// Copies is the mean number of copies of an object to other nodes, Sent the number that the origin sends itself,
	// and Hops the number of trunks to the farthest node.
	Copies float64 `json:"copies"`
	Sent   float64 `json:"copies_from_origin"`
	Hops   int     `json:"hops"`
}

// ClusterResult describes all nodes together.
type ClusterResult struct {
	Participants int     `json:"participants"`
	Up           float64 `json:"up_bps"`
	Down         float64 `json:"down_bps"`
	Trunk        float64 `json:"trunk_bps"`
	// Cores is the processor time per second. NodesByLink and NodesByCores are the least numbers of nodes.
	Cores        float64 `json:"cores"`
	NodesByLink  int     `json:"nodes_by_link"`
	NodesByCores int     `json:"nodes_by_cores"`
}

// NodeResult describes the mean node.
type NodeResult struct {
	Participants float64 `json:"participants"`
	// Egress and Ingress are the rates of clients and trunks together, Trunk is the share of trunks in one direction.
	Egress  float64 `json:"egress_bps"`
	Ingress float64 `json:"ingress_bps"`
	Trunk   float64 `json:"trunk_bps"`
	Packets float64 `json:"packets_per_second"`
	// Link and Cores are the used shares.
	Link  float64 `json:"link"`
	Cores float64 `json:"cores"`
}

// StateResult describes the messages between nodes besides media.
type StateResult struct {
	// BeatBytes, JoinBytes and SnapshotBytes are the lengths of a beat with the changes of a second, of a join with its
	// publication, and of a room for a node that enters it.
	BeatBytes     int `json:"beat_bytes"`
	JoinBytes     int `json:"join_bytes"`
	SnapshotBytes int `json:"snapshot_bytes"`
	// Beats and Changes are the messages per second that a node receives, Rate their rate in bit/s. Poses are the poses
	// per second that a node receives on trunks.
	Beats   float64 `json:"beats_per_second"`
	Changes float64 `json:"changes_per_second"`
	Rate    float64 `json:"rate_bps"`
	Poses   float64 `json:"poses_per_second"`
}

// FailureResult describes the other nodes after the death of one.
type FailureResult struct {
	// Link and Cores are the used shares. Setup is the processor time of a node for the clients that it takes over,
	// divided by its cores. All are 0 if there is no other node.
	Link  float64       `json:"link"`
	Cores float64       `json:"cores"`
	Setup time.Duration `json:"setup_ns"`
}

// part is a kind of node in a room: the mean number of such nodes, and the participants on each of them.
type part struct{ weight, size float64 }

// Compute returns the needs of a plan. Errors wrap ErrPlan.
func Compute(p Plan) (Result, error) {
	if err := p.Validate(); err != nil {
		return Result{}, err
	}
	var r Result
	p.room(&r.Room)
	rooms, nodes := float64(p.Rooms), float64(p.Nodes)
	wire := func(rate float64) float64 { return rate * (fragment + overhead) / fragment }
	packets := func(rate float64) float64 { return rate / 8 / fragment }
	people := p.Rooms * (p.Participants + p.Viewers)
	c := &r.Cluster
	*c = ClusterResult{Participants: people, Up: wire(rooms * r.Room.Up), Down: wire(rooms * r.Room.Down),
		Trunk: wire(rooms * r.Room.Trunk)}
	c.Cores = packets(rooms*r.Room.Down)*forwardCost.Seconds() + packets(rooms*r.Room.Trunk)*relayCost.Seconds()
	c.NodesByLink = int(math.Ceil(max(c.Down, c.Up)/(p.Link*p.Use) + c.Trunk/(p.Link*p.Use)))
	c.NodesByCores = int(math.Ceil(c.Cores / (float64(p.Cores) * p.Use)))
	n := &r.Node
	*n = NodeResult{Participants: float64(people) / nodes, Egress: (c.Down + c.Trunk) / nodes,
		Ingress: (c.Up + c.Trunk) / nodes, Trunk: c.Trunk / nodes,
		Packets: packets(rooms*(r.Room.Down+r.Room.Up+2*r.Room.Trunk)) / nodes}
	n.Link, n.Cores = max(n.Egress, n.Ingress)/p.Link, c.Cores/nodes/float64(p.Cores)
	state, err := p.state(r.Room.Nodes)
	if err != nil {
		return Result{}, err
	}
	r.State = state
	if p.Nodes > 1 {
		more := nodes / (nodes - 1)
		lines := p.watching() * float64(p.watchable()*p.Tiles)
		setup := n.Participants / (nodes - 1) * offerCost.Seconds() * lines / offerLines / float64(p.Cores)
		r.Failure = FailureResult{Link: n.Link * more, Cores: n.Cores * more,
			Setup: time.Duration(setup * float64(time.Second))}
	}
	return r, nil
}

// watchable is the number of objects that a participant may receive.
func (p *Plan) watchable() int { return max(p.Participants-1, 1) }

// watching is the share of these objects that a participant receives.
func (p *Plan) watching() float64 {
	if p.Watched == 0 {
		return 1
	}
	return min(1, float64(p.Watched)/float64(p.watchable()))
}

// copyRate is the rate of an object at all qualities of its tiles that at least one of some receivers gets.
func (p *Plan) copyRate(receivers float64) float64 {
	rate := 0.0
	for _, q := range p.Qualities {
		rate += q.Rate * (1 - math.Pow(1-p.watching()*p.Seen*q.Share, receivers))
	}
	return rate
}

// room sets the result for one room.
func (p *Plan) room(r *RoomResult) {
	publishers, viewers := float64(p.Participants), float64(p.Viewers)
	all := publishers + viewers
	mean := 0.0
	for _, q := range p.Qualities {
		mean += q.Rate * q.Share
	}
	r.Up = publishers * p.copyRate(all-1)
	r.Down = (publishers*(publishers-1) + viewers*publishers) * p.watching() * p.Seen * mean
	for _, part := range p.parts(r.Down / max(all, 1)) {
		abroad := 1 - part.size/all
		r.Nodes += part.weight
		r.Copies += part.weight * abroad
		r.Trunk += part.weight * publishers * abroad * p.copyRate(part.size)
	}
	r.Sent = r.Copies
	if r.Copies > 0.005 {
		r.Hops = 1
	}
	if p.FanOut > 0 && r.Copies > float64(p.FanOut) {
		r.Sent = float64(p.FanOut)
		reached, level := r.Sent, r.Sent
		for ; reached < r.Copies; r.Hops++ {
			level *= r.Sent
			reached += level
		}
	}
}

// parts returns the nodes of a room. down is the mean rate to one receiver, in bit/s of frames. A region in which a
// node cannot carry its participants uses several nodes.
func (p *Plan) parts(down float64) []part {
	all := float64(p.Participants + p.Viewers)
	// present is the probability that a place with a share of the participants has at least one of them.
	present := func(share float64) float64 { return 1 - math.Pow(1-share, all) }
	if p.Anywhere {
		share := 1 / float64(p.Nodes)
		at := present(share)
		return []part{{float64(p.Nodes) * at, all * share / at}}
	}
	var parts []part
	wire := down * (fragment + overhead) / fragment
	for _, share := range p.Regions {
		if share == 0 {
			continue
		}
		at := present(share)
		size := all * share / at
		span := max(1, math.Ceil(size*wire/(p.Link*spillAt)))
		span = min(span, math.Max(1, math.Floor(float64(p.Nodes)*share)))
		parts = append(parts, part{at * (1 - p.Spilled) * span, size / span})
		if p.Spilled > 0 {
			span = max(span, 2)
			parts = append(parts, part{at * p.Spilled * span, size / span})
		}
	}
	return parts
}
