// Package library has the experiments of all papers and of the project, and implements vollab run.
package library

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/awake"
	"github.com/volsfu/volsfu/lab/environment"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/direct"
	"github.com/volsfu/volsfu/lab/experiment/paper000"
	"github.com/volsfu/volsfu/lab/experiment/paper001"
	"github.com/volsfu/volsfu/lab/experiment/paper002"
	"github.com/volsfu/volsfu/lab/experiment/paper003"
	"github.com/volsfu/volsfu/lab/experiment/paper004"
	"github.com/volsfu/volsfu/lab/experiment/report"
	"github.com/volsfu/volsfu/lab/experiment/scale"
	"github.com/volsfu/volsfu/lab/hosts"
)

// New returns all experiments.
func New() (*experiment.Library, error) {
	return experiment.NewLibrary(paper001.Collection(), paper000.Collection(), paper002.Collection(),
		paper003.Collection(), paper004.Collection(), scale.Collection())
}

// everything is the name that selects all experiments.
const everything = "all"

// errFailed reports that iterations failed. The reports name the errors.
var errFailed = errors.New("iterations failed")

// running holds the flags of vollab run.
type running struct {
	options experiment.Options
	file    string
	out     string
	only    []string
	seconds float64
	// hosts is the file of hosts, empty to run all roles on this machine.
	hosts string
	json  bool
}

// Command returns the command vollab run. The version is for reports.
func Command(version string) *cobra.Command {
	r := &running{options: experiment.Options{Version: version}}
	cmd := &cobra.Command{
		Use:   "run NAME|all|list",
		Short: "Run an experiment, several iterations of each of its cells, and write a report",
		Long: `Run an experiment, several iterations of each of its cells, and write a report: JSON, CSV, and a
page with plots.

NAME is an experiment, all runs every experiment, and list prints their names. An experiment is a file in
YAML and a scenario in Go; --file runs your own file.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer cancel()
			return r.run(ctx, arguments, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&r.options.Short, "short", false,
		"run the cells marked short, for the short extent of each experiment, mostly one iteration of 10 s")
	f.StringVar(&r.file, "file", "", "an experiment's file in YAML, instead of NAME")
	f.StringVar(&r.options.Data, "data", os.Getenv(lab.TestDataVariable),
		"folder of the test data; empty selects the synthetic figure, which the report notes")
	f.StringVar(&r.out, "out", "reports", "folder for reports, each in a folder of its experiment's name")
	f.IntVar(&r.options.Iterations, "iterations", 0, "iterations of each cell; 0 selects the experiment's number")
	f.Float64Var(&r.seconds, "seconds", 0, "measured time of an iteration in seconds; 0 selects the experiment's time")
	f.StringSliceVar(&r.only, "only", nil, "run only cells with these parameters, as in tiles=4,fps=15")
	f.Uint64Var(&r.options.Seed, "seed", 1, "seed of the first iteration; each further iteration adds 1")
	f.StringVar(&r.options.Programs, "programs", "",
		"folder of volsfu and volpeer; by default the folder of this program")
	f.StringVar(&r.hosts, "hosts", "",
		"file with the machines that run the roles of the experiment, each with vollab agent")
	f.StringVar(&r.options.Source, "source", "",
		"source of clouds in place of the scenes of paper 002, as in realsense")
	f.BoolVar(&r.options.Resume, "resume", false,
		"continue interrupted runs in the folder for reports; finished iterations are not repeated")
	f.BoolVar(&r.options.NoRaw, "no-raw", false,
		"remove the files of each iteration, including the times of every frame, once it has been evaluated")
	f.BoolVar(&r.json, "json", false, "print results as JSON instead of text, an object per experiment")
	return cmd
}

// run runs the selected experiments.
func (r *running) run(ctx context.Context, arguments []string, out, console io.Writer) error {
	l, err := New()
	if err != nil {
		return err
	}
	if len(arguments) == 1 && arguments[0] == "list" {
		return list(l, out)
	}
	chosen, err := r.choose(l, arguments)
	if err != nil {
		return err
	}
	if r.options.Only, err = parseOnly(r.only); err != nil {
		return err
	}
	if r.seconds < 0 || r.options.Iterations < 0 {
		return errors.New("--seconds, --iterations: expected 0 or more")
	}
	if s := r.options.Source; s != "" && s != direct.RealSense {
		return fmt.Errorf("--source: expected %s, got %q", direct.RealSense, s)
	}
	if r.options.Data != "" {
		if info, err := os.Stat(r.options.Data); err != nil || !info.IsDir() {
			return fmt.Errorf("--data: expected a folder, got %q", r.options.Data)
		}
	}
	r.options.Duration = time.Duration(r.seconds * float64(time.Second))
	r.options.Progress = lab.NewProgress(console)
	if r.options.Environment, err = environment.Read(ctx, r.options.Data); err != nil {
		return err
	}
	if r.hosts != "" {
		if chosen, err = r.connect(ctx, l, chosen); err != nil {
			return err
		}
		defer r.options.Hosts.Close()
	}
	defer awake.Hold()()
	return r.runAll(ctx, chosen, out)
}

// connect connects to the hosts of the chosen experiments. Of all experiments, it returns those that run on several
// machines; a single experiment must do so.
func (r *running) connect(ctx context.Context, l *experiment.Library, chosen []*experiment.Experiment) (
	remote []*experiment.Experiment, err error) {
	file, err := hosts.Read(r.hosts)
	if err != nil {
		return nil, fmt.Errorf("--hosts: %w", err)
	}
	o := hosts.Options{Programs: r.options.Programs, Environment: r.options.Environment, Data: r.options.Data}
	for _, e := range chosen {
		roles, err := e.Roles()
		switch {
		case err == nil:
			o.Roles, remote = append(o.Roles, roles...), append(remote, e)
		case len(chosen) == 1:
			return nil, fmt.Errorf("--hosts: %w; on several machines run %s", err, strings.Join(remoteNames(l), ", "))
		default:
			r.options.Progress.Say("skipped: %v", err)
		}
	}
	if o.Programs == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		o.Programs = filepath.Dir(self)
	}
	if r.options.Hosts, err = hosts.Open(ctx, file, o); err != nil {
		return nil, fmt.Errorf("--hosts: %w", err)
	}
	return remote, nil
}

// remoteNames returns the names of the experiments that run on several machines.
func remoteNames(l *experiment.Library) (names []string) {
	for _, e := range l.Experiments() {
		if _, err := e.Roles(); err == nil {
			names = append(names, e.Name)
		}
	}
	return names
}

// choose finds the experiments to run.
func (r *running) choose(l *experiment.Library, arguments []string) ([]*experiment.Experiment, error) {
	switch {
	case r.file != "" && len(arguments) > 0:
		return nil, errors.New("expected NAME or --file, not both")
	case r.file != "":
		text, err := os.ReadFile(r.file)
		if err != nil {
			return nil, fmt.Errorf("--file: %w", err)
		}
		e, err := l.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("--file %s: %w", r.file, err)
		}
		return []*experiment.Experiment{e}, nil
	case len(arguments) == 0:
		return nil, errors.New("expected the name of an experiment; vollab run list prints the names")
	case arguments[0] == everything:
		return l.Experiments(), nil
	}
	e, err := l.Find(arguments[0])
	return []*experiment.Experiment{e}, err
}

// parseOnly parses name=value pairs; values are parsed as in files.
func parseOnly(pairs []string) (experiment.Parameters, error) {
	var only experiment.Parameters
	for _, pair := range pairs {
		name, text, ok := strings.Cut(pair, "=")
		var value any
		if !ok || name == "" || yaml.Unmarshal([]byte(text), &value) != nil {
			return nil, fmt.Errorf("--only: expected name=value, got %q", pair)
		}
		only = append(only, experiment.Parameter{Name: name, Value: value})
	}
	return only, nil
}

// runAll runs experiments one after the other and writes each report immediately. A report that cannot be written does
// not prevent later experiments. An interruption ends the current experiment and omits the rest.
func (r *running) runAll(ctx context.Context, chosen []*experiment.Experiment, out io.Writer) error {
	shared, err := os.MkdirTemp("", "vollab-run-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(shared) }()
	var results []*experiment.Result
	var unwritten error
	failed := 0
	for _, e := range chosen {
		if ctx.Err() != nil {
			break
		}
		o := r.options
		o.Folder, o.Shared = filepath.Join(r.out, e.Name), shared
		result, err := e.Run(ctx, o)
		if errors.Is(err, experiment.ErrNoCells) && len(chosen) > 1 {
			continue
		}
		if err != nil {
			return errors.Join(unwritten, err)
		}
		unwritten = errors.Join(unwritten, report.Write(result, o.Folder))
		if err := r.print(result, out); err != nil {
			unwritten = errors.Join(unwritten, fmt.Errorf("print %s: %w", e.Name, err))
		}
		results = append(results, result)
		failed += result.Counts()[experiment.Failed]
	}
	if len(chosen) > 1 {
		unwritten = errors.Join(unwritten, report.WriteIndex(r.out, results))
	}
	if failed > 0 {
		return errors.Join(unwritten, fmt.Errorf("%w: %d", errFailed, failed))
	}
	return errors.Join(unwritten, ctx.Err())
}

func (r *running) print(result *experiment.Result, out io.Writer) error {
	if r.json {
		return result.WriteJSON(out)
	}
	if err := report.WriteText(result, out); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n  %s\n\n", filepath.Join(r.out, result.Name, report.PageFile))
	return err
}

// list prints the experiments.
func list(l *experiment.Library, out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "experiment\tpaper\tcells (short)\titerations × seconds (short)\ttitle")
	for _, e := range l.Experiments() {
		short := 0
		for _, c := range e.Cells() {
			if c.Short {
				short++
			}
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%d (%d)\t%d × %g (%d × %g)\t%s\n", e.Name, e.Paper, len(e.Cells()), short,
			e.Iterations, e.Seconds, e.Short.Iterations, e.Short.Seconds, e.Title)
	}
	_, _ = fmt.Fprintf(table, "\nscenarios for files of your own: %s\n", strings.Join(l.Scenarios(), ", "))
	return table.Flush()
}
