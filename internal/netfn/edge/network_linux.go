package edge

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// hostPath is a path as the host has it at present.
type hostPath struct {
	state PathState
	// ifindex and mtu are 0 without the interface.
	ifindex, mtu int
	// ethernet reports whether packets on the interface have an Ethernet header, from source to nextHop. nextHop is all
	// 0 until the neighbour is known.
	ethernet        bool
	source, nextHop [6]byte
	// checksums reports whether the interface computes the checksums of outgoing packets.
	checksums bool
}

// inspect returns the state of a path on the host.
func inspect(p *Path) (hostPath, error) {
	device, err := netlink.LinkByName(p.Interface)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return hostPath{state: PathNoInterface}, nil
	}
	if err != nil {
		return hostPath{}, fmt.Errorf("read the interface %s: %w", p.Interface, err)
	}
	attributes := device.Attrs()
	h := hostPath{ifindex: attributes.Index, mtu: p.MTU, ethernet: attributes.EncapType == "ether"}
	copy(h.source[:], attributes.HardwareAddr)
	h.checksums = hasChecksums(p.Interface)
	if h.mtu == 0 || h.mtu > attributes.MTU {
		h.mtu = attributes.MTU
	}
	h.state, err = h.inspect(device, p)
	return h, err
}

// inspect returns the state of a path whose interface exists, and finds the next hop.
func (h *hostPath) inspect(device netlink.Link, p *Path) (PathState, error) {
	family := netlink.FAMILY_V4
	if p.Local.Is6() {
		family = netlink.FAMILY_V6
	}
	attributes := device.Attrs()
	found, err := hasAddress(device, family, p.Local)
	switch {
	case err != nil:
		return "", fmt.Errorf("read the addresses of the interface %s: %w", p.Interface, err)
	case !found:
		return PathNoAddress, nil
	case attributes.Flags&net.FlagUp == 0, attributes.OperState == netlink.OperDown,
		attributes.OperState == netlink.OperLowerLayerDown:
		return PathDown, nil
	}
	routes, err := netlink.RouteGetWithOptions(p.Remote.AsSlice(), &netlink.RouteGetOptions{OifIndex: h.ifindex,
		SrcAddr: p.Local.AsSlice()})
	if err != nil || len(routes) == 0 || routes[0].Type != unix.RTN_UNICAST {
		return PathNoRoute, nil
	}
	if !h.ethernet {
		return PathUp, nil
	}
	found, err = h.findNeighbour(nextHop(&routes[0], p.Remote))
	switch {
	case err != nil:
		return "", fmt.Errorf("read the neighbours at the interface %s: %w", p.Interface, err)
	case !found:
		return PathNoNeighbour, nil
	}
	return PathUp, nil
}

// hasChecksums reports whether an interface computes the checksums of outgoing packets. An interface that cannot be
// asked does not.
func hasChecksums(device string) bool {
	value := struct{ command, data uint32 }{command: unix.ETHTOOL_GTXCSUM}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(socket) }()
	request := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}{data: unsafe.Pointer(&value)}
	copy(request.name[:unix.IFNAMSIZ-1], device)
	_, _, failed := unix.Syscall(unix.SYS_IOCTL, uintptr(socket), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	return failed == 0 && value.data != 0
}

// hasAddress reports whether an interface has an address that can be used: no IPv6 address that is being checked for
// duplicates or is one.
func hasAddress(device netlink.Link, family int, address netip.Addr) (bool, error) {
	addresses, err := netlink.AddrList(device, family)
	if err != nil {
		return false, err
	}
	for _, a := range addresses {
		if own, ok := netip.AddrFromSlice(a.IP); ok && own.Unmap() == address {
			return a.Flags&(unix.IFA_F_TENTATIVE|unix.IFA_F_DADFAILED) == 0, nil
		}
	}
	return false, nil
}

// nextHop returns the address on the link that a route leads to.
func nextHop(route *netlink.Route, remote netip.Addr) net.IP {
	if via, ok := route.Via.(*netlink.Via); ok {
		return via.Addr
	}
	if route.Gw != nil {
		return route.Gw
	}
	return remote.AsSlice()
}

// findNeighbour finds the link-layer address of a neighbour.
func (h *hostPath) findNeighbour(address net.IP) (bool, error) {
	family := netlink.FAMILY_V6
	if address.To4() != nil {
		family = netlink.FAMILY_V4
	}
	neighbours, err := netlink.NeighList(h.ifindex, family)
	if err != nil {
		return false, err
	}
	const known = netlink.NUD_REACHABLE | netlink.NUD_STALE | netlink.NUD_DELAY | netlink.NUD_PROBE |
		netlink.NUD_PERMANENT | netlink.NUD_NOARP
	for _, n := range neighbours {
		if n.IP.Equal(address) && n.State&known != 0 && len(n.HardwareAddr) == len(h.nextHop) {
			copy(h.nextHop[:], n.HardwareAddr)
			return !bytes.Equal(n.HardwareAddr, make([]byte, len(h.nextHop))), nil
		}
	}
	return false, nil
}

// checkPresent returns an error unless the interface of a path exists and has the local address. The interface may be
// down: its cable or its radio network may come later.
func checkPresent(p *Path, h hostPath) error {
	switch h.state {
	case PathNoInterface:
		return fmt.Errorf("%w: the interface %q of the path %q does not exist", ErrHost, p.Interface, p.Name)
	case PathNoAddress:
		return fmt.Errorf("%w: the interface %q of the path %q does not have the address %s", ErrHost, p.Interface,
			p.Name, p.Local)
	}
	return nil
}

// watchNetwork sends to changed, which has room for one entry, whenever an interface, address, route or neighbour has
// changed, until done is closed.
func watchNetwork(changed chan<- struct{}, done <-chan struct{}) error {
	links, addresses := make(chan netlink.LinkUpdate, 16), make(chan netlink.AddrUpdate, 16)
	routes, neighbours := make(chan netlink.RouteUpdate, 16), make(chan netlink.NeighUpdate, 16)
	if err := errors.Join(netlink.LinkSubscribe(links, done), netlink.AddrSubscribe(addresses, done),
		netlink.RouteSubscribe(routes, done), netlink.NeighSubscribe(neighbours, done)); err != nil {
		return fmt.Errorf("watch the interfaces: %w", err)
	}
	go forward(links, changed)
	go forward(addresses, changed)
	go forward(routes, changed)
	go forward(neighbours, changed)
	return nil
}

// forward signals changed for each event until the channel of events is closed.
func forward[T any](events <-chan T, changed chan<- struct{}) {
	for range events {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
}
