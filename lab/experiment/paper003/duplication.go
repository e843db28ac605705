package paper003

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net"
	"net/netip"
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

// trial holds the parameters.
type trial struct {
	Arm       string `yaml:"arm"`
	Quality   string `yaml:"quality"`
	Variation string `yaml:"variation"`
	// FPS is the number of requests per second while frames arrive in time.
	FPS float64 `yaml:"fps"`
	// Outstanding is the largest number of requests without a complete answer.
	Outstanding int `yaml:"outstanding"`
	// Congestion is the congestion control of the server.
	Congestion string `yaml:"congestion"`
	// Trigger is the trigger of the arm "paper".
	Trigger string `yaml:"trigger"`
	// Packets is set if the delays of single packets are measured.
	Packets bool `yaml:"packets"`
}

func defaultTrial() trial {
	return trial{Arm: "off", Quality: "fhd", Variation: VariationPacket, FPS: 30, Outstanding: outstanding,
		Congestion: "bbr", Trigger: triggerRequests}
}

// outstanding is the default of Outstanding: 4 intervals of a frame are 133 ms at 30 frames per second. That is more
// than the round trip of table I's paths 1, 2 and 5 with a capture interval, up to 103 ms, but less than the 200 ms of
// paths 3 and 4, and less than BBR's search for the least round trip (PROBE_RTT: four packets for 200 ms, every 10 s).
// Four requests therefore show the paper's stall of a single varying path, and cost even the undisturbed path some
// frames every 10 s.
const outstanding = 4

// maxOutstanding bounds the requests under way: one second at 30 frames per second.
const maxOutstanding = 30

// Validate implements the optional interface of experiment.Define.
func (t trial) Validate() error {
	if _, known := arms[t.Arm]; !known {
		return fmt.Errorf("arm: expected one of %s, got %q", strings.Join(armNames(), ", "), t.Arm)
	}
	if _, known := qualities[t.Quality]; !known {
		return fmt.Errorf("quality: expected one of %s, got %q", strings.Join(qualityNames(), ", "), t.Quality)
	}
	if t.Variation != VariationPacket && t.Variation != VariationDrift {
		return fmt.Errorf("variation: expected %s or %s, got %q", VariationPacket, VariationDrift, t.Variation)
	}
	if t.Trigger != triggerRequests && t.Trigger != triggerOnset {
		return fmt.Errorf("trigger: expected %s or %s, got %q", triggerRequests, triggerOnset, t.Trigger)
	}
	if t.Outstanding < 1 || t.Outstanding > maxOutstanding {
		return fmt.Errorf("outstanding: expected 1 to %d requests, got %d", maxOutstanding, t.Outstanding)
	}
	if !(t.FPS > 0 && t.FPS <= 120) {
		return fmt.Errorf("fps: expected a number above 0, at most 120, got %g", t.FPS)
	}
	return nil
}

// interval is the time between frames.
func (t *trial) interval() time.Duration { return time.Duration(float64(time.Second) / t.FPS) }

// run measures one iteration.
func run(ctx context.Context, t trial, s experiment.Settings) (outcome *experiment.Outcome, err error) {
	frames, err := encode(qualities[t.Quality], t.interval(), s.Seed)
	if err != nil {
		return nil, err
	}
	begin, end := variation(s.Duration)
	varying := []Variation{{t.Variation, begin, end}}
	if arms[t.Arm].undisturbed {
		varying = nil
	}
	metered, skipped, err := direct.OpenMetered(ctx, Layout(varying, s.Seed))
	if skipped != nil || err != nil {
		return skipped, err
	}
	defer func() { _ = metered.Network.Close() }()
	p := &performance{trial: &t, begin: begin, end: end,
		viewer: viewer{interval: t.interval(), outstanding: t.Outstanding}}
	if p.method, skipped, err = t.start(ctx, metered.Network, &s); skipped != nil || err != nil {
		return skipped, err
	}
	defer func() { err = errors.Join(err, p.method.close()) }()
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
	if err := p.record(metered, func() error {
		source := &frameSource{frames, t.interval(), p.method.requested}
		return e.perform(ctx, metered, p, source, s.Duration)
	}); err != nil {
		return nil, err
	}
	outcome = experiment.NewOutcome()
	outcome.Note(scaled)
	p.measure(outcome)
	if p.method.describe != nil {
		p.method.describe(outcome, metered.Began.Add(begin))
	}
	metered.Judge(outcome, experiment.Pace{})
	return outcome, nil
}

// ends are the two ends of the connection.
type ends struct{ server, viewer net.Conn }

// meet connects the viewer's host to the server's.
func meet(ctx context.Context, n *topology.Network, congestion string) (e *ends, err error) {
	options := tcp.Options{Congestion: congestion}
	var listener net.Listener
	if err := n.Inside(HostServer, func() (err error) {
		listener, err = options.Listen(ctx, netip.AddrPortFrom(n.Address(HostServer), 0).String())
		return err
	}); err != nil {
		return nil, err
	}
	defer func() { _ = listener.Close() }()
	e = &ends{}
	if err := n.Inside(HostViewer, func() (err error) {
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
	method     *method
	// readings are the counters once per second of the variation. They belong to count until perform returns.
	readings []reading
	// passages are those of the packets to the viewer if the trial measures packets.
	passages []passage
}

// record calls a function and records the passages of packets meanwhile, if the trial measures packets.
func (p *performance) record(m *direct.Metered, f func() error) error {
	if !p.Packets {
		return f()
	}
	left, err := openTap(m.Network, HostServer, true)
	if err != nil {
		return err
	}
	defer left.close()
	arrived, err := openTap(m.Network, HostViewer, false)
	if err != nil {
		return err
	}
	defer arrived.close()
	err = f()
	left.stop()
	arrived.stop()
	p.passages = passages(left, arrived, m.Began)
	return err
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
	if control := p.method.control; control != nil {
		watch(p.Arm, func() error { return control(ctx, m.Began.Add(p.begin)) })
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

// countInterval is the time between two readings of the counters.
const countInterval = time.Second

// count reads the counters of the server's interfaces and of the method, from the beginning of the variation to its
// end.
func (p *performance) count(ctx context.Context, m *direct.Metered) error {
	for at := p.begin; ; at = min(at+countInterval, p.end) {
		if err := m.Until(ctx, at, nil); err != nil {
			return nil // the run has ended
		}
		r := reading{at: time.Since(m.Began)}
		for _, n := range m.Network.Statistics().Router.Interfaces {
			if n.Namespace == HostServer {
				r.sent = append(r.sent, n.SentBytes)
			}
		}
		if p.method.count != nil {
			var err error
			if r.packets, err = p.method.count(ctx); ctx.Err() != nil {
				return nil
			} else if err != nil {
				return err
			}
		}
		p.readings = append(p.readings, r)
		if at == p.end {
			return nil
		}
	}
}
