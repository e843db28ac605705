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
	network  *topology.Network // nil if they run side by side
	players  []*Player
}

// Open starts the network. If the topology is nil, processes run side by side over the loopback interface.
func Open(ctx context.Context, settings *experiment.Settings, t *topology.Topology) (*Cast, error) {
	c := &Cast{settings: settings}
	if t == nil {
		return c, nil
	}
	var err error
	c.network, err = topology.Start(ctx, t)
	return c, err
}

// Lacking reports whether an error means that this machine does not support emulated networks, so that an iteration is
// skipped and not failed.
func Lacking(err error) bool {
	return errors.Is(err, router.ErrPrivileges) || errors.Is(err, router.ErrTUN)
}

// Network returns the emulated network, nil if there is none.
func (c *Cast) Network() *topology.Network { return c.network }

// Listen returns the listen address of a process on a host, with port 0.
func (c *Cast) Listen(host string) string {
	if c.network == nil {
		return "127.0.0.1:0"
	}
	return net.JoinHostPort(c.network.Address(host).String(), "0")
}

// On returns an address of a host with a port, for processes that must know the addresses of other processes in
// advance.
func (c *Cast) On(host, port string) string {
	if c.network == nil {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return net.JoinHostPort(c.network.Address(host).String(), port)
}

// Player is a process of the cast.
type Player struct {
	*lab.Program
	name    string
	summary string // names of files
	records string
	signs   *signs
	cpu     [2]time.Duration // at the window's ends
	stopped bool
}

// Peer starts vollab peer on a host with the given flags; --name, --summary and --records are added.
func (c *Cast) Peer(ctx context.Context, host, name string, flags ...string) (*Player, error) {
	path, err := c.settings.Program("vollab")
	if err != nil {
		return nil, err
	}
	p := &Player{name: name, summary: c.settings.File(name + ".json"), records: c.settings.File(name + ".jsonl"),
		signs: newSigns()}
	arguments := append([]string{"peer", "--name", name, "--summary", p.summary}, flags...)
	if !slices.Contains(flags, "server") {
		arguments = append(arguments, "--records", p.records)
	}
	// Stop ends the process, so that the process prints its summary. A context must not kill the process before.
	command := exec.Command(path, arguments...)
	if c.network != nil {
		command = c.network.Command(context.WithoutCancel(ctx), host, path, arguments...)
	}
	if p.Program, err = lab.StartCommand("vollab peer "+name, command, p.signs); err != nil {
		return nil, err
	}
	c.players = append(c.players, p)
	return p, nil
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

// Records returns the times of the player's frames. The player must have ended.
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
	if err != nil {
		return nil, fmt.Errorf("records of %s: %w", p.name, err)
	}
	return all, nil
}

var _ io.Writer = (*signs)(nil)
