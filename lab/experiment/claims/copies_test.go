package claims

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/experiment"
)

// onTable holds the parameters of cells on table I.
type onTable struct {
	Quality     string `yaml:"quality"`
	Variation   string `yaml:"variation"`
	Outstanding int    `yaml:"outstanding"`
	Arm         string `yaml:"arm"`
}

// tableLibrary has an experiment like dup-fig7 whose figures are known: throughputs by arm, and a cost.
func tableLibrary(t *testing.T, throughput map[string]float64, cost float64) *experiment.Library {
	t.Helper()
	var quantities []experiment.Quantity
	for _, name := range []string{"throughput", "fps_worst", "cost", "timely"} {
		quantities = append(quantities, experiment.Quantity{Name: name, Label: name})
	}
	run := func(_ context.Context, p onTable, _ experiment.Settings) (*experiment.Outcome, error) {
		o := experiment.NewOutcome()
		o.Set("throughput", throughput[p.Arm])
		o.Set("fps_worst", 30*throughput[p.Arm]/throughput["undisturbed"])
		o.Set("timely", 99.6)
		if p.Arm == "volnet" {
			o.Set("cost", cost)
		}
		return o, nil
	}
	l, err := experiment.NewLibrary(experiment.Collection{
		Files: fstest.MapFS{"dup-fig7.yaml": {Data: []byte(`
name: dup-fig7
title: Table I
scenario: trial
matrix:
  - {quality: [fhd, nfov], variation: [packet, drift], outstanding: 4,
     arm: [undisturbed, "off", paper, redirection, volnet]}
  - {quality: fhd, variation: packet, outstanding: 8, arm: [undisturbed, "off", redirection, volnet]}
`)}},
		Scenarios: map[string]experiment.Scenario{"trial": experiment.Define(onTable{}, quantities, run)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestTable: the checks compare volnet with the arms of the same network, and miss their targets if it is worse.
func TestTable(t *testing.T) {
	for _, test := range []struct {
		volnet, cost float64
		met          bool
	}{{48, 1.1, true}, {42, 1.4, false}} {
		l := tableLibrary(t, map[string]float64{"undisturbed": 48, "off": 24, "paper": 40, "redirection": 45,
			"volnet": test.volnet}, test.cost)
		for _, check := range []struct {
			lab.Check
			targets, stated int
		}{
			// 3 networks: of undisturbed, of redirection, worst second; of off, and twice the worst second of
			// undisturbed.
			{NewTableThroughput(Options{Library: l}, lab.Progress{}), 9, 9},
			// 2 qualities with 2 variations: cost, frames in time, which are always in time here, also of undisturbed.
			{NewTableCost(Options{Library: l}, lab.Progress{}), 12, 2},
		} {
			lines, err := check.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			targets, stated := 0, 0
			for _, line := range lines {
				switch {
				case line.Skipped != "" || line.Failed != "":
					t.Errorf("%s was not measured: %s", line.Name, line.Unmeasured())
				case line.Target == "stated":
					stated++
				case line.Target != "":
					targets++
					if want := test.met || strings.Contains(line.Name, "150 ms"); line.Met != want {
						t.Errorf("%v: met %v, expected %v", line, line.Met, want)
					}
				}
			}
			if targets != check.targets || stated != check.stated {
				t.Errorf("%s: %d targets and %d stated figures, expected %d and %d", check.Name(), targets, stated,
					check.targets, check.stated)
			}
		}
	}
}
