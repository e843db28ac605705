package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/test/claim"
)

// fixed is a check with a known result.
type fixed struct {
	name  string
	lines []claim.Line
	err   error
}

func (f fixed) Name() string                              { return f.name }
func (f fixed) Run(context.Context) ([]claim.Line, error) { return f.lines, f.err }

func TestReport(t *testing.T) {
	good := fixed{name: "good", lines: []claim.Line{claim.AtLeast("rate", 30, "fps", 27),
		claim.Information("size", 12.5, "kB"), claim.Skip("capture", "no data")}}
	bad := fixed{name: "bad", lines: []claim.Line{claim.Exactly("lost → found", 3, "", 0)}}
	broken := fixed{name: "broken", lines: []claim.Line{claim.Information("half", 1, "")},
		err: errors.New("the link broke")}
	whole := fixed{name: "whole", lines: good.lines[:2]}
	crashed := fixed{name: "crashed", lines: []claim.Line{claim.Fail("latency", "volsfu ended with status 2")}}
	tests := []struct {
		name                 string
		checks               []fixed
		met, missed, skipped int
		information          int
		text                 []string
	}{
		{"all met", []fixed{whole}, 1, 0, 0, 1, []string{
			"  rate  30 fps     ≥ 27  met\n", "  size  12.500 kB\n",
			"\nevery target is met: 1 met, 0 missed, 0 skipped\n",
			"are for information and cannot miss: 1\n",
		}},
		{"one skipped", []fixed{good}, 1, 0, 1, 1, []string{
			"  capture  skipped: no data\n",
			"\nINCOMPLETE: no target is missed, but not everything was measured: 1 met, 0 missed, 1 skipped\n",
		}},
		{"one missed", []fixed{good, bad}, 1, 1, 1, 1, []string{
			"  lost → found  3  = 0  MISSED\n", "\nNOT every target is met: 1 met, 1 missed, 1 skipped\n",
		}},
		{"one run failed", []fixed{crashed}, 0, 1, 0, 0, []string{
			"  latency  FAILED: volsfu ended with status 2\n",
			"\nNOT every target is met: 0 met, 1 missed, 0 skipped\n",
		}},
		{"one check failed", []fixed{whole, broken}, 1, 1, 0, 2, []string{
			"  half  1\n", "  FAILED: the link broke\n", "\nNOT every target is met: 1 met, 1 missed, 0 skipped\n",
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var said bytes.Buffer
			r := NewReport("trial", "v1")
			for i, c := range test.checks {
				r.Run(context.Background(), i+1, c, NewProgress(&said))
			}
			var text, object bytes.Buffer
			if err := errors.Join(r.WriteText(&text), r.WriteJSON(&object)); err != nil {
				t.Fatal(err)
			}
			for _, want := range test.text {
				if !strings.Contains(text.String(), want) {
					t.Errorf("text is\n%s\nwant %q in it", text.String(), want)
				}
			}
			var read Report
			decoder := json.NewDecoder(&object)
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(&read); err != nil || decoder.More() {
				t.Fatalf("JSON is not one object: %v", err)
			}
			if read.Met != test.met || read.Missed != test.missed || read.Skipped != test.skipped {
				t.Errorf("JSON says %d met, %d missed, %d skipped, expected %d, %d, %d", read.Met, read.Missed,
					read.Skipped,
					test.met, test.missed, test.skipped)
			}
			if read.Information != test.information {
				t.Errorf("JSON says %d lines for information, expected %d", read.Information, test.information)
			}
			if read.Incomplete != (test.skipped > 0) || read.Name != "trial" || len(read.Sections) != len(test.checks) {
				t.Errorf("JSON is %+v, expected incomplete %v and %d sections", read, test.skipped > 0,
					len(test.checks))
			}
			if n := strings.Count(said.String(), "\n"); n != len(test.checks) {
				t.Errorf("progress has %d lines, want one for each check:\n%s", n, said.String())
			}
		})
	}
}
