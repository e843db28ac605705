package paper001

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/baseline"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/cast"
	"github.com/volsfu/volsfu/lab/topology"
)

// dance is a session of two peers that publish and watch at the same time, and choose the qualities of each other's
// tiles while they move.
type dance struct {
	// System is direct-tcp, dash, or volsfu with a policy of its server's demand: volsfu-warm (everything, as in the
	// paper), volsfu-neighbours (the default) or volsfu-strict. volsfu-unpaced is volsfu-warm without pacing.
	System string        `yaml:"system"`
	Delay  time.Duration `yaml:"delay"`
	// Segment is the length of DASH's segments; 0 is one frame.
	Segment time.Duration `yaml:"segment"`
	Content string        `yaml:"content"`
	// Left and Right are files with the paths of both heads over time (see package movement), empty for the embedded
	// paths.
	Left  string `yaml:"left"`
	Right string `yaml:"right"`
}

func defaultDance() dance { return dance{System: "volsfu-warm", Content: contentMan} }

// Validate reports the first invalid parameter of a cell.
func (p dance) Validate() error {
	switch {
	case bothWays[p.System].transport == "":
		return fmt.Errorf("system: expected direct-tcp, dash, volsfu-warm, volsfu-neighbours, volsfu-strict or "+
			"volsfu-unpaced, got %q", p.System)
	case p.Content != contentMan && p.Content != contentDesk:
		return fmt.Errorf("content: expected %s or %s, got %q", contentMan, contentDesk, p.Content)
	case wrongSegment(bothWays[p.System], p.Segment):
		return errSegment(p.Segment)
	case p.Delay < 0:
		return fmt.Errorf("delay: expected 0 or more, got %v", p.Delay)
	}
	return nil
}

// The session of the paper's section 4.2: fifteen tiles, one peer captures at 15 and the other at 30 frames per second,
// levels 5 and 7.
const (
	danceTiles          = 15
	danceQualities      = 2
	lowLevel, highLevel = 5, 7
	hostLeft, hostRight = "left", "right"
	leftRate, rightRate = 15.0, 30.0
	// looking is the interval at which the closest tile is determined, the same as the tracking interval of the files.
	looking = 100 * time.Millisecond
	// directPort is the listen port of each peer without a server. The port is free because each peer has its own
	// namespace.
	directPort = "7001"
	// decisionMargin is the permitted time of a decision in addition to a frame interval and a round trip, for
	// schedulers and queues of one machine.
	decisionMargin = 10 * time.Millisecond
)

// dancers are the two peers and the server, if any.
type dancers struct{ server, left, right *cast.Player }

// runDance measures one iteration.
func runDance(ctx context.Context, p dance, s experiment.Settings) (*experiment.Outcome, error) {
	o := experiment.NewOutcome()
	link := topology.Duplex(netem.Config{Delay: p.Delay})
	t := topology.Star(hostServer, map[string]topology.Link{hostLeft: link, hostRight: link})
	t.Seed = s.Seed
	c, err := cast.Open(ctx, &s, t)
	if cast.Lacking(err) {
		return experiment.Skip("no emulated network on this machine: %v", err), nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	m := materialFor(p.Content, &s, o)
	if err := p.choreograph(m, &s, o); err != nil {
		return nil, err
	}
	all, err := p.begin(ctx, c, m.flags(danceTiles, m.rung(lowLevel, o)+","+m.rung(highLevel, o), s.Seed), &s)
	if err != nil {
		return nil, err
	}
	w, err := c.Measure(ctx)
	if err != nil {
		return nil, err
	}
	if err := lab.Pause(ctx, settling+4*p.Delay); err != nil {
		return nil, err
	}
	for _, player := range []*cast.Player{all.left, all.right, all.server} {
		if player == nil {
			continue
		}
		if err := player.Stop(); err != nil {
			return nil, err
		}
	}
	carrier := bothWays[p.System]
	carrier.note(o)
	carrier.noteSegment(o, p.Segment)
	o.Note("Decisions go to volsfu's server over its websocket, as in the paper; Direct TCP closes the connection of " +
		"a tile and opens another one; dash requests another quality with the next segment.")
	return o, p.evaluate(o, &all, w)
}

// begin starts all processes and waits until both peers receive.
func (p *dance) begin(ctx context.Context, c *cast.Cast, material []string, s *experiment.Settings) (all dancers,
	err error) {
	carrier := bothWays[p.System]
	flags := []string{"--transport", string(carrier.transport)}
	if carrier.transport != baseline.Volsfu {
		flags = append(flags, "--congestion", "cubic")
	}
	if carrier.transport.Served() {
		arguments := slices.Concat(flags, []string{"--role", "server", "--listen", c.Listen(hostServer)},
			carrier.server)
		if all.server, err = c.Peer(ctx, hostServer, "server", arguments...); err != nil {
			return all, err
		}
		address, err := all.server.Ready(ctx)
		if err != nil {
			return all, err
		}
		flags = slices.Concat(flags, []string{"--connect", address}, carrier.sends, segmented(carrier, p.Segment))
	}
	if all.left, err = p.peer(ctx, c, s, flags, material, true); err != nil {
		return all, err
	}
	if all.right, err = p.peer(ctx, c, s, flags, material, false); err != nil {
		return all, err
	}
	if err := all.left.Receiving(ctx); err != nil {
		return all, err
	}
	return all, all.right.Receiving(ctx)
}

// peer starts one of the two peers.
func (p *dance) peer(ctx context.Context, c *cast.Cast, s *experiment.Settings, flags, material []string,
	left bool) (*cast.Player, error) {
	host, of, rate := hostLeft, hostRight, leftRate
	if !left {
		host, of, rate = hostRight, hostLeft, rightRate
	}
	arguments := slices.Concat(flags, material, []string{
		"--role", "both", "--fps", fmt.Sprint(rate), "--watched", of, "--watched-tiles", fmt.Sprint(danceTiles),
		"--quality", "0", "--decisions", s.File(decisionsFile(left)),
	})
	if !bothWays[p.System].transport.Served() {
		arguments = append(arguments, "--listen", c.On(host, directPort), "--connect", c.On(of, directPort))
	}
	return c.Peer(ctx, host, host, arguments...)
}
