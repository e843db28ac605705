package cast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/netem/router"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/carriage"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/topology"
	"github.com/volsfu/volsfu/pkg/frametimes"
)

// Cast is the set of processes of one iteration, and the network between them.
type Cast struct {
	settings *experiment.Settings
	network  *topology.Network // nil if they run side by side, or on other machines
	players  []*Player
}

// ErrLink reports that the network between the hosts is not the network of the topology.
var ErrLink = errors.New("the link differs")

// Open starts the network. If the topology is nil, processes run side by side over the loopback interface. With
// Settings.Hosts, the hosts of the topology are roles, and nothing is emulated: the error wraps ErrLink if the network
// of the hosts has another delay or loss than the links of the topology.
func Open(ctx context.Context, settings *experiment.Settings, t *topology.Topology) (*Cast, error) {
	c := &Cast{settings: settings}
	if settings.Hosts != nil {
		return c, c.accept(t)
	}
	if t == nil {
		return c, nil
	}
	var err error
	c.network, err = topology.Start(ctx, t)
	return c, err
}

// accept reports whether the network between the hosts is that of a topology.
func (c *Cast) accept(t *topology.Topology) error {
	if t == nil {
		return nil
	}
	link := c.settings.Hosts.Link()
	for _, l := range t.Links {
		for _, direction := range []topology.Direction{l.Forth, l.Back} {
			if refusal := link.Refusal(direction.Config); refusal != "" {
				return fmt.Errorf("%w: %s", ErrLink, refusal)
			}
		}
	}
	return nil
}

// Lacking reports whether an error means that there is no network as in the topology, so that an iteration is skipped
// and not failed.
func Lacking(err error) bool {
	return errors.Is(err, router.ErrPrivileges) || errors.Is(err, router.ErrTUN) || errors.Is(err, ErrLink)
}

// Network returns the emulated network, nil if there is none.
func (c *Cast) Network() *topology.Network { return c.network }

// Listen returns the listen address of a process on a host, with port 0.
func (c *Cast) Listen(host string) string {
	if c.settings.Hosts != nil {
		return c.settings.Hosts.Listen(host)
	}
	if c.network == nil {
		return "127.0.0.1:0"
	}
	return net.JoinHostPort(c.network.Address(host).String(), "0")
}

// On returns an address of a host with a port, for processes that must know the addresses of other processes in
// advance.
func (c *Cast) On(host, port string) string {
	if c.settings.Hosts != nil {
		return net.JoinHostPort(c.settings.Hosts.Address(host), port)
	}
	if c.network == nil {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return net.JoinHostPort(c.network.Address(host).String(), port)
}

// Player is a process of the cast.
type Player struct {
	*lab.Program
	cast    *Cast
	host    string
	name    string
	summary string // names of files
	records string
	signs   *signs
	cpu     [2]time.Duration // at the window's ends
	stopped bool
}

// Peer starts vollab peer on a host with the given flags; --name, --summary and --records are added.
func (c *Cast) Peer(ctx context.Context, host, name string, flags ...string) (*Player, error) {
	p := &Player{cast: c, host: host, name: name, summary: c.settings.File(name + ".json"),
		records: c.settings.File(name + ".jsonl"), signs: newSigns()}
	arguments := append([]string{"peer", "--name", name, "--summary", p.summary}, flags...)
	if !slices.Contains(flags, "server") {
		arguments = append(arguments, "--records", p.records)
	}
	var err error
	// Stop ends the process, so that the process prints its summary. A context must not kill the process before.
	if p.Program, err = c.Start(context.WithoutCancel(ctx), host, "vollab peer "+name, "vollab", p.signs,
		arguments...); err != nil {
		return nil, err
	}
	c.players = append(c.players, p)
	return p, nil
}

// Start starts a program of the lab on a host. Close does not end it. The other parameters are those of
// lab.StartProgram.
func (c *Cast) Start(ctx context.Context, host, name, file string, watch io.Writer, arguments ...string) (*lab.Program,
	error) {
	if c.settings.Hosts != nil {
		return c.settings.Hosts.Start(host, name, file, watch, arguments...)
	}
	path, err := c.settings.Program(file)
	if err != nil {
		return nil, err
	}
	command := exec.Command(path, arguments...)
	if c.network != nil {
		command = c.network.Command(ctx, host, path, arguments...)
	}
	return lab.StartCommand(name, command, watch)
}

// Close ends all running processes, and the network.
func (c *Cast) Close() error {
	var err error
	for _, p := range slices.Backward(c.players) {
		if !p.stopped {
			_ = p.Stop()
		}
	}
	if c.network != nil {
		err = c.network.Close()
	}
	return err
}

// patience is the time limit for a process to listen, and for frames to arrive. Before it listens, the process samples
// a figure of 200,000 points sixty times, which takes seconds on a busy machine.
const patience = 90 * time.Second

// Ready waits until the player listens, and returns the address.
func (p *Player) Ready(ctx context.Context) (string, error) {
	if err := p.await(ctx, p.signs.ready, "listens"); err != nil {
		return "", err
	}
	return p.signs.address(), nil
}

// Receiving waits until the player has received a frame.
func (p *Player) Receiving(ctx context.Context) error {
	return p.await(ctx, p.signs.receiving, "receives")
}

func (p *Player) await(ctx context.Context, sign <-chan struct{}, what string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ended, end := context.WithCancel(ctx)
	defer end()
	gone := make(chan error, 1)
	go func() { gone <- p.Wait(ended) }()
	var err error
	select {
	case <-sign:
		end()
		<-gone
		return nil
	case err = <-gone:
	}
	// A sign that was printed before the end counts.
	select {
	case <-sign:
		return nil
	default:
	}
	if err == nil {
		err = errors.New("the process has ended")
	}
	return fmt.Errorf("waiting until %s %s: %w; its last output: %s", p.name, what, err, p.LastOutput())
}

// Stop sends SIGTERM to the player and waits for its end.
func (p *Player) Stop() error {
	p.stopped = true
	return p.Program.Stop()
}

// Summary returns the player's summary. The player must have ended.
func (p *Player) Summary() (*carriage.Summary, error) {
	text, err := os.ReadFile(p.summary)
	if err != nil {
		return nil, fmt.Errorf("summary of %s: %w", p.name, err)
	}
	var s carriage.Summary
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("summary of %s: %w", p.name, err)
	}
	return &s, nil
}

// Records returns the times of the player's frames, by the clock of this machine. The player must have ended.
func (p *Player) Records() ([]frametimes.Record, error) {
	file, err := os.Open(p.records)
	if err != nil {
		return nil, fmt.Errorf("records of %s: %w", p.name, err)
	}
	defer func() { _ = file.Close() }()
	var all []frametimes.Record
	err = frametimes.ReadJSONL(file, func(r *frametimes.Record) error {
		all = append(all, *r)
		return nil
	})
	if err == nil {
		err = p.convert(all)
	}
	if err != nil {
		return nil, fmt.Errorf("records of %s: %w", p.name, err)
	}
	return all, nil
}

var _ io.Writer = (*signs)(nil)
