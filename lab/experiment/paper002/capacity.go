package paper002

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/cast"
	"github.com/volsfu/volsfu/lab/experiment/direct"
	"github.com/volsfu/volsfu/lab/probe"
	"github.com/volsfu/volsfu/lab/rival"
	"github.com/volsfu/volsfu/lab/topology"
)

// The measurements of the link, as in the paper: iperf with UDP and with TCP, and ping.
const (
	protocolUDP    = "udp"
	protocolTCP    = "tcp"
	protocolProbes = "probes"
)

// capacity measures the link of the paper's streams without a stream.
type capacity struct {
	// Protocol is udp, tcp (one flow with Cubic) or probes.
	Protocol string `yaml:"protocol"`
	// Offered is the rate of UDP in Mbit/s, above the capacity of the link. Size is the size of the datagrams without
	// headers, the paper's chunks.
	Offered float64 `yaml:"offered"`
	Size    int     `yaml:"size"`
	// Interval is the time between two probes.
	Interval time.Duration `yaml:"interval"`
	// Link and Back are those of the streams.
	Link string `yaml:"link"`
	Back string `yaml:"back"`
}

func defaultCapacity() capacity {
	s := defaultStreaming()
	return capacity{Protocol: protocolUDP, Offered: 200, Size: 1400, Interval: 10 * time.Millisecond, Link: s.Link,
		Back: s.Back}
}

// Validate implements the optional interface of experiment.Define.
func (p capacity) Validate() error {
	switch {
	case p.Protocol != protocolUDP && p.Protocol != protocolTCP && p.Protocol != protocolProbes:
		return fmt.Errorf("protocol: expected %s, %s or %s, got %q",
			protocolUDP, protocolTCP, protocolProbes, p.Protocol)
	case !(p.Offered > 0 && p.Offered <= 10_000) || p.Size < 16 || p.Size > 1472 || p.Interval <= 0:
		return errors.New("offered, size, interval: expected a rate up to 10000 Mbit/s, 16 to 1472 bytes, and a time")
	}
	_, err := layoutOf(p.Link, p.Back, 0)
	return err
}

// capacityQuantities are the columns of the paper's table 1.
var capacityQuantities = []experiment.Quantity{
	{Name: "throughput", Unit: "MB/s", Label: "received, without headers"},
	{Name: "latency", Unit: "ms", Label: "one-way latency"},
	{Name: "latency_deviation", Unit: "ms", Label: "one-way latency, deviation"},
	{Name: "lost", Unit: "%", Label: "lost packets"},
}

// runCapacity measures one iteration.
func runCapacity(ctx context.Context, p capacity, settings experiment.Settings) (*experiment.Outcome, error) {
	if p.Protocol != protocolProbes {
		if _, err := exec.LookPath(rival.Program); err != nil {
			return experiment.Skip("%s is missing; make deps installs it", rival.Program), nil
		}
	}
	layout, err := layoutOf(p.Link, p.Back, settings.Seed)
	if err != nil {
		return nil, err
	}
	c, err := cast.Open(ctx, &settings, layout)
	if cast.Lacking(err) {
		return experiment.Skip("no network between processes: %v", err), nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	m, err := direct.NewMetered(c.Network())
	if err != nil {
		return nil, err
	}
	outcome := experiment.NewOutcome()
	outcome.Note("The link from producer to consumer is %s; the other direction is %s.", p.Link, p.Back)
	if p.Protocol == protocolProbes {
		err = p.probe(ctx, outcome, c, m, settings.Duration)
	} else {
		err = p.transfer(ctx, outcome, m, settings.Duration)
	}
	if err != nil {
		return nil, err
	}
	m.Judge(outcome, experiment.Pace{})
	return outcome, nil
}

// probe measures the latency of the empty link for a time.
func (p *capacity) probe(ctx context.Context, o *experiment.Outcome, c *cast.Cast, m *direct.Metered,
	length time.Duration) error {
	if err := m.Begin(); err != nil {
		return err
	}
	departures, arrivals, err := c.Exchange(ctx, cast.Probes{From: hostProducer, To: hostConsumer, Size: probe.MinSize,
		Count: max(2, int(length/p.Interval)), Interval: p.Interval})
	if err != nil {
		return err
	}
	m.End()
	measurePassages(o, len(departures), probe.Match(departures, arrivals))
	return nil
}

// measurePassages sets the figures of probes.
func measurePassages(o *experiment.Outcome, sent int, passages []probe.Passage) {
	var latencies []float64
	for i := range passages {
		if ns := passages[i].Total; ns != probe.Missing {
			latencies = append(latencies, float64(ns)/1e6)
		}
	}
	if len(latencies) == 0 {
		o.Invalidate("no packet arrived")
		return
	}
	o.Sample("latency", latencies)
	o.Set("latency_deviation", direct.Deviation(latencies))
	o.Set("lost", 100*float64(sent-len(passages))/float64(sent))
}

// transfer measures the rate of one flow for a time, after warming up.
func (p *capacity) transfer(ctx context.Context, o *experiment.Outcome, m *direct.Metered, length time.Duration) error {
	// iperf3 takes whole seconds.
	whole := time.Duration(math.Ceil((warmUp + length).Seconds())) * time.Second
	var flow *rival.Iperf
	var err error
	if p.Protocol == protocolTCP {
		flow, err = rival.StartCubic(ctx, m.Network, hostProducer, hostConsumer, 1, whole)
	} else {
		flow, err = rival.StartUDP(ctx, m.Network, hostProducer, hostConsumer, int64(p.Offered*1e6), p.Size, whole)
	}
	if err != nil {
		return err
	}
	defer flow.Stop()
	if err := m.Begin(); err != nil {
		return err
	}
	var wires [2]topology.WireStatistics
	for i, at := range []time.Duration{warmUp, warmUp + length} {
		if err := m.Until(ctx, at, nil); err != nil {
			return err
		}
		statistics := m.Network.Statistics()
		wires[i] = statistics.Wire("link", topology.Forth)
	}
	m.End()
	if _, err := flow.Wait(ctx); err != nil {
		return err
	}
	o.Set("lost", lost(&wires[0].Stats, &wires[1].Stats))
	o.Set("throughput", float64(p.content(&wires[0].Stats, &wires[1].Stats))/length.Seconds()/1e6)
	return nil
}

// headers are the sizes of the headers of IPv4 with UDP, and of IPv4 with TCP and its timestamps.
var headers = map[string]uint64{protocolUDP: 20 + 8, protocolTCP: 20 + 32}

// content returns the bytes without headers that arrived over the link between two counts. The rates that iperf3's
// sender reports also count what waits in its socket.
func (p *capacity) content(earlier, later *netem.Stats) uint64 {
	all, packets := later.DeliveredBytes-earlier.DeliveredBytes, later.Delivered-earlier.Delivered
	return all - min(all, packets*headers[p.Protocol])
}

// lost returns the share of the packets of a link that its queue dropped between two counts, in per cent.
func lost(earlier, later *netem.Stats) float64 {
	sent := later.Sent - earlier.Sent
	if sent == 0 {
		return 0
	}
	return 100 * float64(later.DroppedQueue-earlier.DroppedQueue) / float64(sent)
}
