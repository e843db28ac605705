package claims

import (
	"context"
	"testing"
	"testing/fstest"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/experiment"
)

// copied holds the parameters of dup-sfu that the check selects.
type copied struct {
	Arm     string `yaml:"arm"`
	Failure string `yaml:"failure"`
}

// conferences returns a library whose dup-sfu has the given figures with selected copies, and worse ones without.
func conferences(t *testing.T, selective map[string]float64) *experiment.Library {
	t.Helper()
	var quantities []experiment.Quantity
	for _, name := range []string{"audio_lost", "lowest_lost", "gap", "cost", "high_lost"} {
		quantities = append(quantities, experiment.Quantity{Name: name, Label: name})
	}
	run := func(_ context.Context, p copied, _ experiment.Settings) (*experiment.Outcome, error) {
		if selective == nil {
			return experiment.Skip("no namespaces on this machine"), nil
		}
		o := experiment.NewOutcome()
		for _, q := range quantities {
			o.Set(q.Name, 1000)
			if p.Arm == "selective" {
				o.Set(q.Name, selective[q.Name])
			}
		}
		return o, nil
	}
	l, err := experiment.NewLibrary(experiment.Collection{
		Files: fstest.MapFS{"dup-sfu.yaml": {Data: []byte(`
name: dup-sfu
title: Outages
scenario: copied
matrix:
  - {arm: ["off", selective, all], failure: [loss, unplugged]}
`)}},
		Scenarios: map[string]experiment.Scenario{"copied": experiment.Define(copied{}, quantities, run)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestOutages(t *testing.T) {
	for _, test := range []struct {
		figures map[string]float64
		missed  int
	}{
		{map[string]float64{"gap": 90, "cost": 1.2, "high_lost": 7}, 0},
		{map[string]float64{"gap": 101, "cost": 1.26, "audio_lost": 1, "lowest_lost": 0.2}, 8},
	} {
		missed, met := 0, 0
		for _, l := range lines(t, NewOutages(Options{Library: conferences(t, test.figures)}, lab.Progress{})) {
			switch {
			case l.Missed():
				missed++
			case l.Target != "":
				met++
			}
		}
		if missed != test.missed || met != 8-test.missed {
			t.Errorf("%v: %d lines are missed and %d met, expected %d of 8 missed", test.figures, missed, met,
				test.missed)
		}
	}
	for _, l := range lines(t, NewOutages(Options{Library: conferences(t, nil)}, lab.Progress{})) {
		if l.Target != "" || l.Missed() {
			t.Errorf("got %+v, expected a line that is skipped", l)
		}
	}
}
