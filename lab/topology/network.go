package topology

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/internal/netem/router"
	"github.com/volsfu/volsfu/lab/awake"
)

const (
	// HostVariable is the environment variable with the name of the host on which a command runs.
	HostVariable = "VOLLAB_HOST"
	// ClockOffsetVariable is the environment variable with a host's ClockOffset, as in 50ms or -1.5s. The variable is
	// absent if the offset is 0.
	ClockOffsetVariable = "VOLSFU_CLOCK_OFFSET"
)

// Way is one of the two directions of a link.
type Way int

// The directions of a link.
const (
	Forth Way = iota
	Back
)

// String returns the name used in files.
func (w Way) String() string {
	if w == Back {
		return "back"
	}
	return "forth"
}

// Network is a running topology.
type Network struct {
	topology *Topology
	layout   *layout
	router   *router.Router
	id       string // ID of this network, in the environment of its commands
	sleep    func() // lets the processors sleep again
}

// Start creates the namespaces of a topology and starts forwarding packets. Start first ends commands left running by a
// network whose process was killed. The error wraps ErrTopology, router.ErrPrivileges if this process may not create
// namespaces, or router.ErrTUN if there are no TUN devices.
func Start(ctx context.Context, t *Topology) (*Network, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	endStrays()
	l := newLayout(t)
	r, err := router.Start(l.plan)
	if err != nil {
		return nil, fmt.Errorf("start the network: %w", err)
	}
	// Idle processors stay awake, so that the router's processor is not asleep when a packet arrives.
	return &Network{topology: t, layout: l, router: r, id: newID(), sleep: awake.Hold()}, nil
}

// Hosts returns the names of the hosts, sorted.
func (n *Network) Hosts() []string { return sortedKeys(n.topology.Hosts) }

// Links returns the names of the links, sorted.
func (n *Network) Links() []string { return sortedKeys(n.topology.Links) }

// Address returns the main address of a host, the destination of the first path to the host. The address is invalid if
// the host does not exist.
func (n *Network) Address(host string) netip.Addr { return n.AddressOn(host, 0) }

// AddressOn returns the address of a host on its parallel paths of the given number: 0 is the main address, 1 the
// address of the second path between the same two hosts, and so on. The address is invalid if the host or the path does
// not exist.
func (n *Network) AddressOn(host string, parallel int) netip.Addr {
	return n.layout.address(host, parallel)
}

// Address6 returns the main IPv6 address of a host, invalid if the host does not exist or the topology has no IPv6.
func (n *Network) Address6(host string) netip.Addr {
	i, ok := n.layout.hosts[host]
	if !ok || !n.topology.IPv6 {
		return netip.Addr{}
	}
	return address6Of(i, 0)
}

// ClockOffset returns how far a host's clock is ahead of the machine's for programs that honour ClockOffsetVariable.
func (n *Network) ClockOffset(host string) time.Duration { return n.topology.Hosts[host].ClockOffset }

// Command returns a command that will run in the namespace of a host. The command has this process's folder and its
// environment, HostVariable, and ClockOffsetVariable if the host's clock has an offset. The command is killed when the
// context ends, as with exec.CommandContext, and when this process dies; Close ends it. Starting the command fails with
// ErrHost if the host does not exist. A missing program ends with status 127.
func (n *Network) Command(ctx context.Context, host, name string, args ...string) *exec.Cmd {
	namespace, err := n.Namespace(host)
	if err != nil {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Err = err
		return cmd
	}
	return CommandIn(ctx, namespace, n.Environment(host), name, args...)
}

// CommandIn is Command for callers that know the path of the namespace and the host's environment.
func CommandIn(ctx context.Context, namespace string, environment []string, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"--net=" + namespace, "--", name}, args...)...)
	cmd.Env = append(os.Environ(), environment...)
	dieWithParent(cmd)
	return cmd
}

// Namespace returns the path of a host's network namespace, valid while the network is open. The error wraps ErrHost.
func (n *Network) Namespace(host string) (string, error) {
	i, ok := n.layout.hosts[host]
	if !ok {
		return "", fmt.Errorf("%w: %q, expected one of %s", ErrHost, host, strings.Join(n.Hosts(), ", "))
	}
	return n.router.Namespace(i), nil
}

// Environment returns the variables that a host adds to the environment of its commands, as NAME=value.
func (n *Network) Environment(host string) []string {
	list := []string{HostVariable + "=" + host, networkVariable + "=" + n.id}
	if offset := n.topology.Hosts[host].ClockOffset; offset != 0 {
		list = append(list, ClockOffsetVariable+"="+offset.String())
	}
	return list
}

// Inside calls f on a thread in a host's namespace, and returns the result of f. Sockets that f opens belong to the
// host while they are open. The error wraps ErrHost or is the error of f.
func (n *Network) Inside(host string, f func() error) error {
	if _, err := n.Namespace(host); err != nil {
		return err
	}
	return n.router.Inside(n.layout.hosts[host], f)
}

// Configure changes the parameters of one direction of a link immediately; its trace and schedule end. The error wraps
// ErrLink or netem.ErrConfig.
func (n *Network) Configure(link string, way Way, c netem.Config) error {
	wires, ok := n.layout.wires[link]
	if !ok {
		return fmt.Errorf("%w: %q, expected one of %s", ErrLink, link, strings.Join(n.Links(), ", "))
	}
	if err := n.router.Configure(wires[way], c); err != nil {
		return fmt.Errorf("links.%s.%s: %w", link, way, err)
	}
	return nil
}

// ID returns the network's ID, unique over all networks on this machine, including past ones. The ID is in the
// environment of the network's commands.
func (n *Network) ID() string { return n.id }

// Restart restarts every trace, schedule and statistic and the time over which Validity judges, at the beginning of a
// measurement. Packets in flight are not affected. Links changed by Configure have the parameters of the topology
// again.
func (n *Network) Restart() { n.router.Restart() }

// Close ends the commands in the namespaces, first with SIGTERM and after 2 s with SIGKILL, and the network. Calls
// after the first have no effect.
func (n *Network) Close() error {
	n.endCommands()
	n.sleep()
	return n.router.Close()
}
