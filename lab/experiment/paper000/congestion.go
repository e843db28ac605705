package paper000

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"math"
	"os/exec"

	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/cast"
	"github.com/volsfu/volsfu/lab/experiment/direct"
	"github.com/volsfu/volsfu/lab/rival"
)

//go:embed *.yaml
var files embed.FS

// Collection returns the experiments of this package.
func Collection() experiment.Collection {
	return experiment.Collection{Files: files, Scenarios: map[string]experiment.Scenario{
		"paper000/congestion": experiment.Define(defaultStage(), congestionQuantities, runCongestion),
		"paper000/breakdown":  experiment.Define(defaultBreakdown(), breakdownQuantities, runBreakdown),
		"paper000/quality":    experiment.Define(defaultQuality(), qualityQuantities, runQuality),
	}}
}

// congestionQuantities describe the stable state unless noted otherwise. Received rates belong to the frames captured
// in each second. Undecodable frames were published and did not arrive completely, including frames dropped by a
// server. Superseded frames arrived completely and were not decoded, mostly because a newer frame had arrived before.
// Transport latency is the time from encoded to the last packet received. Latency is the time from capture to decoded,
// and for the ladder to complete arrival. The queue contains the packets of all flows.
var congestionQuantities = []experiment.Quantity{
	{Name: "throughput", Unit: "Mbit/s", Label: "received, stable state"},
	{Name: "throughput_max", Unit: "Mbit/s", Label: "received, best second"},
	{Name: "throughput_startup", Unit: "Mbit/s", Label: "received, start-up"},
	{Name: "convergence", Unit: "s", Label: "until the rate is stable, since competitors began"},
	{Name: "estimate", Unit: "Mbit/s", Label: "estimate in the stable state"},
	{Name: "estimate_90", Unit: "s", Label: "until an estimate of 90 Mbit/s"},
	{Name: "undecodable", Unit: "%", Label: "undecodable frames"},
	{Name: "superseded", Unit: "%", Label: "superseded frames"},
	{Name: "server_dropped", Unit: "frames", Label: "dropped by the server, whole run"},
	{Name: "unsent", Unit: "%", Label: "frames not sent"},
	{Name: "transport", Unit: "ms", Label: "transport latency"},
	{Name: "transport_p95", Unit: "ms", Label: "transport latency, 95th percentile"},
	{Name: "transport_max", Unit: "ms", Label: "transport latency, largest"},
	{Name: "latency", Unit: "ms", Label: "latency"},
	{Name: "latency_p95", Unit: "ms", Label: "latency, 95th percentile"},
	{Name: "competitors", Unit: "Mbit/s", Label: "all competitors"},
	{Name: "queue_p95", Unit: "ms", Label: "queue, 95th percentile"},
	{Name: "queue_dropped", Unit: "packets", Label: "dropped by the queue, stable state"},
	{Name: "time_bound", Unit: "%", Label: "frames bound by encoding"},
}

// runCongestion measures one iteration.
func runCongestion(ctx context.Context, s stage, settings experiment.Settings) (*experiment.Outcome, error) {
	n, skipped, err := s.open(ctx, &settings)
	if skipped != nil || err != nil {
		return skipped, err
	}
	defer func() { _ = n.cast.Close() }()
	p, err := n.perform(ctx, func() (session, error) { return n.begin(ctx, "--decode=false") })
	if err != nil {
		return nil, err
	}
	outcome := experiment.NewOutcome()
	p.measure(outcome)
	n.judge(outcome, p)
	return outcome, nil
}

// measure computes the figures of a run.
func (p *performance) measure(o *experiment.Outcome) {
	for _, note := range p.notes {
		o.Note("%s", note)
	}
	seconds := perSecond(p.list, p.length)
	stable := part(p.list, p.stable, p.length)
	if from := int(p.stable); from < len(seconds) {
		o.Sample("throughput", seconds[from:])
		o.Set("throughput_max", experiment.Quantile(seconds[from:], 1))
		o.Set("throughput_startup", experiment.Mean(seconds[:from]))
		begin := 0.0
		if len(p.rates) > 0 {
			begin = p.began
		}
		if after, ok := convergence(seconds, begin, from); ok {
			o.Set("convergence", after)
		}
	}
	sent := count(stable, func(f *flight) bool { return f.Sent })
	lost := count(stable, func(f *flight) bool { return f.Sent && !f.Whole })
	o.Set("undecodable", share(lost, sent))
	o.Set("superseded", share(count(stable, func(f *flight) bool { return f.Whole && !f.Shown }), sent))
	if p.relayed != nil {
		o.Set("server_dropped", float64(p.relayed.FramesDropped))
	}
	o.Set("unsent", share(len(stable)-sent, len(stable)))
	p.measureTimes(o, stable)
	p.measureEstimates(o)
	if len(p.rates) > 0 {
		o.Set("competitors", rival.MeanRate(p.rates, p.stable-p.began, p.length-p.began)/1e6)
		var points [][2]float64
		for _, r := range p.rates {
			points = append(points, [2]float64{p.began + (r.From+r.Until)/2, r.BPS / 1e6})
		}
		o.Series("competitors", "s", "Mbit/s", points)
	}
	o.Set("queue_p95", float64(p.queue.waited.Quantile(0.95).Microseconds())/1e3)
	o.Set("queue_dropped", float64(p.queue.dropped))
	o.Set("time_bound", 100*p.bound)
	o.Series("received", "s", "Mbit/s", indexed(seconds))
}

func (p *performance) measureTimes(o *experiment.Outcome, stable []flight) {
	transport := collect(stable, func(f *flight) float64 { return f.Transport })
	latency := collect(stable, func(f *flight) float64 { return f.Latency })
	if len(transport) > 0 {
		o.Sample("transport", transport)
		o.Set("transport_p95", experiment.Quantile(transport, 0.95))
		o.Set("transport_max", experiment.Quantile(transport, 1))
	}
	if len(latency) > 0 {
		o.Sample("latency", latency)
		o.Set("latency_p95", experiment.Quantile(latency, 0.95))
	}
	var points [][2]float64
	for _, f := range part(p.list, 0, p.length) {
		if !math.IsNaN(f.Transport) {
			points = append(points, [2]float64{f.At, f.Transport})
		}
	}
	o.Series("transport", "s", "ms", points)
}

// whole is the paper's largest estimate, in Mbit/s.
const whole = 90

func (p *performance) measureEstimates(o *experiment.Outcome) {
	if len(p.estimates) == 0 {
		return
	}
	var stable []float64
	for _, e := range p.estimates {
		if e[0] >= p.stable {
			stable = append(stable, e[1])
		}
	}
	o.Sample("estimate", stable)
	// An estimate bounded by 90 Mbit/s reaches the bound except for rounding.
	if at, ok := firstAbove(p.estimates, 0.99*whole); ok {
		o.Set("estimate_90", at)
	}
	o.Series("estimate", "s", "Mbit/s", p.estimates)
}

// network is the network of a run, with its processes and the machine's meter.
type network struct {
	*direct.Metered
	cast     *cast.Cast
	stage    *stage
	settings *experiment.Settings
}

// open starts the network, or returns a skip that names the missing requirement.
func (s *stage) open(ctx context.Context, settings *experiment.Settings) (*network, *experiment.Outcome, error) {
	if s.Flows > 0 && s.Rival == rivalCubic {
		if _, err := exec.LookPath(rival.Program); err != nil {
			return nil, experiment.Skip("%s is missing, which generates the competing flows; make deps installs it",
				rival.Program), nil
		}
	}
	layout, err := s.layout(settings.Seed)
	if err != nil {
		return nil, nil, err
	}
	c, err := cast.Open(ctx, settings, layout)
	if cast.Lacking(err) {
		return nil, experiment.Skip("no network between processes: %v", err), nil
	}
	if err != nil {
		return nil, nil, err
	}
	metered, err := direct.NewMetered(c.Network())
	if err != nil {
		return nil, nil, errors.Join(err, c.Close())
	}
	return &network{metered, c, s, settings}, nil, nil
}

// begin starts the sender and the viewer. watch has additional flags for a viewer of the ladder.
func (n *network) begin(ctx context.Context, watch ...string) (session, error) {
	if n.stage.individual() {
		return n.startIndividual(ctx)
	}
	return n.startLadder(ctx, watch...)
}

// maxBound is the largest share of frames whose size may be determined by the encoding time instead of the rate.
const maxBound = 0.05

// judge sets the validity of the run.
func (n *network) judge(o *experiment.Outcome, p *performance) {
	n.Judge(o, p.pace)
	if p.bound > maxBound && o.Validity == experiment.Valid {
		o.Validity = experiment.CPUBound
		o.Reason = fmt.Sprintf("the encoding time, not the rate, determined the size of %.0f %% of the frames in the "+
			"stable state (bound: 5 %%)", 100*p.bound)
	}
}
