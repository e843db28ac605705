package metrics

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/volsfu/volsfu/internal/netfn/control"
	"github.com/volsfu/volsfu/internal/netfn/edge"
)

// Source is read at each scrape.
type Source interface {
	// Snapshot returns the state of the edge and of the connection to its controller, which is nil without one.
	// Snapshot may be called by several goroutines at once.
	Snapshot() (edge.Status, *control.LinkState, error)
}

// Register registers the metrics of an edge, together with those of the Go runtime and of the process.
func Register(registerer prometheus.Registerer, version string, source Source) error {
	c := &collector{version: version, source: source, descs: make(map[string]*prometheus.Desc, len(families)),
		kinds: make(map[string]prometheus.ValueType, len(families))}
	for _, f := range families {
		c.descs[f.name], c.kinds[f.name] = f.desc(), f.kind()
	}
	for _, each := range []prometheus.Collector{
		c, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := registerer.Register(each); err != nil {
			return fmt.Errorf("register metrics: %w", err)
		}
	}
	return nil
}

// collector converts the state of an edge to metrics.
type collector struct {
	version string
	source  Source
	descs   map[string]*prometheus.Desc
	kinds   map[string]prometheus.ValueType
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, f := range families {
		to <- c.descs[f.name]
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	status, link, err := c.source.Snapshot()
	if err != nil {
		to <- prometheus.NewInvalidMetric(c.descs[peerAlive], err)
		return
	}
	e := emitter{c, to}
	e.write(buildInfo, 1, c.version)
	e.write(readopted, flag(status.Readopted))
	e.write(peerAlive, flag(status.PeerAlive))
	e.count(selectedPackets, status.Sent.Packets)
	e.count(selectedBytes, status.Sent.Bytes)
	e.count(plainPackets, status.Sent.Plain)
	e.count(unnumberedPackets, status.Sent.Refused)
	e.write(costFactor, status.Sent.CostFactor)
	for _, p := range status.Paths {
		e.path(p)
	}
	for _, r := range status.Rules {
		e.write(rulePaths, float64(len(r.Set)), r.Name, "set")
		e.write(rulePaths, float64(len(r.Probes)), r.Name, "probe")
		e.write(ruleTriggered, flag(r.Triggered), r.Name)
	}
	e.control(status.Control)
	if link != nil {
		e.write(controllerUp, flag(link.Connected))
		e.count(controllerFailure, link.Failures)
	}
}

// emitter writes the metrics of one scrape.
type emitter struct {
	*collector
	to chan<- prometheus.Metric
}

func (e emitter) write(name string, value float64, labels ...string) {
	e.to <- prometheus.MustNewConstMetric(e.descs[name], e.kinds[name], value, labels...)
}

func (e emitter) count(name string, value uint64, labels ...string) {
	e.write(name, float64(value), labels...)
}

// states are the values of the label state.
var states = []edge.PathState{
	edge.PathUp, edge.PathNoInterface, edge.PathDown, edge.PathNoAddress, edge.PathNoRoute, edge.PathNoNeighbour,
}

func (e emitter) path(p edge.PathStatus) {
	e.count(pathPackets, p.Sent.Packets, p.Name, "out")
	e.count(pathPackets, p.Received.Packets, p.Name, "in")
	e.count(pathBytes, p.Sent.Bytes, p.Name, "out")
	e.count(pathBytes, p.Received.Bytes, p.Name, "in")
	e.count(pathFirst, p.Received.First, p.Name)
	e.count(pathRepeated, p.Received.Repeated, p.Name)
	e.count(pathOutside, p.Received.Outside, p.Name)
	e.count(pathOversize, p.Sent.Oversize, p.Name)
	e.count(pathFailedClones, p.Sent.FailedClones, p.Name)
	e.count(pathRefused, p.Received.Refused, p.Name)
	e.count(pathMalformed, p.Received.Malformed, p.Name)
	e.count(pathCongested, p.Received.Congested, p.Name)
	for _, state := range states {
		e.write(pathState, flag(p.State == state), p.Name, string(state))
	}
	e.write(pathMTU, float64(p.MTU), p.Name)
	if p.Report == nil {
		return
	}
	e.write(pathLoss, p.Report.Loss, p.Name)
	e.write(pathInTime, p.Report.InTime, p.Name)
	e.write(pathOnlyInTime, p.Report.OnlyInTime, p.Name)
	e.write(pathDelay, p.Report.DelaySeconds, p.Name)
}

func (e emitter) control(c edge.ControlCounts) {
	e.count(controlMessages, c.HellosSent, "hello", "out")
	e.count(controlMessages, c.HellosReceived, "hello", "in")
	e.count(controlMessages, c.ReportsSent, "report", "out")
	e.count(controlMessages, c.ReportsReceived, "report", "in")
	e.count(controlDropped, c.Malformed, "malformed")
	e.count(controlDropped, c.Forged, "forged")
	e.count(controlDropped, c.Replayed, "replayed")
	e.count(controlDropped, c.Reflected, "reflected")
	e.count(controlDropped, c.Stale, "stale")
	e.count(controlDropped, c.Misplaced, "misplaced")
}

// flag is 1 for true.
func flag(value bool) float64 {
	if value {
		return 1
	}
	return 0
}
