package fuzzing

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/volsfu/volsfu/test/fuzz"
)

// counts are the results of one fuzz test.
type counts struct {
	Inputs int64 `json:"inputs"`
	// Seconds is the fuzzing time, Processor the processor time of all workers.
	Seconds   float64 `json:"seconds"`
	Processor float64 `json:"processor_seconds"`
	// Failure is the output of a failed run. A failed test is not run again until its entry is removed from the file.
	Failure string `json:"failure,omitempty"`
}

// state has the counts of all runs, by the names of tests (PATH.FuzzNAME, with the path in the checkout).
type state map[string]counts

// readState reads the file of previous runs. A file that does not exist has no counts.
func readState(path string) (state, error) {
	s := state{}
	if path == "" {
		return s, nil
	}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, nil
	case err != nil:
		return nil, fmt.Errorf("counts of previous runs: %w", err)
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("counts of previous runs: %s: %w", path, err)
	}
	return s, nil
}

// write replaces the file.
func (s state) write(path string) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	// The counts of hours must survive a program that is killed while it writes.
	next := path + ".next"
	if err := os.WriteFile(next, append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// add counts a run.
func (s state) add(name string, o fuzz.Outcome, lasted time.Duration) {
	c := s[name]
	c.Inputs += o.Inputs
	c.Seconds += lasted.Seconds()
	c.Processor += o.Processor.Seconds()
	c.Failure = o.Failure
	s[name] = c
}

// sum returns the counts of all targets together. Entries of tests that the checkout does not have are left out.
func (s state) sum(all []target) (total counts, failures []string) {
	for _, t := range all {
		for _, test := range t.tests {
			c := s[t.name(test)]
			total.Inputs += c.Inputs
			total.Seconds += c.Seconds
			total.Processor += c.Processor
			if c.Failure != "" {
				failures = append(failures, t.name(test))
			}
		}
	}
	return total, failures
}

// next returns the target with the test that has had the least time, nil if every test has failed.
func (s state) next(all []target) *target {
	var found *target
	least := 0.0
	for i := range all {
		for _, test := range all[i].tests {
			c := s[all[i].name(test)]
			if c.Failure == "" && (found == nil || c.Seconds < least) {
				found, least = &all[i], c.Seconds
			}
		}
	}
	return found
}
