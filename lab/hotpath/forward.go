package hotpath

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/awake"
	"github.com/volsfu/volsfu/lab/hotpath/machinelimit"
)

// Options select the load and the server of a measurement.
type Options struct {
	Load Load
	// ServerBin is the server's program; empty selects volsfu in the folder of this program. Config is the server's
	// configuration file; empty selects the default. Arguments are additional flags of the server.
	ServerBin, Config string
	Arguments         []string
	// URL and Metrics are the addresses of a server that already runs on this host, as ws://host:port and
	// http://host:port/metrics. If they are set, no server is started.
	URL, Metrics string
	// Relay, if not nil, is another node of the cluster to which that server belongs. The processor time of both nodes
	// counts.
	Relay  *Relay
	Pacing Pacing
	// Compare is the command of the server to compare with, program and arguments; nil for no comparison.
	Compare []string
	// ComparePaced compares with another volsfu with PacingOn instead, of the program CompareBin or, if that is empty,
	// the same program.
	ComparePaced bool
	CompareBin   string
	// Duration is the measured time of each server.
	Duration time.Duration
	// Sleep allows idle processors to sleep. The server then pays for waking the processors, on a virtual machine
	// through the hypervisor: a third of the cost of forwarding to ten receivers at 50 Mbit/s.
	Sleep    bool
	Progress lab.Progress
}

// Relay is a node of a cluster beside the measured one.
type Relay struct {
	// URL is the address at which receivers join, as ws://host:port. Metrics is the address of the node's metrics.
	URL, Metrics string
}

// FanoutCommand returns the command of the server to compare with, a hidden command of this program. With BatchedFlag
// as a further argument that server sends through batched sockets.
func FanoutCommand() ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return []string{self, "fanout"}, nil
}

// BatchedFlag is the flag of the server to compare with that selects batched sockets.
const BatchedFlag = "--batched"

// Result is the outcome of one measurement.
type Result struct {
	Server string `json:"server"`
	Load   Load   `json:"load"`
	Figures
	// Valid reports whether our server lost nothing and the machine had time, so that the figures may be judged.
	Valid bool `json:"valid"`
	// Repeated is the number of runs before this one that were discarded because the machine was busy.
	Repeated int `json:"repeated,omitempty"`
	// ProcessorsAwake reports that idle processors did not sleep.
	ProcessorsAwake bool `json:"processors_awake"`
	// CompareServer is the name of the other server. Compare holds its figures. CPURatio is our CPU time per forwarded
	// packet relative to the other server.
	CompareServer string   `json:"compare_server,omitempty"`
	Compare       *Figures `json:"compare,omitempty"`
	CPURatio      *float64 `json:"cpu_ratio,omitempty"`
	// Limit is the machine's own limit. Ceiling is the least cost of a packet of this load under that limit. Both are
	// absent if not measured.
	Limit   *machinelimit.Limit `json:"limit,omitempty"`
	Ceiling *float64            `json:"ceiling_us_per_packet,omitempty"`
}

// disturbed reports whether the machine had too little time for one of the servers.
func (r *Result) disturbed() bool {
	return r.Figures.disturbed() || r.Compare != nil && r.Compare.disturbed()
}

// slice is the time for which one server is measured before the turn of the other server. Short turns make other work
// on the machine affect both servers.
const slice = 2 * time.Second

// Forward measures a server under a load and, if requested, a second server in alternating slices.
func Forward(ctx context.Context, o Options) (result *Result, err error) {
	o.Load.RTTMilliseconds = lab.Milliseconds(o.Load.RTT)
	if err := o.validate(); err != nil {
		return nil, err
	}
	awoken := false
	if !o.Sleep {
		release, err := awake.Demand()
		if err != nil {
			o.Progress.Say("idle processors may sleep during this run, and the cost of waking them is included: %v",
				err)
		} else {
			awoken = true
			defer release()
		}
	}
	ours, err := o.start(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ours.close()) }()
	subjects := []subject{ours}
	if o.Compare != nil {
		theirs, err := startFanout(ctx, o.Compare)
		if err != nil {
			return nil, err
		}
		defer func() { _ = theirs.close() }()
		subjects = append(subjects, theirs)
	}
	if o.ComparePaced {
		theirs, err := o.startPaced(ctx)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, theirs.close()) }()
		subjects = append(subjects, theirs)
	}
	figures, err := measureInTurns(ctx, subjects, o)
	if err != nil {
		return nil, err
	}
	result = &Result{Server: ours.name(), Load: o.Load, Figures: figures[0], Valid: figures[0].valid(o.Load),
		ProcessorsAwake: awoken}
	if len(figures) > 1 {
		result.CompareServer, result.Compare = subjects[1].name(), &figures[1]
		quotient := ratio(figures[0].CPU, figures[1].CPU)
		result.CPURatio = &quotient
		result.Valid = result.Valid && !figures[1].disturbed()
	}
	return result, nil
}

// validate returns an error that wraps ErrLoad or ErrPacing if the options cannot be measured.
func (o *Options) validate() error {
	switch {
	case o.Duration <= 0:
		return fmt.Errorf("%w: a duration of %v, expected more than 0", ErrLoad, o.Duration)
	case o.Compare != nil && (o.Load.impaired() || o.Load.UnwatchedTracks > 0 || o.Load.Qualities > 1 ||
		o.Load.Receivers == 0):
		return fmt.Errorf("%w: the other server supports neither losses nor "+
			"tracks that are not forwarded to every receiver", ErrLoad)
	case (o.URL == "") != (o.Metrics == ""):
		return fmt.Errorf("%w: a server that runs already needs both its address and the address of its metrics",
			ErrLoad)
	case o.Relay != nil && (o.URL == "" || o.Load.Together):
		return fmt.Errorf("%w: a relay needs a server that runs already, and receivers that do not publish", ErrLoad)
	case o.Pacing != PacingConfigured && o.Pacing != PacingOff && !o.Pacing.paces():
		return fmt.Errorf("%w: %q, expected on, off or smooth", ErrPacing, o.Pacing)
	case o.ComparePaced && (o.Compare != nil || o.URL != ""):
		return fmt.Errorf("%w: only one server that this command starts can be compared with pacing on", ErrPacing)
	case o.Pacing == PacingSmooth && (o.Load.impaired() || o.Load.Together || o.Load.Receivers == 0):
		return fmt.Errorf("%w: smooth pacing needs receivers that do not publish, on paths without loss and delay",
			ErrLoad)
	}
	return o.Load.Validate()
}

// start starts the server, or returns the server that already runs.
func (o *Options) start(ctx context.Context) (*volsfu, error) {
	if o.URL != "" {
		if o.Pacing != PacingConfigured {
			return nil, fmt.Errorf("%w: the pacing of a server that runs already cannot be changed", ErrPacing)
		}
		return &volsfu{url: strings.TrimSuffix(o.URL, "/"), metrics: o.Metrics, relay: o.Relay}, nil
	}
	if o.Pacing == PacingSmooth {
		return o.launch(ctx, "", smoothReports(o.Load))
	}
	return o.launch(ctx, "", reports{})
}

// startPaced starts the volsfu to compare with.
func (o Options) startPaced(ctx context.Context) (*volsfu, error) {
	var made reports
	if o.Pacing == PacingSmooth {
		made = usualReports(o.Load)
	}
	o.Pacing, o.ServerBin = PacingOn, cmp.Or(o.CompareBin, o.ServerBin)
	return o.launch(ctx, "pacing on", made)
}

// launch starts the program of a server with a name for results, to which receivers make reports.
func (o *Options) launch(ctx context.Context, name string, made reports) (*volsfu, error) {
	path := o.ServerBin
	if path == "" {
		var err error
		if path, err = lab.FindProgram("volsfu"); err != nil {
			return nil, err
		}
	}
	arguments := o.Arguments
	if o.Config != "" {
		arguments = append([]string{"--config", o.Config}, arguments...)
	}
	pacing, err := o.Pacing.arguments(ctx, path, arguments)
	if err != nil {
		return nil, err
	}
	v, err := startVolsfu(ctx, path, slices.Concat(arguments, pacing, made.arguments)...)
	if err == nil {
		v.title, v.reports = name, made
	}
	return v, err
}

// measureInTurns attaches the load to all servers and measures them in alternating slices.
func measureInTurns(ctx context.Context, subjects []subject, o Options) (figures []Figures, err error) {
	var rigs []*rig
	defer func() {
		for _, r := range rigs {
			err = errors.Join(err, r.close())
		}
	}()
	for _, s := range subjects {
		o.Progress.Say("attaching %d publishers and %d receivers to %s", o.Load.Publishers, o.Load.Receivers, s.name())
		r, err := newRig(ctx, s, o.Load)
		if err != nil {
			return nil, err
		}
		rigs = append(rigs, r)
	}
	o.Progress.Say("measuring for %v each", o.Duration)
	for done := time.Duration(0); done < o.Duration; done += slice {
		for _, r := range rigs {
			if err := r.measure(ctx, min(slice, o.Duration-done)); err != nil {
				return nil, fmt.Errorf("measure %s: %w", r.subject.name(), err)
			}
		}
	}
	for _, r := range rigs {
		figures = append(figures, r.figures())
	}
	return figures, nil
}

// Beside adds the machine's limit to the figures; nil changes nothing.
func (r *Result) Beside(limit *machinelimit.Limit) {
	if limit == nil || r.Load.Receivers == 0 {
		return
	}
	ceiling := limit.Ceiling(r.Load.Receivers)
	r.Limit, r.Ceiling = limit, &ceiling
}
