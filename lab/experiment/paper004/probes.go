package paper004

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/cast"
	"github.com/volsfu/volsfu/lab/hosts"
	"github.com/volsfu/volsfu/lab/probe"
	"github.com/volsfu/volsfu/lab/topology"
)

// The segments of the path.
const (
	// segmentA is the path from the sender to the server, segmentB the path from the server to a receiver, both over
	// the emulated network. segmentLoopback is the kernel on one host.
	segmentA        = "A"
	segmentB        = "B"
	segmentLoopback = "loopback"
)

// probes is a run of probe packets over one segment.
type probes struct {
	Segment  string        `yaml:"segment"`
	Size     int           `yaml:"size"`
	Count    int           `yaml:"count"`
	Interval time.Duration `yaml:"interval"`
	// Up and Down are the links of segments A and B, in the syntax of netem's profiles.
	Up   string `yaml:"up"`
	Down string `yaml:"down"`
}

// defaultProbes has the paper's 300 packets. Segment B has a kilometre of fibre, 5 µs, and two switches of 5 µs each.
func defaultProbes() probes {
	return probes{Segment: segmentA, Size: 128, Count: 300, Interval: 10 * time.Millisecond, Up: "delay=5us",
		Down: "delay=15us"}
}

// Validate implements the optional interface of experiment.Define.
func (p probes) Validate() error {
	if p.Segment != segmentA && p.Segment != segmentB && p.Segment != segmentLoopback {
		return fmt.Errorf("segment: expected %s, %s or %s, got %q", segmentA, segmentB, segmentLoopback, p.Segment)
	}
	if p.Size < probe.MinSize || p.Size > probe.MaxSize || p.Count < 1 || p.Interval < 0 {
		return errors.New("size, count, interval: expected the bytes of an IP packet, and numbers above 0")
	}
	_, err := p.layout(0)
	return err
}

// layout returns the network of the paper: sender, server and receiver.
func (p *probes) layout(seed uint64) (*topology.Topology, error) {
	up, err := netem.ParseProfile(p.Up)
	if err != nil {
		return nil, fmt.Errorf("up: %w", err)
	}
	down, err := netem.ParseProfile(p.Down)
	if err != nil {
		return nil, fmt.Errorf("down: %w", err)
	}
	return &topology.Topology{
		Hosts: map[string]topology.Host{"sender": {}, "server": {}, "receiver": {}},
		Links: map[string]topology.Link{segmentA: topology.Duplex(up), segmentB: topology.Duplex(down)},
		Paths: []topology.Path{
			{From: "sender", To: "server", Through: []topology.Passage{{Link: segmentA}}},
			{From: "server", To: "receiver", Through: []topology.Passage{{Link: segmentB}}},
		},
		Seed: seed,
	}, nil
}

// ends returns the hosts of the segment.
func (p *probes) ends() (from, to string) {
	switch p.Segment {
	case segmentA:
		return "sender", "server"
	case segmentB:
		return "server", "receiver"
	}
	return "server", "server"
}

// probeQuantities are the paper's: TX_SW is from the program to the network device, TX_HW from there to the wire, RX_HW
// from card to card with switches and propagation, RX_SW from the kernel to the program.
var probeQuantities = []experiment.Quantity{
	{Name: "tx_sw", Unit: "µs", Label: "TX_SW"},
	{Name: "tx_hw", Unit: "µs", Label: "TX_HW"},
	{Name: "rx_hw", Unit: "µs", Label: "RX_HW"},
	{Name: "rx_sw", Unit: "µs", Label: "RX_SW"},
	{Name: "wire", Unit: "µs", Label: "kernel to kernel"},
	{Name: "total", Unit: "µs", Label: "program to program"},
	{Name: "total_p95", Unit: "µs", Label: "program to program, 95th percentile"},
	{Name: "lost", Unit: "packets", Label: "lost"},
}

// runProbes measures one iteration.
func runProbes(ctx context.Context, p probes, settings experiment.Settings) (*experiment.Outcome, error) {
	layout, err := p.layout(settings.Seed)
	if err != nil {
		return nil, err
	}
	if settings.Hosts != nil {
		layout = nil
	}
	c, err := cast.Open(ctx, &settings, layout)
	if cast.Lacking(err) {
		return experiment.Skip("no network between processes: %v", err), nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	before, err := c.MachineTimes()
	if err != nil {
		return nil, err
	}
	w := cast.Window{From: time.Now()}
	from, to := p.ends()
	departures, arrivals, err := c.Exchange(ctx, cast.Probes{From: from, To: to, Size: p.Size, Count: p.Count,
		Interval: p.Interval})
	if err != nil {
		return nil, err
	}
	w.To = time.Now()
	after, err := c.MachineTimes()
	if err != nil {
		return nil, err
	}
	outcome := experiment.NewOutcome()
	if settings.Hosts != nil {
		outcome.Note("Segment %s is the network of the hosts: %s.", p.Segment, settings.Hosts.Link())
	}
	if err := c.NoteClocks(outcome, w, from, to); err != nil {
		return nil, err
	}
	measureProbes(outcome, departures, arrivals)
	pace := experiment.Pace{Wanted: p.Count, Done: len(arrivals), Busy: hosts.Busiest(before, after)}
	if p.Segment != segmentLoopback && c.Network() != nil {
		v := c.Network().Validity()
		pace.Disturbed, pace.Late = v.Disturbance, v.Reason
	}
	outcome.Judge(pace)
	return outcome, nil
}

// measureProbes computes the figures of stamps. For stamps that the system does not provide there is a note instead of
// a figure.
func measureProbes(o *experiment.Outcome, departures []probe.Departure, arrivals []probe.Arrival) {
	passages := probe.Match(departures, arrivals)
	o.Set("lost", float64(len(departures)-len(passages)))
	parts := []struct {
		figure string
		of     func(*probe.Passage) int64
		absent string
		// hosts is set if the time is between the kernels or programs of two hosts.
		hosts bool
	}{
		{"tx_sw", func(p *probe.Passage) int64 { return p.TxSoftware },
			"TX_SW is absent: the kernel stamped no packet when sending.", false},
		{"tx_hw", func(p *probe.Passage) int64 { return p.TxHardware },
			"TX_HW is absent: no network card with a clock of its own is on the path.", false},
		{"rx_hw", func(p *probe.Passage) int64 { return p.RxHardware },
			"RX_HW is absent: no network card with a clock of its own is on the path; the time from kernel to kernel " +
				"replaces it.", false},
		{"rx_sw", func(p *probe.Passage) int64 { return p.RxSoftware },
			"RX_SW is absent: the kernel stamped no packet when receiving.", false},
		{"wire", func(p *probe.Passage) int64 { return p.Wire }, "", true},
		{"total", func(p *probe.Passage) int64 { return p.Total }, "", true},
	}
	for _, part := range parts {
		var values []float64
		for i := range passages {
			// A card has a clock of its own, which the system's need not follow: then its stamps mean nothing.
			if ns := part.of(&passages[i]); ns >= 0 || part.hosts && ns != probe.Missing {
				values = append(values, float64(ns)/1e3)
			}
		}
		if len(values) == 0 && part.absent != "" {
			o.Note("%s", part.absent)
		}
		o.Sample(part.figure, values)
		if part.figure == "total" && len(values) > 0 {
			o.Set("total_p95", experiment.Quantile(values, 0.95))
		}
	}
	if len(passages) == 0 {
		o.Invalidate("no packet arrived")
	}
}
