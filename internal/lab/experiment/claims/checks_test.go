package claims

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/volsfu/volsfu/internal/lab"
	"github.com/volsfu/volsfu/internal/lab/experiment"
)

// trial are the parameters of both experiments that the check reads; its figures are known.
type trial struct {
	Level     int           `yaml:"level"`
	Transport string        `yaml:"transport"`
	System    string        `yaml:"system"`
	Tiles     int           `yaml:"tiles"`
	FPS       float64       `yaml:"fps"`
	Loss      float64       `yaml:"loss"`
	Delay     time.Duration `yaml:"delay"`
}

var errTrial = errors.New("nobody came")

// latencies are those of transports without delay; that of volsfu without pacing is a parameter of the test, and spreading frames adds 27 ms.
func latencies(ours float64) map[string]float64 {
	return map[string]float64{"volsfu-unpaced": ours, "volsfu": ours + 27, "direct-tcp": 20, "reflector": 24, "websocket": 30}
}

func library(t *testing.T, ours, decision float64) *experiment.Library {
	t.Helper()
	quantities := []experiment.Quantity{{Name: "latency", Unit: "ms", Label: "latency"}}
	for _, name := range []string{"decoded", "shown", "first_packet_p95_15", "bound_15", "first_packet_p95_30", "bound_30", "lost", "decisions", "unanswered"} {
		quantities = append(quantities, experiment.Quantity{Name: name, Unit: "ms", Label: name})
	}
	run := func(_ context.Context, p trial, _ experiment.Settings) (*experiment.Outcome, error) {
		o := experiment.NewOutcome()
		switch {
		case p.Transport == "broken":
			return nil, errTrial
		case p.Transport == "absent":
			return experiment.Skip("no namespaces here"), nil
		case p.System != "":
			for _, name := range []string{"decoded", "shown", "first_packet_p95_15", "first_packet_p95_30"} {
				o.Set(name, decision)
			}
			o.Set("bound_15", 90)
			o.Set("bound_30", 60)
			// As many of a hundred decisions had no packet as the others took of 15 ms.
			o.Set("decisions", 100)
			o.Set("unanswered", math.Floor(decision/15))
		default:
			o.Set("latency", latencies(ours)[p.Transport]+p.Delay.Seconds()*2000)
			if p.Loss > 0 && p.Transport == "reflector" {
				o.Set("latency", 200)
				o.Set("lost", float64(p.Level))
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
  - {level: 7, transport: [direct-tcp, reflector, websocket, volsfu, volsfu-unpaced], tiles: 1, fps: 15, loss: 0, delay: 0ms, short: true}
  - {level: [7, 9], transport: [direct-tcp, reflector, websocket, volsfu, volsfu-unpaced], tiles: 1, fps: 15, loss: 0.1, delay: 50ms}
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
func lines(t *testing.T, check lab.Check) map[string]lab.Line {
	t.Helper()
	all, err := check.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]lab.Line)
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
		"sfu-fig4: failed": true, "sfu-fig4: plots": true, "sfu-fig5-6: failed": true, "sfu-fig5-6: plots": true, "troubles: failed": false, "troubles: plots": false, "all of it": true,
	} {
		if l, ok := found[name]; !ok || l.Met != met {
			t.Errorf("%s: expected a line that is met: %v, got %+v", name, met, l)
		}
	}
}

func TestLatencies(t *testing.T) {
	for _, test := range []struct {
		ours, decision float64
		met            bool
	}{{22, 55, true}, {26, 95, false}} {
		found := lines(t, Checks(Options{Library: library(t, test.ours, test.decision)}, lab.Progress{})[1])
		for _, name := range []string{
			"0 ms: volsfu-unpaced above direct-tcp, which does not pace either", "5ms: volsfu-unpaced, 30 frames/s: decision to first packet, p95", "5ms: volsfu-warm, 15 frames/s: decision to first packet, p95", "10ms: volsfu-neighbours, 30 frames/s: decision to first packet, p95",
			"5ms: volsfu-unpaced: decisions without any packet of the quality", "10ms: volsfu-neighbours: decisions without any packet of the quality",
		} {
			if l, ok := found[name]; !ok || l.Met != test.met || l.Target == "" {
				t.Errorf("%s: expected a line with a target that is met: %v, got %+v", name, test.met, l)
			}
		}
		for network, lost := range map[string]float64{"level 7, 50 ms, 0.1 % loss": 7, "level 9, 50 ms, 0.1 % loss": 9} {
			if l := found[network+": volsfu-unpaced faster than the reflector, which does not pace either"]; !l.Met || l.Figure != 100*(1-(test.ours+100)/200) {
				t.Errorf("%s: expected volsfu to be much faster than the reflector, got %+v", network, l)
			}
			if l := found[network+": frames not shown, reflector"]; l.Figure != lost || l.Target != "" {
				t.Errorf("%s: expected what the reflector has lost, got %+v", network, l)
			}
		}
		for network, delay := range map[string]float64{"0 ms": 0, "level 7, 50 ms, 0.1 % loss": 100} {
			name := network + ": latency of volsfu as delivered, which spreads frames over 0.4 of their interval"
			if l := found[name]; !l.Met || l.Target != "" || l.Figure != test.ours+27+delay {
				t.Errorf("expected volsfu as delivered for information, got %+v", l)
			}
		}
		if l := found["5ms: direct-tcp, 15 frames/s: decision to first packet, p95"]; !l.Met || l.Target != "" {
			t.Errorf("expected Direct TCP for information, got %+v", l)
		}
		if l, ok := found["5ms: direct-tcp: decisions without any packet of the quality"]; !ok || !l.Met || l.Target != "" {
			t.Errorf("expected what Direct TCP leaves unanswered for information, got %+v", l)
		}
	}
}

func TestWhatIsNotThereIsSkipped(t *testing.T) {
	absent := figure{remark: "no namespaces here"}
	there := figure{value: 3, unit: "ms", there: true, remark: "cpu-bound"}
	line := func(a, b float64, name string) lab.Line { return lab.AtMost(name, a-b, "ms", 1) }
	if l := both(there, absent, "a", line); l.Skipped != "no namespaces here" {
		t.Errorf("expected a skipped line, got %+v", l)
	}
	if l := absent.information("a"); l.Skipped == "" {
		t.Errorf("expected a skipped line, got %+v", l)
	}
	if l := both(there, there, "a", line); !l.Met || l.Name != "a (cpu-bound)" {
		t.Errorf("expected a line that says what its figures are worth, got %+v", l)
	}
}
