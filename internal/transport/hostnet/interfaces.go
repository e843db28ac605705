// Package hostnet describes this host's networks: the addresses of its interfaces, and which hosts are on link.
package hostnet

import (
	"net"
	"net/netip"
)

// hostAddress is an address of one of this host's network interfaces.
type hostAddress struct {
	address netip.Addr
	// network is the network of the interface.
	network netip.Prefix
}

// hostAddresses returns the addresses of the network interfaces that are up. Interfaces that cannot be read are left
// out.
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

// ListenAddresses returns the addresses at which a port can be reached. Loopback addresses are included only if there
// are no others: programs on this host reach its other addresses, too, and other hosts cannot use loopback.
func ListenAddresses(port netip.AddrPort) []net.Addr {
	if !port.Addr().IsUnspecified() {
		return []net.Addr{net.UDPAddrFromAddrPort(port)}
	}
	var addresses, loopback []net.Addr
	for _, host := range hostAddresses() {
		// A port on the unspecified IPv6 address receives IPv4, too.
		if !host.address.Is4() && !port.Addr().Is6() {
			continue
		}
		address := net.UDPAddrFromAddrPort(netip.AddrPortFrom(host.address, port.Port()))
		switch {
		case host.address.IsLoopback():
			loopback = append(loopback, address)
		case host.address.IsLinkLocalUnicast():
			// The zone has no meaning on other hosts. Clients on the link have other addresses, too.
		default:
			addresses = append(addresses, address)
		}
	}
	if len(addresses) == 0 {
		return loopback
	}
	return addresses
}

// IsNeighbour reports whether the kernel queues packets to an address until it has resolved that address (ARP; RFC
// 4861), and not the address of a gateway. The answer comes from the route to the address or, if the kernel cannot be
// asked for the route, from the networks of this host's interfaces.
func IsNeighbour(address netip.Addr) bool {
	neighbour, err := onLink(address)
	if err != nil {
		return inOwnNetwork(address)
	}
	return neighbour
}

// inOwnNetwork reports whether an address is in a network of this host and is not an address of this host.
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
