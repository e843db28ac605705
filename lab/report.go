package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/volsfu/volsfu/lab/environment"
	"github.com/volsfu/volsfu/test/claim"
)

// Report is the result of several checks.
type Report struct {
	// Name is the name of the collection, for instance "first-light".
	Name    string  `json:"check"`
	Version string  `json:"version"`
	Machine Machine `json:"machine"`
	// Environment describes the machine and the programs, nil if it was not read.
	Environment *environment.Environment `json:"environment,omitempty"`
	// Met counts the figures that reach their targets. Missed counts the figures that miss their targets, and the lines
	// and checks that failed. Skipped counts the lines without a measurement. Information counts the lines whose
	// figures have no target.
	Met         int `json:"met"`
	Missed      int `json:"missed"`
	Skipped     int `json:"skipped"`
	Information int `json:"information"`
	// Incomplete reports whether a part was not measured. A report without missed targets proves the claims only if the
	// report is complete.
	Incomplete bool      `json:"incomplete"`
	Sections   []Section `json:"sections"`
}

// Machine describes the machine of the measurement.
type Machine struct {
	Cores  int    `json:"cores"`
	System string `json:"system"`
	Go     string `json:"go"`
}

// Section is the result of one check.
type Section struct {
	// Number is the check's place in the collection, from 1.
	Number int          `json:"number"`
	Name   string       `json:"name"`
	Lines  []claim.Line `json:"lines"`
	// Error is the error that ended the check early.
	Error string `json:"error,omitempty"`
	// Seconds is the duration of the check.
	Seconds float64 `json:"seconds"`
	// LoadBefore is the system's load average over the last minute when the check began, -1 if unknown. Latencies mean
	// little if the load exceeds the number of cores.
	LoadBefore float64 `json:"load_before"`
}

// NewReport begins a report.
func NewReport(name, version string) *Report {
	return &Report{
		Name: name, Version: version, Sections: []Section{},
		Machine: ThisMachine(),
	}
}

// ThisMachine describes the machine of this program.
func ThisMachine() Machine {
	return Machine{Cores: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version()}
}

// Run runs a check and adds its result.
func (r *Report) Run(ctx context.Context, number int, check Check, progress Progress) {
	section := Section{Number: number, Name: check.Name(), LoadBefore: LoadAverage()}
	progress.Say("%d: %s", number, section.Name)
	began := time.Now()
	lines, err := check.Run(ctx)
	section.Seconds = time.Since(began).Seconds()
	section.Lines = append([]claim.Line{}, lines...)
	if err != nil {
		section.Error = err.Error()
	}
	r.Add(section, ctx.Err() != nil)
}

// Add adds the result of a check. An error is a missed target, unless the check was interrupted: then the report is
// incomplete.
func (r *Report) Add(section Section, interrupted bool) {
	switch {
	case section.Error == "":
	case interrupted:
		r.Incomplete = true
	default:
		r.Missed++
	}
	for _, l := range section.Lines {
		r.count(l)
	}
	r.Sections = append(r.Sections, section)
}

func (r *Report) count(l claim.Line) {
	switch {
	case l.Skipped != "":
		r.Skipped++
		r.Incomplete = true
	case l.Missed():
		r.Missed++
	case l.Verdict() != "":
		r.Met++
	default:
		r.Information++
	}
}

// LoadAverage returns the system's load average over the last minute, the first number of /proc/loadavg; -1 if the load
// is unknown.
func LoadAverage() float64 {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return -1
	}
	var load float64
	if _, err := fmt.Sscan(string(data), &load); err != nil {
		return -1
	}
	return load
}

// WriteJSON writes the report as one object.
func (r *Report) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(r)
}

// WriteText writes the report for people: for each line the figure, its target and the verdict.
func (r *Report) WriteText(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s (%s) on %d cores, %s, %s\n", r.Name, r.Version, r.Machine.Cores, r.Machine.System,
		r.Machine.Go)
	for _, line := range r.Environment.Lines() {
		fmt.Fprintf(&text, "  %s: %s\n", line.Name, line.Text)
	}
	for i := range r.Sections {
		r.Sections[i].write(&text)
	}
	verdict := "every target is met"
	switch {
	case r.Missed > 0:
		verdict = "NOT every target is met"
	case r.Incomplete:
		verdict = "INCOMPLETE: no target is missed, but not everything was measured"
	}
	fmt.Fprintf(&text, "\n%s: %d met, %d missed, %d skipped\n", verdict, r.Met, r.Missed, r.Skipped)
	if r.Information > 0 {
		fmt.Fprintf(&text,
			"Lines without a target, or with a figure that is stated, are for information and cannot miss: %d\n",
			r.Information)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// write prints a section with aligned columns.
func (s *Section) write(text *strings.Builder) {
	fmt.Fprintf(text, "\n%d %s (%.0f s, load %.1f)\n", s.Number, s.Name, s.Seconds, s.LoadBefore)
	name, figure, target := 0, 0, 0
	for _, l := range s.Lines {
		name = max(name, utf8.RuneCountInString(l.Name))
		if l.Measured() {
			figure = max(figure, utf8.RuneCountInString(l.Value()))
		}
		target = max(target, utf8.RuneCountInString(l.Target))
	}
	for _, l := range s.Lines {
		if !l.Measured() {
			fmt.Fprintf(text, "  %s  %s\n", padded(l.Name, name), l.Unmeasured())
			continue
		}
		line := fmt.Sprintf("  %s  %s  %s  %s", padded(l.Name, name), padded(l.Value(), figure),
			padded(l.Target, target), l.Verdict())
		fmt.Fprintln(text, strings.TrimRight(line, " "))
	}
	if s.Error != "" {
		fmt.Fprintf(text, "  FAILED: %s\n", s.Error)
	}
}

// padded fills a text with spaces up to a number of characters.
func padded(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}
