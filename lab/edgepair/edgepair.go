// Package edgepair runs the two edges of a pair (volnet edge) on two hosts of an emulated network.
//
// A Pair belongs to the goroutine that has started it.
package edgepair

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/internal/netfn/control"
	"github.com/volsfu/volsfu/internal/netfn/daemon"
	"github.com/volsfu/volsfu/internal/netfn/edge"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/topology"
)

// ErrHost reports that no edge can run on this machine. The error also wraps edge.ErrPrivileges or edge.ErrUnsupported.
var ErrHost = errors.New("no edge can run here")

// errEdge reports that an edge has ended by itself, or does not reach a state.
var errEdge = errors.New("volnet edge")

// Config describes a pair.
type Config struct {
	// Volnet is the path of the program.
	Volnet string
	// Sides are the two ends.
	Sides [2]Side
	// Links are the paths of the pair, which are named path1, path2 and so on.
	Links []Link
}

// Side is one end of a pair.
type Side struct {
	// Host is the host in the network. The edge has its name.
	Host string
	// Text has the keys send and receive of the edge's configuration, and any others.
	Text string
	// Environment has variables besides those of the host, as NAME=value.
	Environment []string
	// Log receives the log of the edge, one JSON object per line; nil for none.
	Log io.Writer
}

// Link is a path between the hosts of the two sides, with the interface and the address of each side.
type Link struct {
	Interfaces [2]string
	Addresses  [2]netip.Addr
}

// Parallel returns the parallel paths of a network between two hosts.
func Parallel(n *topology.Network, hosts [2]string, paths int) []Link {
	links := make([]Link, paths)
	for i := range links {
		for side, host := range hosts {
			links[i].Interfaces[side] = topology.InterfaceName(i)
			links[i].Addresses[side] = n.AddressOn(host, i)
		}
	}
	return links
}

// Exchange returns the sides of a pair that copies packets between the main addresses of two hosts. rule has the keys
// of both edges' rules besides the name and the destination, as in "protocol: tcp, copies: auto".
func Exchange(n *topology.Network, hosts [2]string, rule string) (sides [2]Side) {
	for i, host := range hosts {
		other := n.Address(hosts[1-i])
		sides[i] = Side{Host: host, Text: fmt.Sprintf("send: {rules: [{name: all, to: %s/32, %s}]}\n"+
			"receive: {inner: [%s/32]}\n", other, rule, other)}
	}
	return sides
}

// Pair is a pair of edges.
type Pair struct {
	config  Config
	network *topology.Network
	folder  string // with configurations, key and sockets; short, because paths of sockets are
	pins    string // the BPF file system; empty before it is mounted
	edges   map[string]*lab.Program
}

// meeting is the time limit of Await: for an edge to start and to receive from the other one.
const meeting = 10 * time.Second

// Start starts both edges, and waits until each receives from the other. The error wraps ErrHost if no edge can run
// here.
func Start(ctx context.Context, n *topology.Network, c Config) (_ *Pair, err error) {
	p := &Pair{config: c, network: n, edges: make(map[string]*lab.Program)}
	if p.folder, err = os.MkdirTemp("", "volnet"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	if err := p.prepare(); err != nil {
		return nil, err
	}
	for i := range c.Sides {
		if err := p.check(ctx, c.Sides[i].Host); err != nil {
			return nil, err
		}
	}
	for i := range c.Sides {
		if err := p.StartEdge(ctx, c.Sides[i].Host); err != nil {
			return nil, err
		}
	}
	for i := range c.Sides {
		if err := p.Await(ctx, c.Sides[i].Host, "receives from the other edge",
			func(s *daemon.Status) bool { return s.PeerAlive }); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// prepare mounts a BPF file system for the pins, and writes the key and the configurations.
func (p *Pair) prepare() error {
	pins := filepath.Join(p.folder, "bpf")
	if err := os.Mkdir(pins, 0o700); err != nil {
		return err
	}
	if err := unix.Mount("bpf", pins, "bpf", 0, ""); err != nil {
		return fmt.Errorf("%w: %w: BPF file system for the edges: %w", ErrHost, edge.ErrPrivileges, err)
	}
	p.pins = pins
	key := strings.Repeat("5a", 32) + "\n"
	if err := os.WriteFile(filepath.Join(p.folder, "key"), []byte(key), 0o600); err != nil {
		return err
	}
	for side := range p.config.Sides {
		if err := os.WriteFile(p.file(p.config.Sides[side].Host), []byte(p.text(side)), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// text returns the configuration of a side.
func (p *Pair) text(side int) string {
	own, other := &p.config.Sides[side], &p.config.Sides[1-side]
	var text strings.Builder
	_, _ = fmt.Fprintf(&text, "name: %s\npeer: %s\nkey-file: %s\nstate: %s\npaths:\n", own.Host, other.Host,
		filepath.Join(p.folder, "key"), p.folder)
	for i := range p.config.Links {
		l := &p.config.Links[i]
		_, _ = fmt.Fprintf(&text, "  - {name: path%d, interface: %s, local: %q, remote: %q}\n", i+1,
			l.Interfaces[side], l.Addresses[side], l.Addresses[1-side])
	}
	text.WriteString(own.Text)
	return text.String()
}

// file returns the name of the configuration of a host's edge.
func (p *Pair) file(host string) string { return filepath.Join(p.folder, host+".yaml") }

// Pins returns the folder in which the edge of a host pins its programs and maps.
func (p *Pair) Pins(host string) string { return filepath.Join(p.pins, host) }

// State returns the folder in which both edges keep their state.
func (p *Pair) State() string { return p.folder }

// command returns a command of volnet on a host. The context does not kill the command, so that the command
// can remove its programs.
func (p *Pair) command(ctx context.Context, host string, arguments ...string) *exec.Cmd {
	cmd := p.network.Command(context.WithoutCancel(ctx), host, p.config.Volnet,
		append(arguments, "--config", p.file(host))...)
	cmd.Env = append(cmd.Env, p.side(host).Environment...)
	return cmd
}

// side returns the side of a host.
func (p *Pair) side(host string) *Side {
	for i := range p.config.Sides {
		if p.config.Sides[i].Host == host {
			return &p.config.Sides[i]
		}
	}
	panic(fmt.Sprintf("edgepair: no side is on the host %q", host))
}

// Run runs a command of volnet to its end, with the configuration of a host's edge. The error has the command's output.
func (p *Pair) Run(ctx context.Context, host string, arguments ...string) error {
	output, err := p.command(ctx, host, arguments...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("volnet %s on %s: %w: %s", strings.Join(arguments, " "), host, err,
			strings.TrimSpace(string(output)))
	}
	return nil
}

// check asks volnet whether the edge of a host can run.
func (p *Pair) check(ctx context.Context, host string) error {
	err := p.Run(ctx, host, "check")
	if err == nil {
		return nil
	}
	for _, cause := range []error{edge.ErrPrivileges, edge.ErrUnsupported} {
		if strings.Contains(err.Error(), cause.Error()) {
			return fmt.Errorf("%w: %w: %w", ErrHost, cause, err)
		}
	}
	return err
}

// StartEdge starts the edge of a host, which must not run, and does not wait for the edge.
func (p *Pair) StartEdge(ctx context.Context, host string) error {
	program, err := lab.StartCommand("volnet edge on "+host, p.command(ctx, host, "edge"), p.side(host).Log)
	if err != nil {
		return err
	}
	p.edges[host] = program
	return nil
}

// Edge returns the running edge of a host.
func (p *Pair) Edge(host string) *lab.Program { return p.edges[host] }

// KillEdge ends the edge of a host with SIGKILL. The programs of the edge stay.
func (p *Pair) KillEdge(host string) {
	p.edges[host].Kill()
	delete(p.edges, host)
}

// StopEdge ends the edge of a host with SIGTERM. The edge removes its programs.
func (p *Pair) StopEdge(host string) error {
	program := p.edges[host]
	delete(p.edges, host)
	return program.Stop()
}

// Status returns the state of a host's edge.
func (p *Pair) Status(ctx context.Context, host string) (s daemon.Status, err error) {
	text, err := control.NewSocket(filepath.Join(p.folder, host+".sock")).Status(ctx)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("the state of the edge on %s: %w", host, err)
	}
	return s, nil
}

// awaitInterval is the time between two looks at an edge.
const awaitInterval = 10 * time.Millisecond

// Await waits until a condition holds for the state of a host's edge, which must run. what completes the sentence "the
// edge …" in errors.
func (p *Pair) Await(ctx context.Context, host, what string, condition func(*daemon.Status) bool) error {
	ctx, cancel := context.WithTimeout(ctx, meeting)
	defer cancel()
	tick := time.NewTicker(awaitInterval)
	defer tick.Stop()
	for {
		s, err := p.Status(ctx, host)
		if err == nil && condition(&s) {
			return nil
		}
		select {
		case <-tick.C:
		case <-p.edges[host].Ended():
			return fmt.Errorf("%w on %s has ended: %s", errEdge, host, p.edges[host].LastOutput())
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%w on %s: expected within %v that it %s", errEdge, host, meeting, what), err)
		}
	}
}

// Close ends both edges, which remove their programs.
func (p *Pair) Close() (err error) {
	for host := range p.edges {
		err = errors.Join(err, p.StopEdge(host))
	}
	if p.pins != "" {
		err = errors.Join(err, unix.Unmount(p.pins, 0))
	}
	return errors.Join(err, os.RemoveAll(p.folder))
}
