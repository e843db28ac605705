package claims

import (
	"context"
	"testing"
	"testing/fstest"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/experiment"
)

// shown holds the parameters of l4s-quality that the check selects.
type shown struct {
	Transport string  `yaml:"transport"`
	Rival     string  `yaml:"rival"`
	Sender    string  `yaml:"sender"`
	Flows     int     `yaml:"flows"`
	Bitrate   float64 `yaml:"bitrate"`
}

// scores returns a library whose l4s-quality has the given VMAF beside three flows, 60 at a fixed rate of 25 Mbit/s and
// 90 at 90 Mbit/s. Without a score for a rival, its cells are skipped.
func scores(t *testing.T, beside map[string]float64) *experiment.Library {
	t.Helper()
	run := func(_ context.Context, p shown, _ experiment.Settings) (*experiment.Outcome, error) {
		o := experiment.NewOutcome()
		switch score, measured := beside[p.Rival]; {
		case p.Flows == 0:
			o.Set("vmaf", map[float64]float64{25: 60, 90: 90}[p.Bitrate])
		case !measured:
			return experiment.Skip("no namespaces on this machine"), nil
		default:
			o.Set("vmaf", score)
		}
		return o, nil
	}
	l, err := experiment.NewLibrary(experiment.Collection{
		Files: fstest.MapFS{"l4s-quality.yaml": {Data: []byte(`
name: l4s-quality
title: Pictures
scenario: shown
matrix:
  - {transport: l4s, rival: [prague, cubic], sender: [paper000, volsfu], flows: 3, bitrate: 0}
  - {transport: l4s, rival: prague, sender: volsfu, flows: 0, bitrate: [25, 90]}
`)}},
		Scenarios: map[string]experiment.Scenario{"shown": experiment.Define(shown{},
			[]experiment.Quantity{{Name: "vmaf", Label: "VMAF"}}, run)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestPictures(t *testing.T) {
	const prague, cubic = "VMAF beside 3 Prague, of that undisturbed at 25 Mbit/s",
		"VMAF beside 3 Cubic, of that undisturbed at 90 Mbit/s"
	for _, test := range []struct {
		beside        map[string]float64
		missed        map[string]bool
		pragueFigures float64
	}{
		{map[string]float64{"prague": 54, "cubic": 89}, nil, 90},
		{map[string]float64{"prague": 53, "cubic": 88}, map[string]bool{prague: true, cubic: true}, 100 * 53.0 / 60},
	} {
		found := lines(t, NewPictures(Options{Library: scores(t, test.beside)}, lab.Progress{}))
		for _, name := range []string{prague, cubic} {
			if l, ok := found[name]; !ok || l.Target == "" || l.Missed() != test.missed[name] {
				t.Errorf("%s: got %+v, expected missed %t", name, l, test.missed[name])
			}
		}
		if l := found[prague]; l.Figure != test.pragueFigures {
			t.Errorf("%s is %g %%, expected %g", prague, l.Figure, test.pragueFigures)
		}
	}
	found := lines(t, NewPictures(Options{Library: scores(t, map[string]float64{"cubic": 90})}, lab.Progress{}))
	if l := found[prague]; l.Skipped == "" || l.Missed() {
		t.Errorf("%s: got %+v, expected a line that is skipped", prague, l)
	}
}
