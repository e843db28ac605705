package role

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

var there = Places{Folder: "/agent/1", Data: "/there/data"}

// TestPlan: a command line of one side becomes that of the other, with the files and the test data of that side.
func TestPlan(t *testing.T) {
	plan, err := NewPlan("vollab", []string{"peer", "--name", "left", "--summary", "/run/left/left.json", "--records",
		"/run/left/left.jsonl", "--source", "glb:/data/cesium-man/CesiumMan.glb", "--decisions", "/run/left/d.csv",
		"--adapt", "--decode=false"}, "/data")
	if err != nil {
		t.Fatal(err)
	}
	if plan.Outputs["left.json"] != "/run/left/left.json" || plan.Outputs["left.jsonl"] != "/run/left/left.jsonl" ||
		len(plan.Outputs) != 2 || plan.Inputs["d.csv"] != "/run/left/d.csv" || len(plan.Inputs) != 1 {
		t.Errorf("got the files %v and %v", plan.Inputs, plan.Outputs)
	}
	file, words, outputs, err := Line(plan.Program, plan.Arguments, there)
	want := []string{"peer", "--name", "left", "--summary", "/agent/1/left.json", "--records",
		"/agent/1/left.jsonl", "--source", "glb:/there/data/cesium-man/CesiumMan.glb", "--decisions",
		"/agent/1/d.csv", "--adapt", "--decode=false"}
	if err != nil || file != "vollab" || !slices.Equal(words, want) || len(outputs) != 2 {
		t.Errorf("got %s %v, %v, %v, want %v", file, words, outputs, err, want)
	}
}

// TestPlanRefuses: command lines that are not a role's are refused before anything is sent.
func TestPlanRefuses(t *testing.T) {
	for _, line := range []string{"sh -c true", "vollab check lab", "vollab peer --unknown 1", "vollab peer name",
		"vollab peer --name", "vollab peer --source ply:/etc", "vollab peer --summary /a/x --records /b/x", "volsfu"} {
		words := strings.Fields(line)
		if _, err := NewPlan(words[0], words[1:], "/data"); !errors.Is(err, ErrArgument) {
			t.Errorf("%s: got %v", line, err)
		}
	}
}

// TestLineRefuses: an agent accepts only known programs and flags, and no path outside its folders.
func TestLineRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		program  string
		argument Argument
	}{
		"program":        {"sh", Argument{"c", Value, "true", ""}},
		"subcommand":     {"vollab check", Argument{"json", Switch, "", ""}},
		"flag":           {"vollab peer", Argument{"config", Value, "x", ""}},
		"kind":           {"vollab peer", Argument{"records", Value, "/etc/passwd", ""}},
		"path":           {"vollab peer", Argument{"records", Output, "../x", ""}},
		"absolute path":  {"vollab peer", Argument{"records", Output, "/etc/passwd", ""}},
		"folder":         {"vollab peer", Argument{"records", Output, ".", ""}},
		"no name":        {"vollab peer", Argument{"frames", Input, "", ""}},
		"source":         {"vollab peer", Argument{"source", Source, "ply:/etc", ""}},
		"outside data":   {"vollab peer", Argument{"source", Source, "ply", "../../etc"}},
		"kind of source": {"vollab peer", Argument{"source", Source, "replay", "x"}},
		"long":           {"vollab peer", Argument{"name", Value, strings.Repeat("x", maxValue+1), ""}},
		"zero":           {"vollab peer", Argument{"name", Value, "a\x00b", ""}},
	} {
		if _, _, _, err := Line(test.program, []Argument{test.argument}, there); !errors.Is(err, ErrArgument) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, _, _, err := Line("vollab peer", []Argument{{"source", Source, "ply", "desk"}}, Places{Folder: "/x"}); err ==
		nil || !strings.Contains(err.Error(), "--data") {
		t.Errorf("without test data: got %v", err)
	}
	if _, words, _, err := Line("vollab peer", []Argument{{"source", Source, "realsense", ""}}, there); err != nil ||
		!slices.Equal(words, []string{"peer", "--source", "realsense"}) {
		t.Errorf("got %v, %v", words, err)
	}
	if got := Programs(); !slices.Equal(got, []string{"vollab", "volsfu"}) {
		t.Errorf("got %v", got)
	}
}
