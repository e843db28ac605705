package hotpath

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/awake"
)

// Options say what is measured, and on which server.
type Options struct {
	Load Load
	// ServerBin is the server's program, empty for the one beside this program; Config its configuration, empty for the default; Arguments are more of
	// its flags.
	ServerBin, Config string
	Arguments         []string
	// URL and Metrics are those of a server that runs already on this host, as ws://host:port and http://host:port/metrics; nothing is started then.
	URL, Metrics string
	Pacing       Pacing
	// Compare is the command of the server to compare with, program and arguments; nil compares with none.
	Compare []string
	// Duration is how long each server is measured.
	Duration time.Duration
	// Sleep lets idle processors sleep. Where they do, a server pays for waking them, a virtual machine's through the hypervisor: a third of what forwarding to ten receivers at 50 Mbit/s costs there.
	Sleep    bool
	Progress lab.Progress
}

// FanoutCommand is the command, hidden in this program, of the server to compare with. With BatchedFlag as a further
// argument that server sends by batched sockets.
func FanoutCommand() ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return []string{self, "fanout"}, nil
}

// BatchedFlag is the flag of the server to compare with that has it send by batched sockets.
const BatchedFlag = "--batched"

// Result is the outcome of one measurement.
type Result struct {
	Server string `json:"server"`
	Load   Load   `json:"load"`
	Figures
	// Valid says that our server lost nothing and that the machine had time, so that the figures may be judged.
	Valid bool `json:"valid"`
	// Repeated is the number of runs before this one that were discarded because the machine was busy.
	Repeated int `json:"repeated,omitempty"`
	// ProcessorsAwake says that idle processors did not sleep.
	ProcessorsAwake bool `json:"processors_awake"`
	// Compare is what was measured of the server to compare with, CPURatio our CPU time per forwarded packet in parts of its.
	Compare  *Figures `json:"compare,omitempty"`
	CPURatio *float64 `json:"cpu_ratio,omitempty"`
	// Limit is the machine's own limit, Ceiling what it allows a packet of this load to cost at least; absent where it was not measured.
	Limit   *Limit   `json:"limit,omitempty"`
	Ceiling *float64 `json:"ceiling_us_per_packet,omitempty"`
}

// disturbed reports whether the machine had too little time for one of the servers.
func (r *Result) disturbed() bool {
	return r.Figures.disturbed() || r.Compare != nil && r.Compare.disturbed()
}

// slice is how long one server is measured before it is the other's turn: what else the machine does then concerns both.
const slice = 2 * time.Second

// Forward measures a server under a load, and the server to compare with in turns with it.
func Forward(ctx context.Context, o Options) (result *Result, err error) {
	o.Load.RTTMilliseconds = lab.Milliseconds(o.Load.RTT)
	if err := o.validate(); err != nil {
		return nil, err
	}
	awoken := false
	if !o.Sleep {
		release, err := awake.Demand()
		if err != nil {
			o.Progress.Say("idle processors sleep, and waking them counts: %v", err)
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
		theirs, err := startFanned(ctx, o.Compare)
		if err != nil {
			return nil, err
		}
		defer func() { _ = theirs.close() }()
		subjects = append(subjects, theirs)
	}
	figures, err := measureInTurns(ctx, subjects, o)
	if err != nil {
		return nil, err
	}
	result = &Result{Server: ours.name(), Load: o.Load, Figures: figures[0], Valid: figures[0].valid(o.Load), ProcessorsAwake: awoken}
	if len(figures) > 1 {
		result.Compare = &figures[1]
		quotient := ratio(figures[0].CPU, figures[1].CPU)
		result.CPURatio = &quotient
		result.Valid = result.Valid && !figures[1].disturbed()
	}
	return result, nil
}

// validate reports what cannot be measured.
func (o *Options) validate() error {
	switch {
	case o.Duration <= 0:
		return fmt.Errorf("%w: a duration of %v", ErrLoad, o.Duration)
	case o.Compare != nil && (o.Load.impaired() || o.Load.UnwatchedTracks > 0 || o.Load.Qualities > 1 || o.Load.Receivers == 0):
		return fmt.Errorf("%w: the server to compare with knows no losses, and tracks only that every receiver takes", ErrLoad)
	case (o.URL == "") != (o.Metrics == ""):
		return fmt.Errorf("%w: a server that runs already needs both its address and that of its metrics", ErrLoad)
	case o.Pacing != PacingConfigured && o.Pacing != PacingOn && o.Pacing != PacingOff:
		return fmt.Errorf("%w: %q, expected on or off", ErrPacing, o.Pacing)
	}
	return o.Load.Validate()
}

// start starts the server, or finds the one that runs.
func (o *Options) start(ctx context.Context) (*volsfu, error) {
	if o.URL != "" {
		if o.Pacing != PacingConfigured {
			return nil, fmt.Errorf("%w: a server that runs already is paced as it was configured", ErrPacing)
		}
		return &volsfu{url: strings.TrimSuffix(o.URL, "/"), metrics: o.Metrics}, nil
	}
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
	return startVolsfu(ctx, path, append(slices.Clone(arguments), pacing...)...)
}

// measureInTurns attaches the load to all servers and measures one slice of each after the other.
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

// Beside puts the machine's limit beside the figures; nil leaves them alone.
func (r *Result) Beside(limit *Limit) {
	if limit == nil || r.Load.Receivers == 0 {
		return
	}
	ceiling := limit.Ceiling(r.Load.Receivers)
	r.Limit, r.Ceiling = limit, &ceiling
}
