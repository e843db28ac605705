package metrics

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/volsfu/volsfu/internal/netfn/control"
	"github.com/volsfu/volsfu/internal/netfn/edge"
)

// fixed is a Source with constant values.
type fixed struct {
	status edge.Status
	link   *control.LinkState
	err    error
}

func (f fixed) Snapshot() (edge.Status, *control.LinkState, error) { return f.status, f.link, f.err }

// example has a different value in each field, so that two swapped fields are noticed.
func example() fixed {
	return fixed{
		status: edge.Status{
			Name: "studio", Peer: "office", Started: time.Unix(1000, 0), Readopted: true, PeerAlive: true,
			Paths: []edge.PathStatus{{
				Name: "fibre", Local: netip.MustParseAddr("192.0.2.1"), MTU: 1500, State: edge.PathNoRoute,
				Sent: edge.PathSent{Packets: 11, Bytes: 12, FailedClones: 13, Oversize: 14},
				Received: edge.PathReceived{Packets: 21, Bytes: 22, First: 23, Repeated: 24, Outside: 25, Malformed: 26,
					Refused: 27, Congested: 28},
				Report: &edge.PathReport{Loss: 0.25, InTime: 0.5, OnlyInTime: 0.125, DelaySeconds: 0.03125},
			}},
			Rules: []edge.RuleStatus{{Name: "conference", Set: []string{"fibre", "lte"}, Probes: []string{"sat"},
				Triggered: true}},
			Sent: edge.SentTotals{Packets: 31, Bytes: 32, Plain: 33, Refused: 34, CostFactor: 1.5},
			Control: edge.ControlCounts{HellosSent: 41, HellosReceived: 42, ReportsSent: 43, ReportsReceived: 44,
				Malformed: 45, Forged: 46, Replayed: 47, Reflected: 48, Stale: 49, Misplaced: 50},
		},
		link: &control.LinkState{Connected: true, Failures: 51},
	}
}

// gather returns the types of the metrics by name, and the series in the text format without values of 0.
func gather(t *testing.T, source Source) (types map[string]string, series string) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := Register(registry, "v1", source); err != nil {
		t.Fatal(err)
	}
	gathered, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	types = make(map[string]string)
	var text strings.Builder
	for _, f := range gathered {
		if !strings.HasPrefix(f.GetName(), "volnet_") {
			continue
		}
		types[f.GetName()] = strings.ToLower(f.GetType().String())
		for _, m := range f.GetMetric() {
			value := m.GetCounter().GetValue() + m.GetGauge().GetValue()
			if value == 0 {
				continue
			}
			text.WriteString(f.GetName())
			for _, label := range m.GetLabel() {
				fmt.Fprintf(&text, " %s=%s", label.GetName(), label.GetValue())
			}
			fmt.Fprintf(&text, " %v\n", value)
		}
	}
	return types, text.String()
}

func TestValues(t *testing.T) {
	want, err := os.ReadFile(filepath.Join("testdata", "values.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if _, got := gather(t, example()); got != string(want) {
		t.Errorf("got\n%s\nexpected\n%s", got, want)
	}
}

// TestAbsent checks the metrics of an edge without a controller whose peer has not reported yet.
func TestAbsent(t *testing.T) {
	source := example()
	source.link = nil
	source.status.Paths[0].Report = nil
	absent := []string{pathLoss, pathInTime, pathOnlyInTime, pathDelay, controllerUp, controllerFailure}
	types, _ := gather(t, source)
	for _, name := range Names() {
		if _, present := types[name]; present == slices.Contains(absent, name) {
			t.Errorf("%s: present is %v", name, present)
		}
	}
}

// TestNoState checks that a scrape fails if the state of the edge cannot be read.
func TestNoState(t *testing.T) {
	registry := prometheus.NewRegistry()
	if err := Register(registry, "v1", fixed{err: errors.New("no map")}); err != nil {
		t.Fatal(err)
	}
	if _, err := registry.Gather(); err == nil || !strings.Contains(err.Error(), "no map") {
		t.Errorf("the error is %v", err)
	}
}

// TestTable compares the table of docs/duplication.md with the metrics: names, types, labels and meanings, in order.
func TestTable(t *testing.T) {
	text, err := os.ReadFile("../../../docs/duplication.md")
	if err != nil {
		t.Fatal(err)
	}
	types, _ := gather(t, example())
	var want strings.Builder
	for _, f := range families {
		labels := make([]string, 0, len(f.labels))
		for _, label := range f.labels {
			labels = append(labels, "`"+label+"`")
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s |\n", f.name, types[f.name], strings.Join(labels, ", "),
			strings.TrimSuffix(f.help, "."))
	}
	const head = "| metric | type | labels | meaning |\n|---|---|---|---|\n"
	_, table, found := strings.Cut(string(text), head)
	if !found {
		t.Fatalf("docs/duplication.md has no table that begins with\n%s", head)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	if table+"\n" != want.String() {
		t.Errorf("the table of docs/duplication.md is\n%s\nexpected\n%s", table, want.String())
	}
}
