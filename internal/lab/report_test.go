package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// fixed is a check whose outcome is known.
type fixed struct {
	name  string
	lines []Line
	err   error
}

func (f fixed) Name() string                        { return f.name }
func (f fixed) Run(context.Context) ([]Line, error) { return f.lines, f.err }

func TestReport(t *testing.T) {
	good := fixed{name: "good", lines: []Line{AtLeast("rate", 30, "fps", 27), Information("size", 12.5, "kB"), Skip("capture", "no data")}}
	bad := fixed{name: "bad", lines: []Line{Exactly("lost → found", 3, "", 0)}}
	broken := fixed{name: "broken", lines: []Line{Information("half", 1, "")}, err: errors.New("the link broke")}
	tests := []struct {
		name   string
		checks []fixed
		met    bool
		text   []string
	}{
		{"all met", []fixed{good}, true, []string{
			"  rate     30 fps     ≥ 27  met\n", "  size     12.500 kB\n", "  capture  skipped: no data\n", "\nevery target is met, but for lines that were skipped: 1\n",
		}},
		{"one missed", []fixed{good, bad}, false, []string{"  lost → found  3  = 0  MISSED\n", "\nNOT every target is met\n"}},
		{"one failed", []fixed{good, broken}, false, []string{"  half  1\n", "  FAILED: the link broke\n", "\nNOT every target is met\n"}},
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
			if r.Met != test.met || read.Met != test.met || read.Name != "trial" || len(read.Sections) != len(test.checks) {
				t.Errorf("met %v, JSON %+v; want met %v and %d sections", r.Met, read, test.met, len(test.checks))
			}
			if n := strings.Count(said.String(), "\n"); n != len(test.checks) {
				t.Errorf("progress has %d lines, want one for each check:\n%s", n, said.String())
			}
		})
	}
}
