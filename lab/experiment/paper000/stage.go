package paper000

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab/carriage"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/direct"
	"github.com/volsfu/volsfu/lab/topology"
	"github.com/volsfu/volsfu/pkg/frametimes"
)

// The senders.
const (
	// senderVolsfu is vollab direct: each frame is encoded for its one viewer at what the estimate allows, as the paper's sender does it.
	senderVolsfu = "volsfu"
	// senderServer is volsfu's server between one that publishes a ladder of qualities and one that watches; the bottleneck is behind the server.
	senderServer = "volsfu-server"
	// senderPion is Pion with its own GCC, as the paper had it; the estimate chooses out of the same ladder.
	senderPion = "pion"
	// senderPatched is Pion with two defects of its GCC corrected (package baseline/rtc/gcc).
	senderPatched = "pion-patched"
)

// senders are all of them.
var senders = []string{senderVolsfu, senderServer, senderPion, senderPatched}

// pionSends reports whether the sender is Pion, patched or not.
func (s *stage) pionSends() bool { return s.Sender == senderPion || s.Sender == senderPatched }

// stage is the network of the paper, and who sends over it.
type stage struct {
	Sender string `yaml:"sender"`
	// Flows is how many competitors with Cubic there are.
	Flows int `yaml:"flows"`
	// Queue is the bottleneck's, and Rate and Delay its rate and the delay of each direction, as netem's profiles have them.
	Queue string `yaml:"queue"`
	Rate  string `yaml:"rate"`
	Delay string `yaml:"delay"`
	// Points is how many a captured cloud has.
	Points int     `yaml:"points"`
	FPS    float64 `yaml:"fps"`
	Bits   int     `yaml:"bits"`
	Speed  int     `yaml:"speed"`
	// Competing is when competitors begin, Startup how long the first phase is; a run that ends before, or soon after, has one of half of its
	// length.
	Competing time.Duration `yaml:"competing"`
	Startup   time.Duration `yaml:"startup"`
}

// defaultStage is the setup of section 4.2. The depth of the queue is not in the paper: 25 ms at its rate is one round trip and a bit, as much as the fair queue of Linux leaves four flows at
// its usual 100 packets for each.
func defaultStage() stage {
	return stage{
		Sender: senderVolsfu, Queue: "paper000:25ms", Rate: "200Mbit", Delay: "10ms", Points: 125_000, FPS: 30, Bits: 11, Speed: 7,
		Competing: 5 * time.Second, Startup: 30 * time.Second,
	}
}

// maxFlows bounds competitors: iperf3 takes so many.
const maxFlows = 128

// Validate implements what experiment.Define asks for.
func (s stage) Validate() error {
	switch {
	case !slices.Contains(senders, s.Sender):
		return fmt.Errorf("sender: expected one of %s, got %q", strings.Join(senders, ", "), s.Sender)
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

// links are both directions of the bottleneck; only the one towards the viewer has a rate.
func (s *stage) links() (forth, back netem.Config, err error) {
	if forth, err = netem.ParseProfile(fmt.Sprintf("rate=%s,delay=%s,queue=%s", s.Rate, s.Delay, s.Queue)); err != nil {
		return forth, back, fmt.Errorf("rate, delay, queue: %w", err)
	}
	back, err = netem.ParseProfile("delay=" + s.Delay)
	return forth, back, err
}

// leastStable is how long a stable state is at least.
const leastStable = 5 * time.Second

// phases are when the competitors begin and when the stable state does, in a run of some length.
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

// layout is the network.
func (s *stage) layout(seed uint64) (*topology.Topology, error) {
	forth, back, err := s.links()
	if err != nil {
		return nil, err
	}
	return &topology.Topology{
		Hosts: map[string]topology.Host{hostSender: {}, hostReceiver: {}},
		Links: map[string]topology.Link{bottleneck: {Forth: topology.Direction{Config: forth}, Back: topology.Direction{Config: back}}},
		Paths: []topology.Path{{From: hostSender, To: hostReceiver, Through: []topology.Passage{{Link: bottleneck}}}},
		Seed:  seed,
	}, nil
}

// session is a sender and a viewer that run.
type session interface {
	// ended is closed once the viewer has ended, which is early where something went wrong.
	ended() <-chan struct{}
	// wait waits until both have ended, and tells what became of the frames.
	wait(ctx context.Context) (*flights, error)
	// stop ends both before.
	stop() error
}

// flights are the frames of a run.
type flights struct {
	list []flight
	// estimates are those of whoever sends through the bottleneck, in Mbit/s over time in seconds.
	estimates [][2]float64
	// pace is what the machine got done, and bound the share of frames in the stable state whose size the time to encode them decided on.
	pace   experiment.Pace
	bound  float64
	notes  []string
	source direct.Source
	// prepared are the frames of the ladder, nil where clouds were encoded as they were captured. Since is how long before the run began the first frame was captured, in
	// seconds, below 0 where that was after.
	prepared *prepared
	since    float64
	// frames is the log of vollab direct; sent and received are the records of other senders.
	frames         []direct.Frame
	sent, received []frametimes.Record
	// relayed is what a server has passed on, nil where there is none.
	relayed *carriage.Relayed
}

// performance is what came of a run.
type performance struct {
	*flights
	// stable is when the stable state begins, in seconds.
	stable, length float64
	// rates are those of all competitors; began is when they began, in seconds.
	rates []rate
	began float64
	// queue is what the bottleneck's did in the stable state, with the packets of all flows.
	queue queueing
}

// queueing is what a queue did for some time: how long the packets that left it had waited, and how many it dropped.
type queueing struct {
	waited  netem.DelayCounts
	dropped uint64
}

// queueingBetween is what a queue did between two counts.
func queueingBetween(earlier, later *topology.WireStatistics) queueing {
	return queueing{later.Waited.Since(&earlier.Waited), later.DroppedQueue - earlier.DroppedQueue}
}

// errNoFrame says that a sender has failed. The iteration then counts as failed, and is not left out.
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
	var others *competitors
	if n.stage.Flows > 0 {
		if err := n.Until(ctx, competing, running.ended()); err != nil {
			return nil, errors.Join(err, running.stop())
		}
		if others, err = startCompetitors(ctx, n.Network, hostSender, hostReceiver, n.stage.Flows, length-competing); err != nil {
			return nil, errors.Join(err, running.stop())
		}
		defer others.stop()
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
		if p.rates, err = others.wait(ctx); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// observe waits until the run is over, and tells what the bottleneck's queue did in the stable state.
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
