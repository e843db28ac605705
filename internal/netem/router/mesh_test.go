package router_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/internal/netem/router"
)

const ms = time.Millisecond

var epoch = time.Unix(1_000_000_000, 0)

func at(d time.Duration) time.Time { return epoch.Add(d) }

// profile is a link's parameters.
func profile(t testing.TB, text string) netem.Config {
	t.Helper()
	c, err := netem.ParseProfile(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newMesh(t testing.TB, plan *router.Plan) *router.Mesh {
	t.Helper()
	m, err := router.NewMesh(plan, epoch)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// wires returns a plan of wires with one route over all of them.
func wires(t testing.TB, profiles ...string) *router.Plan {
	t.Helper()
	plan := &router.Plan{Seed: 1, Routes: []router.Route{{}}}
	for i, p := range profiles {
		plan.Wires = append(plan.Wires, router.Wire{Name: fmt.Sprint(i), Config: profile(t, p)})
		plan.Routes[0].Wires = append(plan.Routes[0].Wires, i)
	}
	return plan
}

// transcript steps a mesh to an end, at the times of Next, and lists the arrivals: number of the packet and time in
// microseconds.
func transcript(m *router.Mesh, end time.Duration) (lines []string) {
	for next := m.Next(); !next.IsZero() && !next.After(at(end)); next = m.Next() {
		m.Step(next)
		lines = append(lines, list(m)...)
	}
	return lines
}

func list(m *router.Mesh) (lines []string) {
	for _, p := range m.Arrived() {
		lines = append(lines, fmt.Sprintf("%d %d", p.Number, p.Arrival.Sub(epoch).Microseconds()))
	}
	return lines
}

func expect(t *testing.T, got []string, expected ...string) {
	t.Helper()
	if !slices.Equal(got, expected) {
		t.Errorf("got %q, expected %q", got, expected)
	}
}

// TestMeshChainsWires sends two packets of 1,250 bytes over 1 Mbit/s (10 ms each) with 5 ms of delay and then 2 Mbit/s
// (5 ms each) with 1 ms.
func TestMeshChainsWires(t *testing.T) {
	m := newMesh(t, wires(t, "rate=1Mbit,delay=5ms", "rate=2Mbit,delay=1ms"))
	for n := range 2 {
		m.Send(&netem.Packet{Size: 1250, Number: uint64(n)}, 0, epoch)
	}
	expect(t, transcript(m, time.Second), "0 21000", "1 31000")
	if s := m.Statistics(); s[0].Delivered != 2 || s[1].Sent != 2 || s[0].Waited.Quantile(1) < 10*ms ||
		s[1].Waited.Quantile(1) != 0 {
		t.Errorf("%+v", s[0].Stats)
	}
}

// TestMeshLateSteps processes the same packets late: they arrive at the same times.
func TestMeshLateSteps(t *testing.T) {
	m := newMesh(t, wires(t, "rate=1Mbit,delay=5ms", "rate=2Mbit,delay=1ms"))
	for n := range 2 {
		m.Send(&netem.Packet{Size: 1250, Number: uint64(n)}, 0, epoch)
	}
	m.Step(at(time.Hour))
	expect(t, list(m), "0 21000", "1 31000")
}

func TestMeshWithoutWires(t *testing.T) {
	m := newMesh(t, &router.Plan{Routes: []router.Route{{}}})
	m.Send(&netem.Packet{Size: 1250, Number: 7}, 0, at(ms))
	expect(t, list(m), "7 1000")
	if next := m.Next(); !next.IsZero() {
		t.Errorf("next is %v with nothing to do", next)
	}
}

// TestMeshSchedule changes a delay at 10 and 20 ms, and repeats at 40 ms; a packet is sent every 5 ms.
func TestMeshSchedule(t *testing.T) {
	plan := wires(t, "delay=1ms")
	plan.Wires[0].Schedule = []router.Change{{At: 10 * ms, Config: profile(t, "delay=2ms")},
		{At: 20 * ms, Config: profile(t, "delay=3ms")}}
	plan.Wires[0].Repeat = 40 * ms
	m := newMesh(t, plan)
	var got []string
	for n := range 11 {
		now := at(time.Duration(n) * 5 * ms)
		m.Step(now)
		got = append(got, list(m)...)
		m.Send(&netem.Packet{Size: 100, Number: uint64(n)}, 0, now)
	}
	got = append(got, transcript(m, 60*ms)...)
	expect(t, got, "0 1000", "1 6000", "2 12000", "3 17000", "4 23000", "5 28000", "6 33000", "7 38000", "8 41000",
		"9 46000", "10 52000")
	// After a restart at 60 ms, the delay is the first one again.
	m.Restart(at(60 * ms))
	m.Send(&netem.Packet{Size: 100, Number: 11}, 0, at(61*ms))
	expect(t, transcript(m, 70*ms), "11 62000")
	if s := m.Statistics()[0]; s.Sent != 1 || s.Delivered != 1 || s.Waited.Count() != 1 {
		t.Errorf("%+v, expected counters from the restart on", s.Stats)
	}
}

// TestMeshConfigure ends a schedule.
func TestMeshConfigure(t *testing.T) {
	plan := wires(t, "delay=1ms")
	plan.Wires[0].Schedule, plan.Wires[0].Repeat = []router.Change{{At: 10 * ms, Config: profile(t, "delay=2ms")}},
		20*ms
	m := newMesh(t, plan)
	if err := m.Configure(0, profile(t, "delay=7ms"), at(5*ms)); err != nil {
		t.Fatal(err)
	}
	for n, now := range []time.Duration{6 * ms, 15 * ms, 25 * ms} {
		m.Step(at(now))
		m.Send(&netem.Packet{Size: 100, Number: uint64(n)}, 0, at(now))
	}
	expect(t, transcript(m, time.Second), "0 13000", "1 22000", "2 32000")
	if err := m.Configure(0, netem.Config{Loss: 2}, at(time.Second)); !errors.Is(err, netem.ErrConfig) {
		t.Errorf("%v, expected ErrConfig", err)
	}
}

// TestMeshTraceWithSchedule lets a rate follow a trace while the delay changes. A packet of 1,250 bytes takes 10, then
// 5 ms.
func TestMeshTraceWithSchedule(t *testing.T) {
	plan := wires(t, "delay=1ms")
	plan.Wires[0].Trace = &netem.RateTrace{
		Steps: []netem.RateStep{{At: 0, RateBPS: 1_000_000}, {At: 50 * ms, RateBPS: 2_000_000}}, Duration: time.Second,
	}
	plan.Wires[0].Schedule = []router.Change{{At: 30 * ms, Config: profile(t, "delay=3ms")}}
	m := newMesh(t, plan)
	var got []string
	for n, now := range []time.Duration{0, 35 * ms, 60 * ms} {
		m.Step(at(now))
		got = append(got, list(m)...)
		m.Send(&netem.Packet{Size: 1250, Number: uint64(n)}, 0, at(now))
	}
	expect(t, append(got, transcript(m, time.Second)...), "0 11000", "1 48000", "2 68000")
}

// TestMeshSharesWires has two routes that share a bottleneck, at which packets of 1,250 bytes take 10 ms.
func TestMeshSharesWires(t *testing.T) {
	plan := wires(t, "delay=1ms", "delay=2ms", "rate=1Mbit")
	plan.Routes = []router.Route{{Wires: []int{0, 2}}, {Wires: []int{1, 2}}}
	m := newMesh(t, plan)
	m.Send(&netem.Packet{Size: 1250, Number: 0}, 1, epoch)
	m.Send(&netem.Packet{Size: 1250, Number: 1}, 0, epoch)
	expect(t, transcript(m, time.Second), "1 11000", "0 21000")
}

// TestMeshClasses: a wire counts L4S packets apart from others, with any queue, once a packet is ECN-capable. CoDel
// marks after packets have waited for 5 ms for 100 ms; packets of 1,250 bytes take 10 ms each.
func TestMeshClasses(t *testing.T) {
	m := newMesh(t, wires(t, "rate=1Mbit,queue=codel:1s"))
	m.Send(&netem.Packet{Size: 1250}, 0, epoch)
	transcript(m, 10*ms)
	if s := m.Statistics()[0]; s.Classes != nil || s.Waited.Count() != 1 {
		t.Errorf("%d packets waited, classes %+v, expected none without ECN", s.Waited.Count(), s.Classes)
	}
	for n := range 30 {
		m.Send(&netem.Packet{Size: 1250, ECN: []ecn.Codepoint{ecn.ECT0, ecn.ECT1, ecn.CE}[n%3]}, 0, at(10*ms))
	}
	transcript(m, time.Second)
	s := m.Statistics()[0]
	if s.Classes == nil || s.Marked == 0 || s.Classes.L4S.Packets != 20 || s.Classes.Classic.Packets != 11 ||
		s.Classes.L4S.Marked+s.Classes.Classic.Marked != s.Marked || s.Classes.L4S.Waited.Count() != 20 {
		t.Errorf("%d marks, classes %+v", s.Marked, s.Classes)
	}
	if m.Restart(at(time.Second)); m.Statistics()[0].Classes != nil {
		t.Error("classes are counted on after a restart")
	}
}

// TestMeshSeeds checks that losses depend on the seed and the name of the wire.
func TestMeshSeeds(t *testing.T) {
	arrivals := func(seed uint64, name string) string {
		plan := wires(t, "loss=50%")
		plan.Seed, plan.Wires[0].Name = seed, name
		m := newMesh(t, plan)
		for n := range 64 {
			m.Send(&netem.Packet{Size: 100, Number: uint64(n)}, 0, epoch)
		}
		return fmt.Sprint(transcript(m, time.Second))
	}
	first := arrivals(1, "a")
	if arrivals(1, "a") != first || arrivals(2, "a") == first || arrivals(1, "b") == first {
		t.Error("expected the same for the same seed and name, and else something else")
	}
}

// TestMeshLateness sends packets that were read late. The first finds its wire idle and keeps its lateness; waiting
// packets have the same lateness, whatever their own is; a packet that finds the wire idle again keeps its own. On a
// wire whose queue may reorder, the own lateness of a waiting packet counts, too.
func TestMeshLateness(t *testing.T) {
	for discipline, expected := range map[string][]time.Duration{
		"fifo": {3 * ms, 3 * ms, 3 * ms, ms}, "fq": {3 * ms, 8 * ms, 3 * ms, ms},
	} {
		m := newMesh(t, wires(t, "rate=1Mbit,queue="+discipline, "delay=1ms"))
		var got []time.Duration
		for _, p := range []struct{ now, late time.Duration }{{0, 3 * ms}, {0, 8 * ms}, {ms, 0}, {50 * ms, ms}} {
			m.Step(at(p.now))
			for _, p := range m.Arrived() {
				got = append(got, p.Late)
			}
			m.Send(&netem.Packet{Size: 1250, Late: p.late}, 0, at(p.now))
		}
		m.Step(at(time.Second))
		for _, p := range m.Arrived() {
			got = append(got, p.Late)
		}
		if !slices.Equal(got, expected) {
			t.Errorf("%s: %v, expected %v", discipline, got, expected)
		}
	}
}

func TestMeshRefuses(t *testing.T) {
	for _, w := range []router.Wire{
		{Config: netem.Config{Loss: 2}},
		{Trace: &netem.RateTrace{}},
	} {
		if _, err := router.NewMesh(&router.Plan{Wires: []router.Wire{w}}, epoch); err == nil {
			t.Errorf("%+v: no error", w)
		}
	}
}

// TestMeshAllocates checks that there are no allocations per packet.
func TestMeshAllocates(t *testing.T) {
	m := newMesh(t, wires(t, "rate=100Mbit,delay=1ms,jitter=100us", "rate=50Mbit,queue=fq,loss=1%"))
	var pool netem.PacketPool
	now := epoch
	pass := func() {
		for range 100 {
			p := pool.Get()
			p.Size = 1250
			m.Send(p, 0, now)
			m.Step(now)
			for _, p := range m.Arrived() {
				pool.Put(p)
			}
			now = now.Add(150 * time.Microsecond)
		}
	}
	for range 100 {
		pass()
	}
	if allocations := testing.AllocsPerRun(50, pass); allocations != 0 {
		t.Errorf("%v allocations per 100 packets, expected none", allocations)
	}
}
