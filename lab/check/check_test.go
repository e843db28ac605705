package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
)

// known is a check with a known result.
type known struct{ line claim.Line }

func (k known) Name() string                              { return k.line.Name }
func (k known) Run(context.Context) ([]claim.Line, error) { return []claim.Line{k.line}, nil }

// version is the version in the reports of these tests.
const version = "v1.2.3"

var trial = collection{name: "trial", short: "A trial", bind: fixed(func(lab.Progress) []lab.Check {
	return []lab.Check{known{claim.AtLeast("good", 2, "", 1)}, known{claim.AtLeast("bad", 0, "", 1)},
		known{claim.Skip("absent", "no data")}}
})}

// open returns a standard input that ends with the test.
func open(t *testing.T) io.Reader {
	reader, writer := io.Pipe()
	t.Cleanup(func() { _ = writer.Close() })
	return reader
}

func TestCheckCommand(t *testing.T) {
	tests := []struct {
		name      string
		arguments []string
		// names are the sections of the report, in order.
		names []string
		err   error
		said  string
	}{
		{"all", nil, []string{"good", "bad", "absent"}, ErrMissed, ""},
		{"one that is met", []string{"--only", "1"}, []string{"good"}, nil, ""},
		{"one that is skipped", []string{"--only", "1,3"}, []string{"good", "absent"}, ErrIncomplete, ""},
		{"both by number", []string{"--only", "2,1"}, []string{"good", "bad"}, ErrMissed, ""},
		{"a number out of range", []string{"--only", "4"}, nil, nil, "--only 4: expected numbers from 1 to 3"},
		{"an argument", []string{"first"}, nil, nil, "unknown command"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cmd := newCollection(trial, version)
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			var out, progress bytes.Buffer
			cmd.SetOut(&out)
			cmd.SetErr(&progress)
			cmd.SetIn(open(t))
			cmd.SetArgs(append([]string{"--json", "--inside"}, test.arguments...))
			err := cmd.ExecuteContext(context.Background())
			if test.said != "" {
				if err == nil || !strings.Contains(err.Error(), test.said) || out.Len() != 0 {
					t.Errorf("got %v and %q, want an error with %q and no report", err, out.String(), test.said)
				}
				return
			}
			if !errors.Is(err, test.err) {
				t.Errorf("got error %v, want %v", err, test.err)
			}
			var report lab.Report
			if err := json.Unmarshal(out.Bytes(), &report); err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, s := range report.Sections {
				names = append(names, s.Name)
			}
			if strings.Join(names, " ") != strings.Join(test.names, " ") || report.Version != version {
				t.Errorf("sections %v of version %q, want %v of %q", names, report.Version, test.names, version)
			}
			if n := strings.Count(progress.String(), "\n"); n != len(test.names) {
				t.Errorf("progress has %d lines, want one for each check:\n%s", n, progress.String())
			}
		})
	}
}

func TestTextReport(t *testing.T) {
	cmd := newCollection(trial, version)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&bytes.Buffer{})
	cmd.SetIn(open(t))
	cmd.SetArgs([]string{"--inside"})
	if err := cmd.Execute(); !errors.Is(err, ErrMissed) {
		t.Errorf("got %v, want ErrMissed", err)
	}
	for _, want := range []string{"good  2  ≥ 1  met", "bad  0  ≥ 1  MISSED", "NOT every target is met"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("report is\n%s\nwant %q in it", out.String(), want)
		}
	}
}

func TestInterruptedCheck(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	report := lab.NewReport("trial", version)
	err := trial.run(ctx, report, trial.bind(nil)(lab.Progress{}), nil, measureHere, lab.Progress{})
	if err != nil || !report.Incomplete || len(report.Sections) > 0 {
		t.Errorf("got %+v, %v, expected an incomplete report without checks", report, err)
	}
}
