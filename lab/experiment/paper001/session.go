package paper001

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/baseline"
	"github.com/volsfu/volsfu/lab/carriage"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/cast"
	"github.com/volsfu/volsfu/lab/topology"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// session is a one-way session of a publisher and a watcher, with a server if the transport has one.
type session struct {
	// Transport is a one-way transport of package baseline, or volsfu-unpaced.
	Transport string `yaml:"transport"`
	Content   string `yaml:"content"`
	Tiles     int    `yaml:"tiles"`
	// Level is the depth of the octree that the quality represents: 5, 7 or 9.
	Level int     `yaml:"level"`
	FPS   float64 `yaml:"fps"`
	// Emulated places the processes in namespaces, on links with Delay one way and Loss per cent of packets, in both
	// directions. Without Emulated, the processes share the loopback interface.
	Emulated bool          `yaml:"emulated"`
	Delay    time.Duration `yaml:"delay"`
	Loss     float64       `yaml:"loss"`
	// Congestion is TCP's congestion control.
	Congestion string `yaml:"congestion"`
	// Segment is the length of DASH's segments; 0 is one frame.
	Segment time.Duration `yaml:"segment"`
	// DecoderQueue is the number of frames of a tile that may wait for the decoder. With 1, the newest frame replaces
	// older frames. TCP holds frames back until a loss is repaired, and then delivers them at once; with 1, all of
	// these frames except the newest, which are the latest, would be missing from the latency. With 10, 300 ms at 30
	// frames per second, each frame counts; VR2Gather renders every frame.
	DecoderQueue int `yaml:"decoder_queue"`
}

func defaultSession() session {
	return session{Transport: string(baseline.Volsfu), Content: contentMan, Tiles: 1, Level: 7, FPS: 15,
		Congestion: "cubic", DecoderQueue: 1}
}

// Validate reports the first invalid parameter of a cell.
func (p session) Validate() error {
	switch {
	case oneWay[p.Transport].transport == "":
		return fmt.Errorf("transport: %q does not support one-way tiles; expected direct-tcp, reflector, websocket, "+
			"dash, pion, volsfu or volsfu-unpaced", p.Transport)
	case p.Content != contentMan && p.Content != contentDesk:
		return fmt.Errorf("content: expected %s or %s, got %q", contentMan, contentDesk, p.Content)
	case !slices.Contains(pointcloud.TileCounts(), p.Tiles):
		return fmt.Errorf("tiles: expected one of %v, got %d", pointcloud.TileCounts(), p.Tiles)
	case occupied[contentMan][p.Level] == 0:
		return fmt.Errorf("level: expected 5, 7 or 9, got %d", p.Level)
	case !(p.FPS > 0 && p.FPS <= 120):
		return fmt.Errorf("fps: expected more than 0 and up to 120, got %g", p.FPS)
	case p.Delay < 0 || !(p.Loss >= 0 && p.Loss <= 100):
		return fmt.Errorf("delay %v, loss %g: expected 0 or more, and at most 100 %%", p.Delay, p.Loss)
	case p.DecoderQueue < 1:
		return fmt.Errorf("decoder_queue: expected 1 or more, got %d", p.DecoderQueue)
	case wrongSegment(oneWay[p.Transport], p.Segment):
		return errSegment(p.Segment)
	case !p.Emulated && (p.Delay > 0 || p.Loss > 0):
		return fmt.Errorf("delay, loss: expected emulated: true with these parameters")
	}
	return nil
}

// The hosts.
const (
	hostServer    = "server"
	hostPublisher = "publisher"
	hostWatcher   = "watcher"
)

// topology returns the paper's topology: two clients, each with a link to the server (figure 2). The links of 1 Gbit/s
// carry at most 50 Mbit/s here and are not a bottleneck.
func (p *session) topology(seed uint64) *topology.Topology {
	if !p.Emulated {
		return nil
	}
	link := topology.Duplex(netem.Config{Delay: p.Delay, Loss: p.Loss / 100})
	t := topology.Star(hostServer, map[string]topology.Link{hostPublisher: link, hostWatcher: link})
	t.Seed = seed
	return t
}

// players are the processes of a session.
type players struct{ server, publisher, watcher *cast.Player }

// runSession measures one iteration.
func runSession(ctx context.Context, p session, s experiment.Settings) (*experiment.Outcome, error) {
	outcome := experiment.NewOutcome()
	c, err := cast.Open(ctx, &s, p.topology(s.Seed))
	if cast.Lacking(err) {
		return experiment.Skip("no such network: %v", err), nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	m := materialFor(p.Content, &s, outcome)
	all, err := p.begin(ctx, c, m.flags(p.Tiles, m.rung(p.Level, outcome), s.Seed))
	if err != nil {
		return nil, err
	}
	w, err := c.Measure(ctx)
	if err != nil {
		return nil, err
	}
	// The last frames captured in the window are still in flight.
	if err := lab.Pause(ctx, settling+4*p.Delay); err != nil {
		return nil, err
	}
	if err := all.end(); err != nil {
		return nil, err
	}
	carrier := oneWay[p.Transport]
	carrier.note(outcome)
	carrier.noteSegment(outcome, p.Segment)
	if err := c.NoteClocks(outcome, w, hostPublisher, hostWatcher); err != nil {
		return nil, err
	}
	return outcome, p.evaluate(outcome, all, w)
}

// settling is the time limit for the last frames in addition to the network's delay: three times the longest latency of
// the paper.
const settling = time.Second

// begin starts all processes and waits until frames arrive.
func (p *session) begin(ctx context.Context, c *cast.Cast, material []string) (all players, err error) {
	s := oneWay[p.Transport]
	transport := []string{"--transport", string(s.transport)}
	if p.Congestion != "" && s.transport != baseline.Volsfu && s.transport != baseline.Pion {
		transport = append(transport, "--congestion", p.Congestion)
	}
	publish := slices.Concat(transport, []string{"--role", "publish", "--fps", fmt.Sprint(p.FPS)}, s.sends,
		segmented(s, p.Segment), material)
	watch := slices.Concat(transport, []string{"--role", "watch", "--watched", hostPublisher, "--watched-tiles",
		fmt.Sprint(p.Tiles), "--decoder-queue", fmt.Sprint(p.DecoderQueue)})
	if s.transport.Served() {
		all.server, err = c.Peer(ctx, hostServer, hostServer, slices.Concat(transport,
			[]string{"--role", "server", "--listen", c.Listen(hostServer)}, s.server)...)
		if err != nil {
			return all, err
		}
		address, err := all.server.Ready(ctx)
		if err != nil {
			return all, err
		}
		if all.publisher, err = c.Peer(ctx, hostPublisher, hostPublisher,
			append(publish, "--connect", address)...); err != nil {
			return all, err
		}
		all.watcher, err = c.Peer(ctx, hostWatcher, hostWatcher, append(watch, "--connect", address)...)
		if err != nil {
			return all, err
		}
		return all, all.watcher.Receiving(ctx)
	}
	if all.publisher, err = c.Peer(ctx, hostPublisher, hostPublisher,
		append(publish, "--listen", c.Listen(hostPublisher))...); err != nil {
		return all, err
	}
	address, err := all.publisher.Ready(ctx)
	if err != nil {
		return all, err
	}
	if all.watcher, err = c.Peer(ctx, hostWatcher, hostWatcher, append(watch, "--connect", address)...); err != nil {
		return all, err
	}
	return all, all.watcher.Receiving(ctx)
}

// end stops all processes, beginning with the processes for which others do not wait.
func (all *players) end() error {
	for _, p := range []*cast.Player{all.publisher, all.watcher, all.server} {
		if p == nil {
			continue
		}
		if err := p.Stop(); err != nil {
			return err
		}
	}
	return nil
}

// evaluate reads the results of all processes.
func (p *session) evaluate(o *experiment.Outcome, all players, w cast.Window) error {
	sent, err := all.publisher.Records()
	if err != nil {
		return err
	}
	received, err := all.watcher.Records()
	if err != nil {
		return err
	}
	published, err := all.publisher.Summary()
	if err != nil {
		return err
	}
	watched, err := all.watcher.Summary()
	if err != nil {
		return err
	}
	frames := slices.DeleteFunc(cast.In(cast.Join(sent, received), w),
		func(r frametimes.Record) bool { return !cast.Finished(&r) })
	stages(o, frames)
	bytes := 0
	for i := range frames {
		bytes += frames[i].Bytes
	}
	o.Set("fps", float64(len(frames))/float64(p.Tiles)/w.Seconds())
	o.Set("content", float64(bytes)*8/1e6/w.Seconds())
	o.Set("bandwidth", watched.Got.Mbps)
	o.Set("cpu_publisher", all.publisher.CPU(w))
	o.Set("cpu_watcher", all.watcher.CPU(w))
	if all.server != nil {
		o.Set("cpu_server", all.server.CPU(w))
	}
	if offered := len(cast.In(sent, w)); offered > 0 {
		o.Set("lost", 100*(1-float64(len(frames))/float64(offered)))
	}
	if captures := published.Sent.Captures; captures > 0 {
		o.Set("encoder_dropped", 100*float64(published.Sent.NotEncoded())/float64(captures))
	}
	var c counts
	c.add(p.Tiles, published.Sent, watched.Got)
	w.Judge(o, c.wanted, c.done, c.dropped)
	noteCongestion(o, watched)
	return nil
}

// noteCongestion names TCP's congestion control as reported by the kernel, if TCP carries frames.
func noteCongestion(o *experiment.Outcome, s *carriage.Summary) {
	if s.Congestion != "" {
		o.Note("TCP's congestion control is %s.", s.Congestion)
	}
}
