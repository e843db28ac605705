package hotpath

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/hotpath/machinelimit"
	"github.com/volsfu/volsfu/test/claim"
)

// scripted is a bench whose runs return given results, one after the other.
type scripted struct {
	results []*Result
	asked   []Options
}

func (s *scripted) forward(_ context.Context, o Options) (*Result, error) {
	if o.Pacing == PacingOn {
		return nil, fmt.Errorf("%w: no server", ErrPacing)
	}
	s.asked = append(s.asked, o)
	if len(s.results) == 0 {
		return nil, errors.New("more runs than scripted")
	}
	r := s.results[0]
	s.results = s.results[1:]
	r.Load = o.Load
	r.Valid = r.valid(o.Load) && (r.Compare == nil || !r.Compare.disturbed())
	return r, nil
}

// bench returns a bench that follows the script. The machine's limit is 1.1 µs for 10 receivers.
func (s *scripted) bench() bench {
	limit := func(context.Context) (*machinelimit.Limit, error) {
		return &machinelimit.Limit{SealSegmented: 1, Receive: 1, Coalesced: 0.5}, nil
	}
	return bench{compare: []string{"pion"}, forward: s.forward, limit: limit}
}

// compared returns a result with CPU times of both servers.
func compared(ours, theirs, busy float64) *Result {
	quotient := ours / theirs
	return &Result{Figures: Figures{CPU: ours, MachineBusy: busy}, Compare: &Figures{CPU: theirs}, CPURatio: &quotient}
}

// line finds a line by its name.
func line(t *testing.T, lines []claim.Line, name string) claim.Line {
	t.Helper()
	i := slices.IndexFunc(lines, func(l claim.Line) bool { return l.Name == name })
	if i < 0 {
		t.Fatalf("no line %q among %v", name, lines)
	}
	return lines[i]
}

// TestSmoothCheck: the ratio, and whether paths were smooth, are judged.
func TestSmoothCheck(t *testing.T) {
	for segments, smooth := range map[float64]bool{3.4: true, 7: false} {
		script := &scripted{}
		for _, cpu := range []float64{3, 2.6, 4} {
			r := compared(cpu, 2, 0.5)
			r.SegmentsPerSend, r.RSS, r.Compare.RSS = &segments, 50_100_000, 50_000_000
			script.results = append(script.results, r)
		}
		check := &Smooth{bench: script.bench(), Runs: 3, Load: DefaultLoad(), Ratio: 1.5}
		lines, err := check.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if o := script.asked[0]; o.Pacing != PacingSmooth || !o.ComparePaced {
			t.Errorf("a run with %+v", o)
		}
		if l := line(t, lines, "CPU per forwarded packet, relative to other paths"); l.Figure != 1.5 || !l.Met {
			t.Error(l)
		}
		if l := line(t, lines, "resident memory beyond that of other paths, per receiver"); l.Figure != 10 {
			t.Error(l)
		}
		if l := line(t, lines, "packets per send, mean"); l.Met != smooth {
			t.Error(l)
		}
	}
}

// TestLossesAreNotRepeated: a run in which the server lost a packet counts. A run disturbed by other work is repeated,
// and the repetition is counted.
func TestLossesAreNotRepeated(t *testing.T) {
	lossy := &Result{Figures: Figures{PacketsLost: 1, MachineBusy: 0.5}}
	script := &scripted{results: []*Result{{Figures: Figures{MachineBusy: 0.9}}, lossy,
		{Figures: Figures{MachineBusy: 0.5}}}}
	b := script.bench()
	result, err := b.run(context.Background(), Options{Load: DefaultLoad()})
	if err != nil {
		t.Fatal(err)
	}
	if result != lossy || result.Valid || result.Repeated != 1 {
		t.Errorf("got %+v, expected the invalid run with the loss, after one repetition", result)
	}
	found := validity("", result)
	if line(t, found, "valid runs").Met || line(t, found, "runs discarded because the machine was busy").Figure != 1 {
		t.Errorf("got %v, expected no valid run and one discarded run", found)
	}
}

func TestComparison(t *testing.T) {
	script := &scripted{results: []*Result{
		compared(1.5, 6, 0.5), compared(3, 5, 0.9), compared(2, 8, 0.5), compared(1.6, 5, 0.5),
		compared(1, 1, 0.99), compared(1, 2, 0.99), compared(1, 3, 0.99), compared(1, 4, 0.5), compared(1, 4, 0.5),
		compared(1, 2, 0.5), compared(1, 2, 0.5), compared(1, 2, 0.5),
	}}
	check := &Comparison{bench: script.bench(), Runs: 3, Cases: []ComparisonCase{
		{Name: "ten", Load: DefaultLoad(), Pacing: PacingOff, Ratio: 0.25, OfCeiling: 1.8},
		{Name: "paced", Load: DefaultLoad(), Pacing: PacingOn, Ratio: 0.3},
		{Name: "busy", Load: DefaultLoad(), Pacing: PacingOff, Ratio: 0.3},
		{Name: "batched", Load: DefaultLoad(), Pacing: PacingOff, Batched: true},
	}}
	lines, err := check.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		name   string
		figure float64
		met    bool
	}{
		{"ten: CPU per forwarded packet, relative to the other server", 0.25, true},
		{"ten: CPU per forwarded packet", 1.6, true},
		{"ten: CPU per forwarded packet, other server", 6, true},
		{"ten: CPU per forwarded packet, times the machine's limit", 1.6 / 1.1, true},
		{"ten: valid runs", 3, true},
		{"busy: CPU per forwarded packet, relative to the other server", 0.25, true},
		{"busy: valid runs", 2, false},
		{"busy: machine busy, at most", 99, true},
		{"batched: CPU per forwarded packet, relative to the other server", 0.5, true},
	} {
		if got := line(t, lines, want.name); got.Figure != want.figure || got.Met != want.met {
			t.Errorf("%v: want %g, met %v", got, want.figure, want.met)
		}
	}
	if l := line(t, lines, "paced: CPU per forwarded packet"); l.Skipped == "" {
		t.Errorf("%v: want a skipped line", l)
	}
	batched := 0
	for _, o := range script.asked {
		if slices.Equal(o.Compare, []string{"pion", BatchedFlag}) {
			batched++
		} else if !slices.Equal(o.Compare, []string{"pion"}) {
			t.Errorf("compared with %v", o.Compare)
		}
		if o.Duration != runTime {
			t.Errorf("measured with %+v", o)
		}
	}
	if batched != 3 {
		t.Errorf("%d runs beside batched sockets, expected 3", batched)
	}
}

func TestAllocations(t *testing.T) {
	// 1,000 allocations per second and one in ten packets at 50,000 and 10,000 packets per second.
	run := func(packets float64) *Result {
		return &Result{Figures: Figures{PacketsForwarded: uint64(4 * packets), Seconds: 4,
			Allocations: (1000 + packets/10) / packets}}
	}
	script := &scripted{results: []*Result{run(50_000), run(10_000)}}
	check := &Allocations{bench: script.bench(), Load: DefaultLoad(), Part: 0.2, PerPacket: 0.01}
	lines, err := check.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if l := lines[0]; l.Met || l.Figure < 0.0999 || l.Figure > 0.1001 {
		t.Errorf("%v: want 0.1, not met", l)
	}
	if script.asked[1].Load.Mbps != 10 {
		t.Errorf("the second run had %g Mbit/s, want 10", script.asked[1].Load.Mbps)
	}
}

func TestResidence(t *testing.T) {
	tests := []struct {
		name        string
		share, busy float64
		mbps        float64
	}{
		{"the server uses half of its share", 0.25, 0.3, 100},
		{"the machine would be too busy", 0.25, 0.5, 75},
		{"the server uses too much", 1, 0.5, 25},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			trial := &Result{Figures: Figures{CPUShare: test.share, MachineBusy: test.busy}}
			stay := func(p50, p99, p999, busy float64) *Result {
				return &Result{Figures: Figures{Residence: &Quantiles{p50, p99, p999}, MachineBusy: busy}}
			}
			// The run on a busy machine is repeated. Each quantile has its median in a different run.
			script := &scripted{results: []*Result{trial, stay(150, 900, 9000, 0), stay(50, 1100, 2500, 0),
				stay(0, 0, 0, 0.9), stay(250, 1200, 2000, 0)}}
			check := &Residence{bench: script.bench(), Runs: 3, Load: DefaultLoad(), Share: 0.5,
				P50: 200 * time.Microsecond, P99: time.Millisecond, P999: 3 * time.Millisecond}
			lines, err := check.Run(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []struct {
				name   string
				figure float64
				met    bool
			}{{"residence time, p50", 150, true}, {"residence time, p99", 1100, false},
				{"residence time, p99.9", 2500, true}, {"valid runs", 3, true}} {
				if l := line(t, lines, want.name); l.Figure != want.figure || l.Met != want.met {
					t.Errorf("%v: want %g, met %v", l, want.figure, want.met)
				}
			}
			for _, o := range script.asked[1:] {
				if o.Load.Mbps != test.mbps {
					t.Errorf("measured at %g Mbit/s, want %g", o.Load.Mbps, test.mbps)
				}
			}
			if l := line(t, lines, "paced: residence time and hold"); l.Skipped == "" {
				t.Errorf("%v: want a skipped line", l)
			}
		})
	}
}

func TestRepair(t *testing.T) {
	load := DefaultLoad()
	load.Loss, load.RTT = 0.02, 20*time.Millisecond
	tests := []struct {
		name                           string
		missed, recovered, sent        uint64
		recoveredEnough, sentNotTooOft bool
	}{
		{"all within the bounds", 10_000, 9_995, 10_900, true, true},
		{"too few recovered", 10_000, 9_989, 10_900, false, true},
		{"too many retransmissions", 10_000, 10_000, 11_001, true, false},
		{"nothing was lost", 0, 0, 0, false, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			figures := Figures{PacketsMissed: test.missed, PacketsRecovered: test.recovered, Retransmissions: test.sent,
				PacketsLost: 3}
			script := &scripted{results: []*Result{{Figures: figures}}}
			check := &Repair{bench: script.bench(), Recovered: 99.9, PerLoss: 1.1, Load: load}
			lines, err := check.Run(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if lines[0].Met != test.recoveredEnough || lines[1].Met != test.sentNotTooOft {
				t.Errorf("got %v and %v", lines[0], lines[1])
			}
		})
	}
}

func TestUnwatched(t *testing.T) {
	script := &scripted{results: []*Result{{Figures: Figures{CPUReceived: 1.5, CPUShare: 0.04, CacheBytes: 8e6}}}}
	check := &Unwatched{bench: script.bench(), Load: loadOf(0, 50)}
	lines, err := check.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{
		"packets forwarded": 0, "CPU per packet received": 1.5, "share of a core per track of 12.5 Mbit/s": 1,
		"packet cache per track": 2,
	} {
		if l := line(t, lines, name); l.Figure != want || !l.Met {
			t.Errorf("%v: want %g", l, want)
		}
	}
}

func TestChecksAreNumbered(t *testing.T) {
	checks := Checks(lab.Progress{})
	if len(checks) != 9 {
		t.Fatalf("there are %d checks, want 9", len(checks))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for i, c := range checks {
		if strings.TrimSpace(c.Name()) == "" {
			t.Errorf("check %d has no name", i+1)
		}
		if _, err := c.Run(ctx); err == nil {
			t.Errorf("check %d ran after the interruption", i+1)
		}
	}
}
