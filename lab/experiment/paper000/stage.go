package paper000

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab/carriage"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/direct"
	"github.com/volsfu/volsfu/lab/rival"
	"github.com/volsfu/volsfu/lab/topology"
	"github.com/volsfu/volsfu/pkg/frametimes"
)

// The senders.
const (
	// senderVolsfu is vollab direct. As the paper's sender does, it encodes each frame for one viewer at the estimated
	// rate.
	senderVolsfu = "volsfu"
	// senderPaper is senderVolsfu with the controller and the pacing of the paper's L4S sender.
	senderPaper = "paper000"
	// senderServer is volsfu's server between a publisher of a ladder of qualities and a watcher; the bottleneck is
	// behind the server.
	senderServer = "volsfu-server"
	// senderPion is Pion with its own GCC, as in the paper. The estimate selects a quality of the same ladder.
	senderPion = "pion"
	// senderPatched is Pion with two defects of its GCC corrected (package baseline/rtc/gcc).
	senderPatched = "pion-patched"
)

// senders lists all senders.
var senders = []string{senderVolsfu, senderPaper, senderServer, senderPion, senderPatched}

// individual reports whether the sender is vollab direct, which encodes each frame for its viewer.
func (s *stage) individual() bool { return s.Sender == senderVolsfu || s.Sender == senderPaper }

// The transports, with the paper's names of its two implementations.
const (
	// transportWebRTC is GCC, with packets that are not ECN-capable.
	transportWebRTC = "webrtc"
	// transportL4S is a controller that follows marks, with packets as ECT(1).
	transportL4S = "l4s"
)

// transports lists the transports of each sender.
var transports = map[string][]string{
	senderVolsfu:  {transportWebRTC, transportL4S},
	senderServer:  {transportWebRTC, transportL4S},
	senderPaper:   {transportL4S},
	senderPion:    {transportWebRTC},
	senderPatched: {transportWebRTC},
}

// controller returns the congestion controller of volsfu's senders.
func (s *stage) controller() string {
	switch {
	case s.Sender == senderPaper:
		return congestion.ControllerPaper000
	case s.Transport == transportL4S:
		return congestion.ControllerAuto
	}
	return congestion.ControllerGCC
}

// stage is the network of the paper with its sender.
type stage struct {
	Sender string `yaml:"sender"`
	// Transport is webrtc or l4s.
	Transport string `yaml:"transport"`
	// Bitrate is the rate of a sender without an estimate, in Mbit/s; 0 selects the estimate.
	Bitrate float64 `yaml:"bitrate"`
	// Flows is the number of competitors, Rival their congestion control: cubic or prague.
	Flows int    `yaml:"flows"`
	Rival string `yaml:"rival"`
	// Queue, Rate and Delay are the bottleneck's queue, its rate and the delay of each direction, in the syntax of
	// netem's profiles.
	Queue string `yaml:"queue"`
	Rate  string `yaml:"rate"`
	Delay string `yaml:"delay"`
	// Points is the number of points of a captured cloud.
	Points int     `yaml:"points"`
	FPS    float64 `yaml:"fps"`
	Bits   int     `yaml:"bits"`
	Speed  int     `yaml:"speed"`
	// Competing is when competitors begin; Startup is the length of the first phase. In a run that ends before, or soon
	// after, the first phase is half of the run's length.
	Competing time.Duration `yaml:"competing"`
	Startup   time.Duration `yaml:"startup"`
}

// defaultStage is the setup of section 4.2. The paper does not contain the depth of the queue: 25 ms at its rate is a
// little more than one round trip. Linux' fair queue holds the same for four flows at its default of 100 packets each.
func defaultStage() stage {
	return stage{
		Sender: senderVolsfu, Transport: transportWebRTC, Rival: rivalCubic, Queue: "paper000:25ms", Rate: "200Mbit",
		Delay: "10ms", Points: 125_000, FPS: 30, Bits: 11, Speed: 7,
		Competing: 5 * time.Second, Startup: 30 * time.Second,
	}
}

// maxFlows bounds competitors: the limit of iperf3.
const maxFlows = 128

// Validate implements the optional interface of experiment.Define.
func (s stage) Validate() error {
	switch {
	case !slices.Contains(senders, s.Sender):
		return fmt.Errorf("sender: expected one of %s, got %q", strings.Join(senders, ", "), s.Sender)
	case !slices.Contains(transports[s.Sender], s.Transport):
		return fmt.Errorf("transport: sender %s has %s, got %q", s.Sender, strings.Join(transports[s.Sender], ", "),
			s.Transport)
	case s.Bitrate < 0 || s.Bitrate > 0 && s.Sender != senderVolsfu:
		return fmt.Errorf("bitrate: expected 0, or a rate in Mbit/s with sender %s, got %g with %s", senderVolsfu,
			s.Bitrate, s.Sender)
	case s.Rival != rivalCubic && s.Rival != rivalPrague:
		return fmt.Errorf("rival: expected %s or %s, got %q", rivalCubic, rivalPrague, s.Rival)
	case s.Flows < 0 || s.Flows > maxFlows:
		return fmt.Errorf("flows: expected 0 to %d, got %d", maxFlows, s.Flows)
	case s.Points < 1 || !(s.FPS > 0) || s.Bits < 1 || s.Bits > 30 || s.Speed < 0 || s.Speed > 10:
		return errors.New("points, fps, bits, speed: expected numbers above 0, bits up to 30, speed 0 to 10")
	case s.Competing < 0 || s.Startup <= 0:
		return errors.New("competing, startup: expected times")
	}
	_, _, err := s.links()
	return err
}

// links returns both directions of the bottleneck. Only the direction towards the viewer has a rate.
func (s *stage) links() (forth, back netem.Config, err error) {
	if forth, err = netem.ParseProfile(fmt.Sprintf("rate=%s,delay=%s,queue=%s", s.Rate, s.Delay, s.Queue)); err != nil {
		return forth, back, fmt.Errorf("rate, delay, queue: %w", err)
	}
	back, err = netem.ParseProfile("delay=" + s.Delay)
	return forth, back, err
}

// leastStable is the least length of a stable state.
const leastStable = 5 * time.Second

// phases returns the times at which competitors and the stable state begin, in a run of the given length.
func (s *stage) phases(length time.Duration) (competing, stable time.Duration) {
	if stable = s.Startup; length < stable+leastStable {
		stable = length / 2
	}
	return min(s.Competing, stable/2), stable
}

// Hosts of the network.
const (
	hostSender   = "sender"
	hostReceiver = "receiver"
	bottleneck   = "bottleneck"
)

// layout returns the topology of the network.
func (s *stage) layout(seed uint64) (*topology.Topology, error) {
	forth, back, err := s.links()
	if err != nil {
		return nil, err
	}
	return &topology.Topology{
		Hosts: map[string]topology.Host{hostSender: {}, hostReceiver: {}},
		Links: map[string]topology.Link{bottleneck: {Forth: topology.Direction{Config: forth},
			Back: topology.Direction{Config: back}}},
		Paths: []topology.Path{{From: hostSender, To: hostReceiver, Through: []topology.Passage{{Link: bottleneck}}}},
		Seed:  seed,
	}, nil
}

// session is a running sender and viewer.
type session interface {
	// ended is closed when the viewer has ended, which happens early after a failure.
	ended() <-chan struct{}
	// wait waits until both have ended, and returns the results of the frames.
	wait(ctx context.Context) (*flights, error)
	// stop ends both early.
	stop() error
}

// flights are the frames of a run.
type flights struct {
	list []flight
	// estimates are the sender's estimates through the bottleneck, in Mbit/s over time in seconds.
	estimates [][2]float64
	// pace is the machine's pace. bound is the share of frames in the stable state whose size was limited by the
	// encoding time.
	pace   experiment.Pace
	bound  float64
	notes  []string
	source direct.Source
	// prepared are the frames of the ladder, nil if clouds were encoded while they were captured. since is the time in
	// seconds from the capture of the first frame to the beginning of the run, negative if the frame was captured
	// later.
	prepared *prepared
	since    float64
	// frames is the log of vollab direct; sent and received are the records of other senders.
	frames         []direct.Frame
	sent, received []frametimes.Record
	// relayed is a server's counts, nil if there is no server.
	relayed *carriage.Relayed
}

// performance is the result of a run.
type performance struct {
	*flights
	// stable is the beginning of the stable state, in seconds.
	stable, length float64
	// rates are the rates of all competitors together. began is their beginning, in seconds.
	rates []rival.Rate
	began float64
	// queue describes the bottleneck's queue in the stable state, with the packets of all flows.
	queue queueing
}

// queueing describes a queue over some time: the waiting times of the packets that left it, and the number of dropped
// packets.
type queueing struct {
	waited  netem.DelayCounts
	dropped uint64
}

// queueingBetween returns the difference of two counts.
func queueingBetween(earlier, later *topology.WireStatistics) queueing {
	return queueing{later.Waited.Since(&earlier.Waited), later.DroppedQueue - earlier.DroppedQueue}
}

// errNoFrame reports that a sender has failed. The iteration then counts as failed, and is not left out.
var errNoFrame = errors.New("no frame was sent")

// perform runs sender, viewer and competitors.
func (n *network) perform(ctx context.Context, begin func() (session, error)) (*performance, error) {
	running, err := begin()
	if err != nil {
		return nil, err
	}
	if err := n.Begin(); err != nil {
		return nil, errors.Join(err, running.stop())
	}
	length := n.settings.Duration
	competing, stable := n.stage.phases(length)
	p := &performance{stable: stable.Seconds(), length: length.Seconds(), began: competing.Seconds()}
	var others competitors
	if n.stage.Flows > 0 {
		if err := n.Until(ctx, competing, running.ended()); err != nil {
			return nil, errors.Join(err, running.stop())
		}
		if others, err = n.startCompetitors(ctx, length-competing); err != nil {
			return nil, errors.Join(err, running.stop())
		}
		defer others.Stop()
	}
	if p.queue, err = n.observe(ctx, stable, length, running.ended()); err != nil {
		return nil, errors.Join(err, running.stop())
	}
	if p.flights, err = running.wait(ctx); err != nil {
		return nil, err
	}
	if len(p.list) == 0 {
		return nil, errNoFrame
	}
	if others != nil {
		if p.rates, err = others.Wait(ctx); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// startCompetitors starts the competitors for a time.
func (n *network) startCompetitors(ctx context.Context, length time.Duration) (competitors, error) {
	if n.stage.Rival == rivalCubic {
		return rival.StartCubic(ctx, n.Network, hostSender, hostReceiver, n.stage.Flows, length)
	}
	vollab, err := n.settings.Program("vollab")
	if err != nil {
		return nil, err
	}
	return rival.StartPragues(ctx, n.Network, vollab, hostSender, hostReceiver, n.stage.Flows, length)
}

// observe waits until the run is over, and returns the bottleneck's queueing in the stable state.
func (n *network) observe(ctx context.Context, stable, length time.Duration, ended <-chan struct{}) (queueing, error) {
	var counts [2]topology.WireStatistics
	for i, at := range []time.Duration{stable, length} {
		if err := n.Until(ctx, at, ended); err != nil {
			return queueing{}, err
		}
		statistics := n.Network.Statistics()
		counts[i] = statistics.Wire(bottleneck, topology.Forth)
	}
	n.End()
	return queueingBetween(&counts[0], &counts[1]), nil
}
