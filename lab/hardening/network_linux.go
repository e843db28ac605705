package hardening

import (
	"errors"
	"fmt"
	"net/netip"
)

// device is the name of each host's interface on the bridge.
const device = "lan"

// network is a set of hosts on one bridge. Each host is a namespace with an address of 10.8.0.0/16.
type network struct {
	bridge *namespace
	hosts  []*namespace
}

// newNetwork creates a bridge without hosts.
func newNetwork() (*network, error) {
	bridge, err := newNamespace("bridge")
	if err != nil {
		return nil, err
	}
	n := &network{bridge: bridge}
	if err := errors.Join(bridge.ip("link add name bridge type bridge"), bridge.ip("link set bridge up")); err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

// host adds a host.
func (n *network) host(name string) (*namespace, error) {
	h, err := newNamespace(name)
	if err != nil {
		return nil, err
	}
	n.hosts = append(n.hosts, h)
	number := len(n.hosts)
	h.address = netip.AddrFrom4([4]byte{10, 8, 0, byte(number)})
	port := fmt.Sprintf("port%d", number)
	for _, step := range []struct {
		in      *namespace
		command string
	}{
		{n.bridge, fmt.Sprintf("link add %s type veth peer name %s netns %d", port, device, h.thread)},
		{n.bridge, fmt.Sprintf("link set %s master bridge up", port)},
		{h, fmt.Sprintf("address add %v/16 dev %s", h.address, device)},
		{h, fmt.Sprintf("link set %s up", device)},
	} {
		if err := step.in.ip(step.command); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// unused returns an address of the network without a host. group is 1 to 200; group and number select the address.
func unused(group, number int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 8, byte(group), byte(number)})
}

// close ends all namespaces and thereby their interfaces.
func (n *network) close() {
	for _, h := range n.hosts {
		h.close()
	}
	n.bridge.close()
}
