package claims

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/test/claim"
)

// trial holds the parameters of both experiments of the check, whose figures are known.
type trial struct {
	Level     int           `yaml:"level"`
	Transport string        `yaml:"transport"`
	System    string        `yaml:"system"`
	Tiles     int           `yaml:"tiles"`
	FPS       float64       `yaml:"fps"`
	Loss      float64       `yaml:"loss"`
	Delay     time.Duration `yaml:"delay"`
}

var errTrial = errors.New("no participant")

// undelayed returns the latencies of transports without delay. The latency of volsfu without pacing is a parameter of
// the test; spreading frames adds 27 ms.
func undelayed(ours float64) map[string]float64 {
	return map[string]float64{"volsfu-unpaced": ours, "volsfu": ours + 27, "direct-tcp": 20, "reflector": 24,
		"websocket": 30}
}

// reflectorLost is the share of the reflector's frames that are not shown under loss, by level: few at the lower level,
// and more than a percentile allows at the higher level.
var reflectorLost = map[int]float64{7: 4, 9: 48}

// late reports whether the emulated network disturbs a cell's next iteration.
type late func(p trial) bool

func library(t *testing.T, ours, decision float64, disturbed ...late) *experiment.Library {
	t.Helper()
	quantities := []experiment.Quantity{{Name: "latency", Unit: "ms", Label: "latency"}}
	for _, name := range []string{"decoded", "shown", "first_packet_p95_15", "bound_15", "first_packet_p95_30",
		"bound_30", "lost", "latency_p95", "decoded_p95_15", "decoded_p95_30", "shown_p95_15", "shown_p95_30",
		"decisions", "unanswered"} {
		quantities = append(quantities, experiment.Quantity{Name: name, Unit: "ms", Label: name})
	}
	run := func(_ context.Context, p trial, _ experiment.Settings) (*experiment.Outcome, error) {
		o := experiment.NewOutcome()
		switch {
		case p.Transport == "broken":
			return nil, errTrial
		case p.Transport == "absent":
			return experiment.Skip("no namespaces on this machine"), nil
		case p.System != "":
			for _, name := range []string{"decoded", "shown", "first_packet_p95_15", "first_packet_p95_30",
				"decoded_p95_15", "decoded_p95_30", "shown_p95_15", "shown_p95_30"} {
				o.Set(name, decision)
			}
			o.Set("bound_15", 90)
			o.Set("bound_30", 60)
			// The number of decisions without a packet equals the figure of the other transports at 15 ms.
			o.Set("decisions", 100)
			o.Set("unanswered", math.Floor(decision/15))
		default:
			latency := undelayed(ours)[p.Transport] + p.Delay.Seconds()*2000
			o.Set("latency", latency)
			o.Set("latency_p95", latency+10)
			o.Set("lost", 0)
			if p.Loss > 0 && p.Transport == "reflector" {
				o.Set("latency", 200)
				o.Set("latency_p95", 300)
				o.Set("lost", reflectorLost[p.Level])
			}
		}
		for _, d := range disturbed {
			if d(p) {
				o.Invalidate("the machine was disturbed: for an hour")
			}
		}
		return o, nil
	}
	l, err := experiment.NewLibrary(experiment.Collection{
		Files: fstest.MapFS{
			"sfu-fig4.yaml": {Data: []byte(`
name: sfu-fig4
title: Delay
scenario: trial
short: {iterations: 1, seconds: 0.1}
matrix:
  - {level: 7, transport: [direct-tcp, reflector, websocket, volsfu, volsfu-unpaced],
     tiles: 1, fps: 15, loss: 0, delay: 0ms, short: true}
  - {level: 7, transport: [direct-tcp, reflector, websocket, volsfu, volsfu-unpaced],
     tiles: 1, fps: 15, loss: 0, delay: 50ms}
  - {level: [7, 9], transport: [direct-tcp, reflector, websocket, volsfu, volsfu-unpaced],
     tiles: 1, fps: 15, loss: 0.1, delay: 50ms}
plots:
  - {name: latency, title: Latency, kind: bars, x: [transport], figures: [latency]}
  - {name: full, title: Of full runs, kind: bars, x: [transport], where: {level: 9}, figures: [latency]}
`)},
			"sfu-fig5-6.yaml": {Data: []byte(`
name: sfu-fig5-6
title: Decisions
scenario: trial
matrix: [{system: [volsfu-warm, volsfu-neighbours, volsfu-unpaced, direct-tcp], delay: [5ms, 10ms], short: true}]
plots: [{name: latency, title: Latency, kind: bars, x: [system], figures: [shown]}]
`)},
			"long.yaml": {Data: []byte(`
name: long
title: Nothing for a short run
scenario: trial
matrix: [{system: direct-tcp, delay: [5ms, 10ms]}]
`)},
			"troubles.yaml": {Data: []byte(`
name: troubles
title: What may happen
scenario: trial
matrix: [{transport: [broken, absent], short: true}]
plots: [{name: latency, title: Latency, kind: bars, x: [transport], figures: [latency]}]
`)},
		},
		Scenarios: map[string]experiment.Scenario{"trial": experiment.Define(trial{}, quantities, run)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// lines runs a check and finds lines by the beginning of their names.
func lines(t *testing.T, check lab.Check) map[string]claim.Line {
	t.Helper()
	all, err := check.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]claim.Line)
	for _, l := range all {
		name, _, _ := strings.Cut(l.Name, " (")
		found[name] = l
	}
	return found
}

func TestEverything(t *testing.T) {
	all := Checks(Options{Library: library(t, 22, 50), Folder: t.TempDir()}, lab.Progress{})
	found := lines(t, all[0])
	for name, met := range map[string]bool{
		"sfu-fig4: failed": true, "sfu-fig4: plots": true, "sfu-fig5-6: failed": true, "sfu-fig5-6: plots": true,
		"troubles: failed": false, "troubles: plots": false, "all experiments": true,
	} {
		if l, ok := found[name]; !ok || l.Met != met {
			t.Errorf("%s: expected a line with met %v, got %+v", name, met, l)
		}
	}
	if l, ok := found["long: failed"]; ok {
		t.Errorf("expected no line of an experiment without short cells, got %+v", l)
	}
}

func TestLatencies(t *testing.T) {
	for _, test := range []struct {
		ours, decision float64
		met            bool
	}{{22, 55, true}, {26, 95, false}} {
		found := lines(t, Checks(Options{Library: library(t, test.ours, test.decision)}, lab.Progress{})[1])
		for _, name := range []string{
			"0 ms: volsfu-unpaced above direct-tcp, which does not pace either",
			"5ms: volsfu-unpaced, 30 frames/s: decision to first packet, p95",
			"5ms: volsfu-warm, 15 frames/s: decision to first packet, p95",
			"10ms: volsfu-neighbours, 30 frames/s: decision to first packet, p95",
			"5ms: volsfu-unpaced: decisions without any packet of the quality",
			"10ms: volsfu-neighbours: decisions without any packet of the quality",
		} {
			if l, ok := found[name]; !ok || l.Met != test.met || l.Target == "" {
				t.Errorf("%s: expected a line with a target and met %v, got %+v", name, test.met, l)
			}
		}
		for network, lost := range map[string]float64{"level 7, 50 ms, 0.1 % loss": reflectorLost[7],
			"level 9, 50 ms, 0.1 % loss": reflectorLost[9]} {
			if l := found[network+": volsfu-unpaced faster than the reflector, which does not pace either"]; !l.Met ||
				l.Figure != 100*(1-(test.ours+100)/200) || !strings.Contains(l.Name,
				fmt.Sprintf("100.0 %%, reflector: %.1f %%", 100-lost)) {
				t.Errorf("%s: expected volsfu to be much faster than the reflector, with the shares of shown frames, "+
					"got %+v", network, l)
			}
			if l := found[network+": frames not shown, reflector"]; l.Figure != lost || l.Target != "" {
				t.Errorf("%s: expected the frames that the reflector lost, got %+v", network, l)
			}
			l := found[network+": latency above the path's own 100 ms, volsfu-unpaced"]
			if math.Abs(l.Figure-test.ours) > 1e-9 || l.Target != "" {
				t.Errorf("%s: expected the latency above the path's delay for information, got %+v", network, l)
			}
		}
		checkTails(t, found, test.ours)
		for network, delay := range map[string]float64{"0 ms": 0, "level 7, 50 ms, no loss": 100,
			"level 7, 50 ms, 0.1 % loss": 100} {
			name := network + ": latency of volsfu by default, with frames spread over 0.4 of their interval"
			if l := found[name]; !l.Met || l.Target != "" || l.Figure != test.ours+27+delay {
				t.Errorf("expected the default of volsfu for information, got %+v", l)
			}
		}
		for _, stage := range []string{"decoded", "shown"} {
			l := found["10ms: volsfu-warm, 30 frames/s: to the first frame "+stage+", p95"]
			if l.Figure != test.decision || l.Target != "" {
				t.Errorf("expected the 95th percentile to frames %s for information, got %+v", stage, l)
			}
		}
		if l := found["5ms: direct-tcp, 15 frames/s: decision to first packet, p95"]; !l.Met || l.Target != "" {
			t.Errorf("expected Direct TCP for information, got %+v", l)
		}
		if l, ok := found["5ms: direct-tcp: decisions without any packet of the quality"]; !ok || !l.Met ||
			l.Target != "" {
			t.Errorf("expected Direct TCP's unanswered decisions for information, got %+v", l)
		}
	}
}

// checkTails: a 95th percentile is judged if nearly all frames were shown; otherwise the shares of shown frames are
// judged.
func checkTails(t *testing.T, found map[string]claim.Line, ours float64) {
	t.Helper()
	const tail, shown = ": volsfu-unpaced faster than the reflector in the 95th percentile",
		": frames shown, volsfu-unpaced, compared with the reflector"
	if l := found["level 7, 50 ms, 0.1 % loss"+tail]; !l.Met || l.Figure != 100*(1-(ours+110)/300) || l.Target == "" {
		t.Errorf("expected volsfu to be judged by the 95th percentile, got %+v", l)
	}
	if l, ok := found["level 7, 50 ms, 0.1 % loss"+shown]; ok {
		t.Errorf("expected no line of shown frames if TCP repairs all, got %+v", l)
	}
	if l, ok := found["level 9, 50 ms, 0.1 % loss"+tail]; ok {
		t.Errorf("expected no percentile of half the frames, got %+v", l)
	}
	if l := found["level 9, 50 ms, 0.1 % loss"+shown]; !l.Met || l.Figure != 100 || l.Target != "≥ 52" {
		t.Errorf("expected that volsfu must show as many frames as the reflector, got %+v", l)
	}
	l := found["level 7, 50 ms, no loss: the reflector above volsfu-unpaced, paper: 21 %"]
	if math.Abs(l.Figure-100*(124/(ours+100)-1)) > 1e-9 || l.Target != "" {
		t.Errorf("expected the paper's condition for information, got %+v", l)
	}
}

// TestShownLess: a transport that shows fewer frames than the reflector misses its target, whatever its latency.
func TestShownLess(t *testing.T) {
	cell := func(transport string, latency, lost float64) experiment.CellResult {
		figures := []experiment.Summary{
			{Quantity: experiment.Quantity{Name: "latency"}, Statistics: experiment.Statistics{Mean: latency}},
			{Quantity: experiment.Quantity{Name: "lost"}, Statistics: experiment.Statistics{Mean: lost}},
		}
		return experiment.CellResult{Parameters: experiment.Parameters{parameter("transport", transport)},
			Worth: experiment.Valid, Figures: figures}
	}
	lines := besideReflector(&experiment.Result{Cells: []experiment.CellResult{cell("volsfu-unpaced", 100, 60),
		cell("reflector", 900, 50)}}, "far")
	if len(lines) != 2 || !lines[0].Met || !lines[1].Missed() {
		t.Errorf("expected a met mean, no percentile, and too few shown frames, got %+v", lines)
	}
}

// TestDisturbed: a disturbed cell is measured again, at most twice. If the cell is still disturbed, it is not judged.
func TestDisturbed(t *testing.T) {
	for _, test := range []struct {
		disturbed int // number of consecutive disturbed iterations
		measured  bool
	}{{3, true}, {6, true}, {9, false}} {
		count := 0
		reflector := func(p trial) bool {
			if p.Transport != "reflector" || p.Level != 7 || p.Loss == 0 {
				return false
			}
			count++
			return count <= test.disturbed
		}
		found := lines(t, Checks(Options{Library: library(t, 22, 50, reflector)}, lab.Progress{})[1])
		l := found["level 7, 50 ms, 0.1 % loss: volsfu-unpaced faster than the reflector, which does not pace either"]
		if l.Met != test.measured || l.Missed() || (l.Skipped == "") != test.measured ||
			strings.Contains(l.Name, "invalid") {
			t.Errorf("%d iterations disturbed: got %+v, expected measured %v", test.disturbed, l,
				test.measured)
		}
		if !test.measured && !strings.Contains(l.Skipped, "not measured: the machine was disturbed") {
			t.Errorf("expected the reason, got %q", l.Skipped)
		}
		if count != min(test.disturbed+repeats, repeats*(1+maxAgain)) {
			t.Errorf("%d iterations disturbed: %d were run", test.disturbed, count)
		}
		if l := found["level 7, 50 ms, 0.1 % loss: latency of volsfu-unpaced"]; l.Skipped != "" {
			t.Errorf("expected the lines of the other transports, got %+v", l)
		}
	}
}

func TestAbsentFiguresAreSkipped(t *testing.T) {
	absent := figure{remark: "no namespaces on this machine"}
	there := figure{value: 3, unit: "ms", there: true, remark: "cpu-bound"}
	line := func(a, b float64, name string) claim.Line { return claim.AtMost(name, a-b, "ms", 1) }
	if l := both(there, absent, "a", line); l.Skipped != "no namespaces on this machine" {
		t.Errorf("expected a skipped line, got %+v", l)
	}
	if l := absent.information("a"); l.Skipped == "" {
		t.Errorf("expected a skipped line, got %+v", l)
	}
	failed := figure{remark: "not measured: volsfu ended", failed: "volsfu ended"}
	for _, l := range []claim.Line{both(failed, there, "a", line), both(absent, failed, "a", line),
		failed.information("a")} {
		if l.Failed != "volsfu ended" || !l.Missed() {
			t.Errorf("expected a line that failed, got %+v", l)
		}
	}
	if l := both(there, there, "a", line); !l.Met || l.Name != "a (cpu-bound)" {
		t.Errorf("expected a line with the validity of its figures, got %+v", l)
	}
}
