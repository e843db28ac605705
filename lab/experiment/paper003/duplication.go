package paper003

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/volsfu/volsfu/lab/baseline/tcp"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/direct"
	"github.com/volsfu/volsfu/lab/topology"
)

//go:embed *.yaml
var files embed.FS

// Collection returns the experiments of this package.
func Collection() experiment.Collection {
	return experiment.Collection{Files: files, Scenarios: map[string]experiment.Scenario{
		"paper003/conference": experiment.Define(defaultConference(), conferenceQuantities, runConference),
		"paper003/paths":      experiment.Define(defaultTrial(), quantities, run),
	}}
}

// arm is a way to use the paths.
type arm struct {
	// undisturbed is set if the delays do not vary.
	undisturbed bool
	// copies are those of the edges of volnet; empty without edges.
	copies string
	// control controls the routes until the context ends; nil leaves the default path.
	control func(context.Context, *topology.Network) error
}

// arms are the arms by name. "off" uses the default path, as "undisturbed" does. "redirection" uses the path with the
// shortest round trip: section V-C. "volnet" and "all" are the pair of edges with path control, and with copies on all
// paths at all times.
var arms = map[string]arm{
	"undisturbed": {undisturbed: true},
	"off":         {},
	"redirection": {control: redirect},
	"volnet":      {copies: "auto"},
	"all":         {copies: "all"},
}

// trial holds the parameters.
type trial struct {
	Arm       string `yaml:"arm"`
	Quality   string `yaml:"quality"`
	Variation string `yaml:"variation"`
	// FPS is the number of requests per second while frames arrive in time.
	FPS float64 `yaml:"fps"`
	// Congestion is the congestion control of the server.
	Congestion string `yaml:"congestion"`
}

func defaultTrial() trial {
	return trial{Arm: "off", Quality: "fhd", Variation: variationPacket, FPS: 30, Congestion: "bbr"}
}

// Validate implements the optional interface of experiment.Define.
func (t trial) Validate() error {
	if _, known := arms[t.Arm]; !known {
		return fmt.Errorf("arm: expected one of %s, got %q", strings.Join(slices.Sorted(maps.Keys(arms)), ", "), t.Arm)
	}
	if _, known := qualities[t.Quality]; !known {
		return fmt.Errorf("quality: expected one of %s, got %q", strings.Join(qualityNames(), ", "), t.Quality)
	}
	if t.Variation != variationPacket && t.Variation != variationDrift {
		return fmt.Errorf("variation: expected %s or %s, got %q", variationPacket, variationDrift, t.Variation)
	}
	if !(t.FPS > 0 && t.FPS <= 120) {
		return fmt.Errorf("fps: expected a number above 0, at most 120, got %g", t.FPS)
	}
	return nil
}

// interval is the time between frames.
func (t *trial) interval() time.Duration { return time.Duration(float64(time.Second) / t.FPS) }

// quantities describe the time of the variation, as the paper's figures do.
var quantities = []experiment.Quantity{
	{Name: "fps", Unit: "fps", Label: "frames received per second"},
	{Name: "fps_worst", Unit: "fps", Label: "frames received in the worst second"},
	{Name: "delay", Unit: "ms", Label: "from capture to reception"},
	{Name: "delay_p95", Unit: "ms", Label: "from capture to reception, 95th percentile"},
	{Name: "timely", Unit: "%", Label: "frames received within 150 ms of their capture"},
	{Name: "throughput", Unit: "Mbit/s", Label: "received"},
	{Name: "cost", Unit: "", Label: "packets on all paths, of the packets sent"},
	{Name: "sent", Unit: "", Label: "bytes on all paths, of the received"},
	{Name: "request_max", Unit: "ms", Label: "longest interval between requests"},
}

// timely is the age up to which a frame is in time: the paper's threshold for a stall.
const timely = 150 * time.Millisecond

// variation returns when the delays vary: from 10 to 50 of 60 seconds, as in section V.
func variation(length time.Duration) (begin, end time.Duration) { return length / 6, length * 5 / 6 }

// grace is the time after the last request in which frames may arrive.
const grace = 2 * time.Second

// run measures one iteration.
func run(ctx context.Context, t trial, s experiment.Settings) (outcome *experiment.Outcome, err error) {
	frames, err := encode(qualities[t.Quality], t.interval(), s.Seed)
	if err != nil {
		return nil, err
	}
	begin, end := variation(s.Duration)
	plan := layout(t.Variation, begin, end, s.Seed)
	if arms[t.Arm].undisturbed {
		plan = layout(t.Variation, 0, 0, s.Seed)
	}
	metered, skipped, err := direct.OpenMetered(ctx, plan)
	if skipped != nil || err != nil {
		return skipped, err
	}
	defer func() { _ = metered.Network.Close() }()
	p := &performance{trial: &t, begin: begin, end: end, viewer: viewer{interval: t.interval()}}
	if copies := arms[t.Arm].copies; copies != "" {
		if p.edges, err = startEdges(ctx, metered.Network, &s, copies); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, p.edges.stop()) }()
	}
	e, err := meet(ctx, metered.Network, t.Congestion)
	if errors.Is(err, tcp.ErrCongestion) {
		return experiment.Skip("%v", err), nil
	}
	if err != nil {
		return nil, err
	}
	defer e.close()
	if err := metered.Begin(); err != nil {
		return nil, err
	}
	if err := e.perform(ctx, metered, p, &frameSource{frames, t.interval()}, s.Duration); err != nil {
		return nil, err
	}
	outcome = experiment.NewOutcome()
	p.measure(outcome)
	metered.Judge(outcome, experiment.Pace{})
	return outcome, nil
}

// ends are the two ends of the connection.
type ends struct{ server, viewer net.Conn }

// meet connects the viewer's host to the server's.
func meet(ctx context.Context, n *topology.Network, congestion string) (e *ends, err error) {
	options := tcp.Options{Congestion: congestion}
	var listener net.Listener
	if err := n.Inside(hostServer, func() (err error) {
		listener, err = options.Listen(ctx, netip.AddrPortFrom(n.Address(hostServer), 0).String())
		return err
	}); err != nil {
		return nil, err
	}
	defer func() { _ = listener.Close() }()
	e = &ends{}
	if err := n.Inside(hostViewer, func() (err error) {
		e.viewer, err = options.DialOnce(ctx, "tcp", listener.Addr().String())
		return err
	}); err != nil {
		return nil, err
	}
	if e.server, err = listener.Accept(); err != nil {
		_ = e.viewer.Close()
		return nil, err
	}
	return e, nil
}

// close closes both ends.
func (e *ends) close() { _, _ = e.viewer.Close(), e.server.Close() }

// performance is the result of a run, and the time of the variation in it.
type performance struct {
	*trial
	begin, end time.Duration
	viewer     viewer
	edges      *edges // nil without
	// sent are the bytes that the server's interfaces had sent when the variation began and ended, and edge the states
	// of the server's edge.
	sent [2]uint64
	edge [2]edgeStatus
}

// perform runs both ends and the arm, until the last frame.
func (e *ends) perform(ctx context.Context, m *direct.Metered, p *performance, source *frameSource,
	length time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var others sync.WaitGroup
	watch := func(name string, f func() error) {
		others.Go(func() {
			if err := f(); err != nil {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	served := make(chan struct{})
	watch("server", func() error {
		defer close(served)
		return source.serve(e.server, m.Began)
	})
	if control := arms[p.Arm].control; control != nil {
		watch(p.Arm, func() error { return control(ctx, m.Network) })
	}
	watch("network", func() error { return p.count(ctx, m) })
	err := p.viewer.run(ctx, e.viewer, m.Began, length, grace)
	m.End()
	// The run has ended: closing a connection with answers under way is an error of the server, which does not count.
	cancel(nil)
	_ = e.viewer.Close()
	<-served
	others.Wait()
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// count reads the counters of the server's interfaces, and of its edge, when the variation begins and ends.
func (p *performance) count(ctx context.Context, m *direct.Metered) (err error) {
	for i, at := range []time.Duration{p.begin, p.end} {
		if err := m.Until(ctx, at, nil); err != nil {
			return nil // the run has ended
		}
		if p.edges != nil {
			if p.edge[i], err = p.edges.status(ctx, hostServer); err != nil {
				return err
			}
		}
		for _, n := range m.Network.Statistics().Router.Interfaces {
			if n.Namespace == hostServer {
				p.sent[i] += n.SentBytes
			}
		}
	}
	return nil
}

// measure computes the figures.
func (p *performance) measure(o *experiment.Outcome) {
	var frames []delivery
	for _, f := range p.viewer.frames {
		if f.received >= p.begin && f.received < p.end {
			frames = append(frames, f)
		}
	}
	seconds := int((p.end - p.begin) / time.Second)
	counts, rates := make([]float64, seconds), make([]float64, seconds)
	var delays []float64
	inTime, bytes := 0, 0
	for _, f := range frames {
		delay := f.received - f.captured
		delays = append(delays, delay.Seconds()*1e3)
		if delay <= timely {
			inTime++
		}
		bytes += f.bytes
		if second := int((f.received - p.begin) / time.Second); second < seconds {
			counts[second]++
			rates[second] += float64(f.bytes) * 8 / 1e6
		}
	}
	o.Sample("fps", counts)
	o.Set("fps_worst", slices.Min(counts))
	if len(delays) > 0 {
		o.Sample("delay", delays)
		o.Set("delay_p95", experiment.Quantile(delays, 0.95))
		o.Set("sent", float64(p.sent[1]-p.sent[0])/float64(bytes))
	}
	if p.edges != nil {
		o.Set("cost", float64(p.edge[1].copies()-p.edge[0].copies())/
			float64(p.edge[1].Sent.Packets-p.edge[0].Sent.Packets))
	}
	captured := (p.end - p.begin).Seconds() * p.FPS
	o.Set("timely", 100*min(float64(inTime)/captured, 1))
	o.Sample("throughput", rates)
	longest := time.Duration(0)
	for i, at := range p.viewer.requests[1:] {
		if at >= p.begin && at < p.end {
			longest = max(longest, at-p.viewer.requests[i])
		}
	}
	o.Set("request_max", longest.Seconds()*1e3)
	o.Series("frames", "s", "fps", indexed(counts, p.begin))
	o.Series("received", "s", "Mbit/s", indexed(rates, p.begin))
}

// indexed returns values per second as points, from a time on.
func indexed(values []float64, from time.Duration) (points [][2]float64) {
	for i, v := range values {
		points = append(points, [2]float64{from.Seconds() + float64(i), v})
	}
	return points
}
