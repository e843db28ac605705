package hotpath

import (
	"math"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/exposition"
)

func TestProcessTime(t *testing.T) {
	if got := parseSchedule([]byte("123456789 42 7\n")); got != 123456789 {
		t.Errorf("got %v", got)
	}
	if parseSchedule(nil) != 0 || parseSchedule([]byte("x 1 2")) != 0 {
		t.Error("text that is not a number counts")
	}
	// The time of an unknown process comes from its own metrics.
	if got := ProcessTime(0, exposition.Series{"process_cpu_seconds_total": 1.25}); got != 1250*time.Millisecond {
		t.Errorf("got %v, want 1.25 s", got)
	}
}

func TestFiguresOfAWindow(t *testing.T) {
	names := metricNames{packets: "packets", residence: "stay", datagrams: "sent", sends: "calls", cache: "cache"}
	begin := time.Unix(0, 0)
	before := snapshot{
		counts: exposition.Series{`packets{direction="out",kind="media"}`: 1000, "go_memstats_mallocs_total": 500,
			"calls": 10, "sent": 100},
		cpu: time.Second, machine: lab.MachineTime{Busy: 100, All: 200}, at: begin,
	}
	after := snapshot{
		counts: exposition.Series{
			`packets{direction="out",kind="media"}`: 2900, `packets{direction="out",kind="retransmission"}`: 100,
			`packets{direction="in",kind="media"}`: 200,
			"go_memstats_mallocs_total":            900, "calls": 60, "sent": 2100, "cache": 5, "go_goroutines": 12,
			"process_resident_memory_bytes": 1e6,
			`stay_bucket{le="0.001"}`:       50, `stay_bucket{le="0.002"}`: 100, `stay_bucket{le="+Inf"}`: 100,
		},
		cpu: time.Second + 4*time.Millisecond, machine: lab.MachineTime{Busy: 150, All: 300},
		at: begin.Add(2 * time.Second),
	}
	var w window
	w.add(before, after)
	got := w.figures(names)
	segments := 40.0
	want := Figures{
		CPU: 2, CPUReceived: 20, CPUShare: 0.002, PacketsReceived: 200, PacketsForwarded: 2000,
		Residence:       &Quantiles{1000, 1980, 1998},
		SegmentsPerSend: &segments, RSS: 1e6, Goroutines: 12, Allocations: 0.2, CacheBytes: 5, MachineBusy: 0.5,
		Seconds: 2,
	}
	if *got.Residence != *want.Residence || *got.SegmentsPerSend != segments || got.PacerHold != nil {
		t.Errorf("residence %v, hold %v, %g per send; want %v, none, %g", got.Residence, got.PacerHold,
			*got.SegmentsPerSend, want.Residence, segments)
	}
	got.Residence, want.Residence, got.SegmentsPerSend, want.SegmentsPerSend = nil, nil, nil, nil
	if got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	var nothing window
	if f := nothing.figures(names); math.IsNaN(f.CPU) || f.Residence != nil || f.SegmentsPerSend != nil {
		t.Errorf("figures of an empty window: %+v", f)
	}
}

func TestValidity(t *testing.T) {
	lossy := DefaultLoad()
	lossy.Loss = 0.02
	tests := []struct {
		name    string
		figures Figures
		load    Load
		valid   bool
	}{
		{"nothing lost, with time", Figures{MachineBusy: 0.84}, DefaultLoad(), true},
		{"too busy", Figures{MachineBusy: 0.85}, DefaultLoad(), false},
		{"a packet lost", Figures{PacketsLost: 1}, DefaultLoad(), false},
		{"a frame lost", Figures{FramesLost: 1}, DefaultLoad(), false},
		{"lost on purpose", Figures{PacketsLost: 1}, lossy, true},
	}
	for _, test := range tests {
		if got := test.figures.valid(test.load); got != test.valid {
			t.Errorf("%s: valid %v", test.name, got)
		}
	}
}
