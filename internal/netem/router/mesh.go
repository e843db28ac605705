package router

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/internal/netem/agenda"
)

// Mesh moves packets over the wires of their routes. It is stepped with an explicit now and has neither goroutine nor
// lock; the frequency of steps changes neither which packets arrive nor when. Times must not decrease.
type Mesh struct {
	wires   []*wire
	routes  [][]int // wires by route
	pending agenda.Agenda[*wire]
	arrived []*netem.Packet
}

// wire is a link with its schedule, and its place in the agenda of next events.
type wire struct {
	agenda.Place
	plan   *Wire
	link   *netem.Link
	fair   bool          // the queue may reorder packets
	late   time.Duration // lateness of the packet that began the current busy period
	waited netem.DelayCounts
	// classes counts the packets that have arrived, by class. Their drops are unknown.
	classes Classes
	capable bool // a packet was ECN-capable

	round  time.Time // start of the current round of the schedule
	change int       // index of the next change; after the last one comes the next round, if there is one
}

// NewMesh returns the links of a plan, which start at now. The error is that of netem.NewLink or Link.SetRate, with the
// wire's name.
func NewMesh(plan *Plan, now time.Time) (*Mesh, error) {
	m := &Mesh{}
	for i := range plan.Wires {
		w := &wire{plan: &plan.Wires[i]}
		var err error
		if w.link, err = netem.NewLink(w.plan.Config, plan.Seed^nameHash(w.plan.Name), nil); err != nil {
			return nil, fmt.Errorf("%s: %w", w.plan.Name, err)
		}
		if err := w.begin(now); err != nil {
			return nil, err
		}
		m.wires = append(m.wires, w)
		m.schedule(w)
	}
	for i := range plan.Routes {
		m.routes = append(m.routes, plan.Routes[i].Wires)
	}
	return m, nil
}

// nameHash returns a hash of a name, the same in every process.
func nameHash(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails
	return h.Sum64()
}

// begin starts the trace and the schedule of the plan.
func (w *wire) begin(now time.Time) error {
	if err := w.link.Reconfigure(w.plan.Config, now); err != nil {
		return fmt.Errorf("%s: %w", w.plan.Name, err)
	}
	if w.plan.Trace != nil {
		if err := w.link.SetRate(*w.plan.Trace, now); err != nil {
			return fmt.Errorf("%s: %w", w.plan.Name, err)
		}
	}
	w.round, w.change, w.fair = now, 0, w.plan.Config.Overtakes()
	return nil
}

// nextChange returns the time of the next change of parameters, zero if there is none.
func (w *wire) nextChange() time.Time {
	switch {
	case w.change < len(w.plan.Schedule):
		return w.round.Add(w.plan.Schedule[w.change].At)
	case w.change == len(w.plan.Schedule) && w.plan.Repeat > 0:
		return w.round.Add(w.plan.Repeat)
	default:
		return time.Time{}
	}
}

// turn makes the changes that are due at now.
func (w *wire) turn(now time.Time) {
	for at := w.nextChange(); !at.IsZero() && !at.After(now); at = w.nextChange() {
		c := w.plan.Config
		if w.change < len(w.plan.Schedule) {
			c = w.plan.Schedule[w.change].Config
			w.change++
		} else {
			w.round, w.change = at, 0
		}
		adjust := w.link.Reconfigure
		if w.plan.Trace != nil {
			adjust = w.link.Impair
		}
		if err := adjust(c, at); err != nil {
			panic(fmt.Sprintf("router: parameters of %s that the plan's owner has validated are refused: %v",
				w.plan.Name, err))
		}
		w.fair = c.Overtakes()
	}
}

// Restart restarts every trace and schedule, and all counters.
func (m *Mesh) Restart(now time.Time) {
	m.Step(now)
	for _, w := range m.wires {
		if err := w.begin(now); err != nil {
			panic(fmt.Sprintf("router: parameters were valid at the start and are refused: %v", err))
		}
		w.link.ResetStats()
		w.waited, w.classes, w.capable = netem.DelayCounts{}, Classes{}, false
		m.schedule(w)
	}
}

// Configure changes the parameters of a wire; its trace and its schedule end. The error wraps netem.ErrConfig.
func (m *Mesh) Configure(index int, c netem.Config, now time.Time) error {
	m.Step(now)
	w := m.wires[index]
	if err := w.link.Reconfigure(c, now); err != nil {
		return err
	}
	w.change, w.fair = len(w.plan.Schedule)+1, c.Overtakes()
	m.schedule(w)
	return nil
}

// Send offers a packet at the beginning of a route. The packet belongs to the mesh until Arrived returns it.
func (m *Mesh) Send(p *netem.Packet, route int, now time.Time) {
	p.Route, p.Hop = uint32(route), 0
	m.enter(p, now)
}

// enter moves a packet to the next wire of its route.
func (m *Mesh) enter(p *netem.Packet, at time.Time) {
	wires := m.routes[p.Route]
	if int(p.Hop) == len(wires) {
		p.Arrival = at
		m.arrived = append(m.arrived, p)
		return
	}
	w := m.wires[wires[p.Hop]]
	p.Hop++
	w.turn(at)
	w.delay(p, at)
	w.link.Send(p, at)
	m.schedule(w)
}

// delay computes the lateness at the end of the wire of a packet that enters at now. With D for departures, A for
// arrivals and s for the transmission time, a first-in, first-out queue has D(n) = max(A(n), D(n-1)) + s. A packet that
// finds the wire idle therefore keeps its own lateness, and one that finds it busy has the lateness of the packet
// before, whatever its own is. If packets may overtake others, the larger of the two applies.
func (w *wire) delay(p *netem.Packet, now time.Time) {
	switch busy := w.link.Busy(now); {
	case busy && !w.fair:
		p.Late = w.late
	case busy:
		p.Late = max(p.Late, w.late)
	default:
		w.late = p.Late
	}
}

// Step processes all events up to now, in the order of time.
func (m *Mesh) Step(now time.Time) {
	for w, due := m.pending.First(now); due; w, due = m.pending.First(now) {
		at := w.Due()
		w.turn(at)
		for _, p := range w.link.Deliver(at) {
			w.count(p)
			m.enter(p, p.Arrival)
		}
		m.schedule(w)
	}
}

// count counts a packet that has arrived at the end of the wire.
func (w *wire) count(p *netem.Packet) {
	w.waited.Add(p.Waited)
	offered := p.Offered()
	w.capable = w.capable || offered != ecn.NotECT
	c := &w.classes.Classic
	if offered.L4S() {
		c = &w.classes.L4S
	}
	c.Packets++
	if p.ECN != offered {
		c.Marked++
	}
	c.Waited.Add(p.Waited)
}

// Arrived returns the packets that have reached the end of their route, in the order of Packet.Arrival. The slice is
// valid until the next call of Send or Step; the packets belong to the caller.
func (m *Mesh) Arrived() []*netem.Packet {
	arrived := m.arrived
	m.arrived = m.arrived[:0]
	return arrived
}

// Next returns the time of the next Step, zero if nothing is pending.
func (m *Mesh) Next() time.Time { return m.pending.Next() }

// WireStatistics are the counters of a wire.
type WireStatistics struct {
	netem.Stats
	// Waited has the queueing delays of the packets that have arrived at the end of the wire.
	Waited netem.DelayCounts
	// QueuePackets is the current number of packets in the queue.
	QueuePackets int
	// Classes holds the counters of the two queues of DualPI2. With another queue it holds those of the packets of each
	// class that have arrived at the end of the wire, with unknown drops, and is nil if no packet was ECN-capable.
	Classes *Classes
}

// Classes holds the counters of L4S packets (ECT(1) or CE), and of the others.
type Classes struct{ L4S, Classic netem.ClassStats }

// Statistics returns the counters of all wires, in the order of the plan.
func (m *Mesh) Statistics() []WireStatistics {
	list := make([]WireStatistics, len(m.wires))
	for i, w := range m.wires {
		list[i] = WireStatistics{Stats: w.link.Stats(), Waited: w.waited, QueuePackets: w.link.Waiting()}
		if l4s, classic, ok := w.link.ClassStats(); ok {
			list[i].Classes = &Classes{l4s, classic}
		} else if w.capable {
			classes := w.classes
			list[i].Classes = &classes
		}
	}
	return list
}

// schedule updates the place of a wire in the agenda after a step.
func (m *Mesh) schedule(w *wire) {
	next := w.link.Next()
	if change := w.nextChange(); next.IsZero() || !change.IsZero() && change.Before(next) {
		next = change
	}
	m.pending.Set(w, next)
}
