package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/topology"
)

// segment is one of the two networks. Each is a bridge in the namespace of this process, with one cable to each host.
type segment int

const (
	// forClients carries websockets and media of clients, and the admin listeners.
	forClients segment = iota
	// forNodes carries routes and trunks.
	forNodes
	segments
)

// bridge and cable return the names of the devices in the namespace of this process, plug that of a host.
func (s segment) bridge() string        { return [...]string{"clients", "nodes"}[s] }
func (s segment) plug() string          { return [...]string{"client0", "node0"}[s] }
func (s segment) cable(host int) string { return fmt.Sprintf("%s%d", s.bridge(), 1+host) }

// address returns the address of a host, by its place in the list of hosts.
func (s segment) address(host int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(8 + s), 0, byte(1 + host)})
}

// own returns the address of this process.
func (s segment) own() netip.Addr { return s.address(253) }

// network has the hosts of the nodes.
type network struct {
	*topology.Network
	hosts []string
	// emulated is set if routes and trunks use emulated links instead of cables.
	emulated bool
}

// newNetwork makes the hosts. If between is not nil, routes and trunks pass an emulated link with these parameters
// between each two hosts.
func newNetwork(ctx context.Context, hosts []string, between *netem.Config) (n *network, err error) {
	if err := enterOwnNetwork(); err != nil {
		return nil, err
	}
	t := &topology.Topology{Hosts: make(map[string]topology.Host), Links: make(map[string]topology.Link), Seed: 1}
	for i, host := range hosts {
		t.Hosts[host] = topology.Host{}
		for _, other := range hosts[:i] {
			if between == nil {
				continue
			}
			name := linkOf(other, host)
			t.Links[name] = topology.Duplex(*between)
			t.Paths = append(t.Paths, topology.Path{From: other, To: host, Through: []topology.Passage{{Link: name}}})
		}
	}
	n = &network{hosts: hosts, emulated: between != nil}
	if n.Network, err = topology.Start(ctx, t); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	if err := raise("lo"); err != nil {
		return n, err
	}
	for s := range segments {
		if s == forNodes && n.emulated {
			continue
		}
		if err := n.addSegment(s); err != nil {
			return n, fmt.Errorf("network %s: %w", s.bridge(), err)
		}
	}
	return n, n.awaitCables(ctx)
}

// linkOf returns the name of the emulated link between two hosts, in the order of their names.
func linkOf(first, second string) string { return first + "-" + second }

// addSegment adds a bridge and its cables.
func (n *network) addSegment(s segment) error {
	attributes := netlink.NewLinkAttrs()
	attributes.Name = s.bridge()
	bridge := &netlink.Bridge{LinkAttrs: attributes}
	if err := netlink.LinkAdd(bridge); err != nil {
		return err
	}
	if err := errors.Join(addAddress(bridge, s.own()), netlink.LinkSetUp(bridge)); err != nil {
		return err
	}
	for i, host := range n.hosts {
		if err := n.addCable(s, bridge, i); err != nil {
			return fmt.Errorf("cable of %s: %w", host, err)
		}
	}
	return nil
}

// addCable connects a host to a bridge.
func (n *network) addCable(s segment, bridge netlink.Link, host int) error {
	path, err := n.Namespace(n.hosts[host])
	if err != nil {
		return err
	}
	namespace, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = namespace.Close() }()
	attributes := netlink.NewLinkAttrs()
	attributes.Name, attributes.MasterIndex = s.cable(host), bridge.Attrs().Index
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attributes, PeerName: s.plug(),
		PeerNamespace: netlink.NsFd(namespace.Fd())}); err != nil {
		return err
	}
	if err := raise(s.cable(host)); err != nil {
		return err
	}
	return n.Inside(n.hosts[host], func() error {
		plug, err := netlink.LinkByName(s.plug())
		if err != nil {
			return err
		}
		return errors.Join(addAddress(plug, s.address(host)), netlink.LinkSetUp(plug))
	})
}

// addAddress gives a device of the calling thread's namespace an address.
func addAddress(device netlink.Link, address netip.Addr) error {
	return netlink.AddrAdd(device, &netlink.Addr{Flags: unix.IFA_F_NODAD,
		IPNet: &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(16, 32)}})
}

// raise sets a device of this process's namespace up.
func raise(name string) error {
	device, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(device)
}

// cablePatience is the time for cables to carry packets, which the kernel allows in its own thread up to a second after
// both ends are up.
const cablePatience = 5 * time.Second

// awaitCables waits until all cables carry packets.
func (n *network) awaitCables(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cablePatience)
	defer cancel()
	for {
		ready := true
		for s := range segments {
			if s == forNodes && n.emulated {
				continue
			}
			for host := range n.hosts {
				device, err := netlink.LinkByName(s.cable(host))
				if err != nil {
					return err
				}
				ready = ready && device.Attrs().OperState == netlink.OperUp
			}
		}
		if ready {
			return nil
		}
		if err := lab.Pause(ctx, 5*time.Millisecond); err != nil {
			return fmt.Errorf("the cables carry no packets after %v: %w", cablePatience, err)
		}
	}
}

// nodeAddress returns the address of a host for other nodes.
func (n *network) nodeAddress(host int) netip.Addr {
	if n.emulated {
		return n.Address(n.hosts[host])
	}
	return forNodes.address(host)
}

// plugIn connects or cuts the cable of a host.
func (n *network) plugIn(s segment, host int, connected bool) error {
	device, err := netlink.LinkByName(s.cable(host))
	if err != nil {
		return err
	}
	if connected {
		return netlink.LinkSetUp(device)
	}
	return netlink.LinkSetDown(device)
}

// close ends all programs in the network, and the network.
func (n *network) close() error {
	err := n.Close()
	// The kernel removes the namespaces of the hosts later.
	for s := range segments {
		devices := []string{s.bridge()}
		for host := range n.hosts {
			devices = append(devices, s.cable(host))
		}
		for _, name := range devices {
			device, missing := netlink.LinkByName(name)
			if missing != nil {
				continue
			}
			if failed := netlink.LinkDel(device); !errors.Is(failed, unix.ENODEV) {
				// With ENODEV, the kernel has removed the device meanwhile.
				err = errors.Join(err, failed)
			}
		}
	}
	return err
}
