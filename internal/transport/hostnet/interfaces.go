// Package hostnet knows this host's place in its networks: the addresses of its interfaces, and which hosts are on a
// link with it.
package hostnet

import (
	"net"
	"net/netip"
)

// hostAddress is an address of one of this host's network interfaces.
type hostAddress struct {
	address netip.Addr
	// network is the network that the interface is on.
	network netip.Prefix
}

// hostAddresses are the addresses of the network interfaces that are up. Interfaces that cannot be read have none.
func hostAddresses() []hostAddress {
	var found []hostAddress
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil
	}
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 {
			continue
		}
		addresses, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, address := range addresses {
			network, ok := address.(*net.IPNet)
			if !ok {
				continue
			}
			ip, _ := netip.AddrFromSlice(network.IP)
			bits, _ := network.Mask.Size()
			host := hostAddress{address: ip.Unmap()}
			host.network = netip.PrefixFrom(host.address, bits)
			if host.address.Is6() && host.address.IsLinkLocalUnicast() {
				host.address = host.address.WithZone(i.Name)
			}
			found = append(found, host)
		}
	}
	return found
}

// ListenAddresses are the addresses that a port can be reached at. Those of loopback are among them only if there are
// no others: programs on this host reach its other addresses as well, and other hosts have no use for them.
func ListenAddresses(port netip.AddrPort) []net.Addr {
	if !port.Addr().IsUnspecified() {
		return []net.Addr{net.UDPAddrFromAddrPort(port)}
	}
	var addresses, loopback []net.Addr
	for _, host := range hostAddresses() {
		// A port on an address of IPv6 that is unspecified is one of IPv4, too.
		if !host.address.Is4() && !port.Addr().Is6() {
			continue
		}
		address := net.UDPAddrFromAddrPort(netip.AddrPortFrom(host.address, port.Port()))
		switch {
		case host.address.IsLoopback():
			loopback = append(loopback, address)
		case host.address.IsLinkLocalUnicast():
			// Its zone means nothing to other hosts. Clients of the link have other addresses, too.
		default:
			addresses = append(addresses, address)
		}
	}
	if len(addresses) == 0 {
		return loopback
	}
	return addresses
}

// IsNeighbour reports whether packets to an address wait in the kernel until that address is resolved (ARP; RFC 4861),
// where those to other hosts wait for a gateway. The route says so. If the kernel cannot be asked for the route, the
// networks of this host's interfaces do.
func IsNeighbour(address netip.Addr) bool {
	neighbour, err := onLink(address)
	if err != nil {
		return inOwnNetwork(address)
	}
	return neighbour
}

// inOwnNetwork reports whether an address is in a network that this host is on, and not the host's own.
func inOwnNetwork(address netip.Addr) bool {
	address = address.WithZone("")
	if address.IsLoopback() {
		return false
	}
	neighbour := false
	for _, host := range hostAddresses() {
		if host.address.WithZone("") == address {
			return false
		}
		neighbour = neighbour || host.network.Contains(address)
	}
	return neighbour
}
