package experiment

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/volsfu/volsfu/lab/hosts"
)

// JournalFile is the name of a run's journal in the folder of the run. The journal has a line of JSON for the run and
// for each finished iteration, including all samples, so that figures can be computed again. Each line is a member of
// a gzip file (RFC 1952, section 2.2): a run that is killed while it writes a line loses only that line.
const JournalFile = "iterations.jsonl.gz"

// ErrJournal reports a journal that does not fit the run.
var ErrJournal = errors.New("journal of the run")

// journalFormat is the version of the journal's lines.
const journalFormat = 1

// maxJournalBytes bounds the text of a journal. The largest experiment has 2,050 iterations of about 0.3 MB.
const maxJournalBytes = 4 << 30

// heading is the first line of a journal: the run, without iterations.
type heading struct {
	Format int `json:"format"`
	// Definition is the text of the experiment's file.
	Definition string     `json:"definition"`
	Only       Parameters `json:"only,omitempty"`
	Cells      []string   `json:"cells,omitempty"`
	Run        *Result    `json:"run"`
}

// entry is the line of an iteration.
type entry struct {
	Cell      string          `json:"cell"`
	Iteration IterationResult `json:"iteration"`
	// Samples are those of the figures, by name.
	Samples map[string][]float64 `json:"samples,omitempty"`
	// Clocks are the clocks of the hosts after the iteration, by host.
	Clocks map[string]hosts.State `json:"clocks,omitempty"`
	// Elapsed is the time of the run at the end of the iteration, in seconds, without the time between an end and the
	// resumption.
	Elapsed float64 `json:"elapsed"`
}

// journal writes the iterations of a run.
type journal struct {
	file *os.File
	// elapsed is the time of the parts of the run before the present part, begun the start of the present part.
	elapsed float64
	begun   time.Time
}

// newJournal begins a journal with the heading and the given entries. An existing journal is replaced at once.
func newJournal(folder string, h heading, entries []entry) (*journal, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	name := filepath.Join(folder, JournalFile)
	file, err := os.Create(name + ".new")
	if err != nil {
		return nil, err
	}
	j := &journal{file: file, begun: time.Now()}
	err = j.line(h)
	for _, e := range entries {
		err = errors.Join(err, j.line(e))
		j.elapsed = e.Elapsed
	}
	if err == nil {
		err = os.Rename(name+".new", name)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return j, nil
}

// line appends a line and waits until the line is on the disk.
func (j *journal) line(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(append(text, '\n')); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if _, err := j.file.Write(b.Bytes()); err != nil {
		return err
	}
	return j.file.Sync()
}

// add appends an iteration.
func (j *journal) add(cell string, i IterationResult, clocks map[string]hosts.State) error {
	e := entry{Cell: cell, Iteration: i, Samples: make(map[string][]float64), Clocks: clocks, Elapsed: j.seconds()}
	for _, f := range i.Figures {
		if f.Samples != nil {
			e.Samples[f.Name] = f.Samples
		}
	}
	return j.line(e)
}

// seconds returns the time of the run so far.
func (j *journal) seconds() float64 { return j.elapsed + time.Since(j.begun).Seconds() }

func (j *journal) close() error { return j.file.Close() }

// readJournal reads a journal up to the first incomplete line.
func readJournal(folder string) (h heading, entries []entry, err error) {
	name := filepath.Join(folder, JournalFile)
	file, err := os.Open(name)
	if err != nil {
		return h, nil, fmt.Errorf("%w: %w", ErrJournal, err)
	}
	defer func() { _ = file.Close() }()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return h, nil, fmt.Errorf("%w: %s: %w", ErrJournal, name, err)
	}
	decoder := json.NewDecoder(io.LimitReader(unzipped, maxJournalBytes))
	if err := decoder.Decode(&h); err != nil {
		return h, nil, fmt.Errorf("%w: %s: %w", ErrJournal, name, err)
	}
	if h.Format != journalFormat || h.Run == nil {
		return h, nil, fmt.Errorf("%w: %s has format %d, expected %d", ErrJournal, name, h.Format, journalFormat)
	}
	for {
		var e entry
		switch err := decoder.Decode(&e); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			// The end, or a line that was being written when the run was killed.
			return h, entries, nil
		case err != nil:
			return h, nil, fmt.Errorf("%w: %s: line %d: %w", ErrJournal, name, len(entries)+2, err)
		}
		if e.Iteration.Outcome == nil {
			return h, nil, fmt.Errorf("%w: %s: line %d has no outcome", ErrJournal, name, len(entries)+2)
		}
		for i := range e.Iteration.Figures {
			e.Iteration.Figures[i].Samples = e.Samples[e.Iteration.Figures[i].Name]
		}
		entries = append(entries, e)
	}
}

// sameRun returns an error that names the first difference between a journal and a run that is to continue the journal.
func (h *heading) sameRun(o heading) error {
	for _, setting := range []struct {
		name          string
		journal, here any
	}{
		{"experiment", h.Run.Name, o.Run.Name},
		{"version", h.Run.Version, o.Run.Version},
		{"seed", h.Run.Seed, o.Run.Seed},
		{"number of iterations", h.Run.Iterations, o.Run.Iterations},
		{"seconds of an iteration", h.Run.IterationSeconds, o.Run.IterationSeconds},
		{"extent (short)", h.Run.Short, o.Run.Short},
		{"folder of the test data", h.Run.Data, o.Run.Data},
		{"selection of cells", h.Only.String(), o.Only.String()},
		{"machine", h.Run.Machine, o.Run.Machine},
		{"set of hosts", h.Run.Hosts.String(), o.Run.Hosts.String()},
		{"source of clouds", h.Run.Source, o.Run.Source},
	} {
		if setting.journal != setting.here {
			return fmt.Errorf("%w: the %s was %v, and is now %v", ErrJournal, setting.name, setting.journal,
				setting.here)
		}
	}
	if !slices.Equal(h.Cells, o.Cells) {
		return fmt.Errorf("%w: the run had other cells", ErrJournal)
	}
	if h.Definition != o.Definition {
		return fmt.Errorf("%w: the experiment's file has changed", ErrJournal)
	}
	return nil
}

// insert adds an iteration of the journal to its cell. insert reports whether the run has the cell.
func (r *Result) insert(e entry) bool {
	i := slices.IndexFunc(r.Cells, func(c CellResult) bool { return c.Name == e.Cell })
	if i >= 0 {
		r.Cells[i].Iterations = append(r.Cells[i].Iterations, e.Iteration)
		r.Hosts.SetClocks(e.Clocks)
	}
	return i >= 0
}

// Reopen returns the result of a run from its journal. All statistics are computed again. The experiment is that of the
// journal, which the library need not have; the library must have its scenario.
func (l *Library) Reopen(folder string) (*Result, error) {
	h, entries, err := readJournal(folder)
	if err != nil {
		return nil, err
	}
	e, err := l.Parse([]byte(h.Definition))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrJournal, err)
	}
	r := h.Run
	r.Experiment, r.Parameters, r.Quantities = e, e.Parameters, e.scenario.Quantities()
	if err := r.selectCells(h.Only, h.Cells); err != nil {
		return nil, err
	}
	done := 0
	for _, one := range entries {
		if !r.insert(one) {
			return nil, fmt.Errorf("%w: the experiment has no cell %s", ErrJournal, one.Cell)
		}
		r.Seconds = one.Elapsed
		done++
	}
	r.Interrupted = done < len(r.Cells)*r.Iterations
	r.complete()
	return r, nil
}

// Revise computes the figures and relations of a run from Reopen by the library's own file of the experiment, which may
// have other texts, references and comparisons than the file of the run. Cells that the library's file does not have
// with the same parameters are removed. The error is ErrJournal if the library's file has another scenario, or no cell
// of the run.
func (l *Library) Revise(r *Result) error {
	e, err := l.Find(r.Name)
	if err != nil {
		return err
	}
	if e.Scenario != r.Scenario {
		return fmt.Errorf("%w: the scenario of %s was %s, and is now %s", ErrJournal, r.Name, r.Scenario, e.Scenario)
	}
	kept := slices.DeleteFunc(slices.Clone(r.Cells), func(was CellResult) bool {
		return !slices.ContainsFunc(e.cells, func(c Cell) bool {
			return c.Name() == was.Name && c.Parameters.String() == was.Parameters.String()
		})
	})
	if len(kept) == 0 {
		return fmt.Errorf("%w: the file of %s has no cell of the run, as %s", ErrJournal, r.Name, r.Cells[0].Parameters)
	}
	r.Cells = kept
	r.Experiment, r.Parameters, r.Title, r.Where, r.About, r.Why = e, e.Parameters, e.Title, e.Where, e.About, e.Why
	r.Notes, r.Comparisons = nil, nil
	r.complete()
	return nil
}

// begin creates the journal of a run, or continues the journal of an earlier run in the folder.
func (e *Experiment) begin(r *Result, o Options) (*journal, error) {
	h := heading{Format: journalFormat, Definition: string(e.text), Only: o.Only, Cells: o.Cells,
		Run: r}
	var entries []entry
	if o.Resume {
		before, finished, err := readJournal(o.Folder)
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			return nil, err
		default:
			if err := before.sameRun(h); err != nil {
				return nil, err
			}
			entries, r.Begun = finished, before.Run.Begun
		}
	}
	// The heading has no cells: the lines of iterations follow.
	cells := r.Cells
	r.Cells = nil
	j, err := newJournal(o.Folder, h, entries)
	r.Cells = cells
	if err != nil {
		return nil, err
	}
	for _, one := range entries {
		if !r.insert(one) {
			return nil, errors.Join(fmt.Errorf("%w: the experiment has no cell %s", ErrJournal, one.Cell), j.close())
		}
	}
	if len(entries) > 0 {
		o.Progress.Say("%s: %d iterations are done", e.Name, len(entries))
	}
	return j, nil
}
