package paper004

import (
	"math"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/lab/conversation"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/probe"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/test/exposition"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestFiles: every experiment can be read, with the cells of the paper.
func TestFiles(t *testing.T) {
	library, err := experiment.NewLibrary(Collection())
	if err != nil {
		t.Fatal(err)
	}
	for name, cells := range map[string]int{"layers": 2, "layers-protocol": 2, "layers-network": 9} {
		e, err := library.Find(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if n := len(e.Cells()); n != cells || e.Paper != "004" {
			t.Errorf("%s has %d cells, want %d", name, n, cells)
		}
	}
}

func TestParameters(t *testing.T) {
	for _, f := range []frames{{FPS: -1, Count: 300, Receivers: 2, Spread: 0.4, Down: 0.6},
		{Count: 300, Spread: 0.4, Down: 0.6}, {Count: 300, Receivers: 2, Spread: 2, Down: 0.6}} {
		if f.Validate() == nil {
			t.Errorf("%+v is accepted", f)
		}
	}
	for name, change := range map[string]func(*probes){
		"segment": func(p *probes) { p.Segment = "C" }, "size": func(p *probes) { p.Size = 20 },
		"up": func(p *probes) { p.Up = "x" }, "down": func(p *probes) { p.Down = "delay=x" },
	} {
		p := defaultProbes()
		change(&p)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestMeasure: figures are the layers of the records, series are over frames.
func TestMeasure(t *testing.T) {
	var records []frametimes.Record
	begin := time.Unix(1000, 0)
	for i := range 3 {
		var r frametimes.Record
		r.Frame = int64(7 + i)
		for stamp, ms := range map[frametimes.Stamp]int{
			frametimes.Captured: 0, frametimes.Acquired: 1, frametimes.TilingBegan: 1, frametimes.Tiled: 1,
			frametimes.EncodingBegan: 1, frametimes.Encoded: 6, frametimes.FirstSent: 7,
			frametimes.FirstSegmentSent: 8, frametimes.LastSent: 22, frametimes.ServerFirstIn: 8,
			frametimes.ServerLastIn: 23, frametimes.ServerFirstOut: 9, frametimes.ServerLastOut: 29,
			frametimes.FirstReceived: 10, frametimes.FirstSegmentReceived: 11, frametimes.LastReceived: 30,
			frametimes.Reassembled: 31, frametimes.DecodingBegan: 32, frametimes.Decoded: 50 + i,
		} {
			r.Set(stamp, begin.Add(time.Duration(ms)*time.Millisecond))
		}
		records = append(records, r)
	}
	o := experiment.NewOutcome()
	measureFrames(o, &conversation.Conversation{
		Records: records, Others: []int{4, 1}, Sent: 4, Due: 4, Took: 2 * time.Second,
		Residence: []exposition.Bucket{{Bound: 2 * time.Millisecond, Count: 10}},
		Distributions: []conversation.Distribution{{Frame: 7, Time: 24 * time.Millisecond},
			{Frame: 9, Time: 26 * time.Millisecond}},
	})
	for figure, want := range map[string]float64{
		"service": 51, "service_p99": 52, "app_tx": 7, "frame": 23, "app_rx": 21, "network_up": 1, "server_hold": 1,
		"network_down": 2, "frame_rx": 19,
		"server_distribution": 25, "server_distribution_p99": 26,
		"protocol_up": 16, "protocol_up_rx": 15, "protocol_down": 21, "missing": 25, "missing_others": 37.5,
		"frames": 3, "fps": 2, "residence_p50": 1,
	} {
		if got, ok := o.Figure(figure); !ok || math.Abs(got-want) > 1e-6 {
			t.Errorf("%s: got %g, want %g", figure, got, want)
		}
	}
	for _, line := range o.Lines {
		if line.Name == "service" && (len(line.Points) != 3 || line.Points[2] != [2]float64{2, 52}) {
			t.Errorf("series %+v", line)
		}
		if line.Name == "server_distribution" && (len(line.Points) != 2 || line.Points[1] != [2]float64{2, 26}) {
			t.Errorf("series %+v", line)
		}
	}
}

// TestReceivers: the carried rate and the validity depend on all receivers, not only on the first.
func TestReceivers(t *testing.T) {
	whole := make([]frametimes.Record, 100)
	for _, test := range []struct {
		others  []int
		busy    float64
		carries bool
		worth   experiment.Validity
	}{
		{nil, 0.5, true, experiment.Valid}, {[]int{100}, 0.5, true, experiment.Valid},
		{[]int{50}, 0.5, false, experiment.CPUBound}, {[]int{97}, 0.5, false, experiment.Valid},
		{[]int{100}, 0.96, true, experiment.CPUBound},
	} {
		c := &conversation.Conversation{Records: whole, Others: test.others, Due: 100, Sent: 100, Busy: test.busy}
		o := experiment.NewOutcome()
		if judge(o, c); c.Carries() != test.carries || o.Validity != test.worth {
			t.Errorf("100 frames arrived at the first receiver and %v at others, %.0f %% busy: carried %v, %s; "+
				"want %v, %s", test.others, 100*test.busy, c.Carries(), o.Validity, test.carries, test.worth)
		}
	}
}

func TestMeasureProbes(t *testing.T) {
	departures := []probe.Departure{{Sequence: 0, Sent: 1000, Software: 11_000},
		{Sequence: 1, Sent: 2_000, Software: 22_000}, {Sequence: 2, Sent: 3_000}}
	arrivals := []probe.Arrival{{Sequence: 0, Software: 31_000, Received: 41_000},
		{Sequence: 1, Software: 42_000, Received: 52_000}}
	o := experiment.NewOutcome()
	measureProbes(o, departures, arrivals)
	for figure, want := range map[string]float64{"tx_sw": 15, "wire": 20, "rx_sw": 10, "total": 45, "total_p95": 50,
		"lost": 1} {
		if got, ok := o.Figure(figure); !ok || math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: got %g, want %g", figure, got, want)
		}
	}
	if _, ok := o.Figure("tx_hw"); ok || len(o.Notes) != 2 || !strings.Contains(o.Notes[0], "TX_HW is absent") {
		t.Errorf("stamps of a missing card: notes %q", o.Notes)
	}
	o = experiment.NewOutcome()
	if measureProbes(o, departures, nil); o.Validity != experiment.Invalid {
		t.Errorf("without arrivals: %s", o.Validity)
	}
}
