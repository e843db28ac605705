package hostnet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// ErrInterface is wrapped with the reason why a named network interface cannot be used.
var ErrInterface = errors.New("unusable network interface")

// Interface is a network interface of this host, at one time.
type Interface struct {
	// Index is the kernel's number of the interface. An interface that is removed and added again has another number.
	Index int
	// Address is the first usable address of the requested family.
	Address netip.Addr
}

// NamedInterface returns the interface with a name and its first usable address: of IPv6 if ipv6 is set, otherwise of
// IPv4. Link-local addresses are not usable, because their zone has no meaning on other hosts. Errors wrap
// ErrInterface.
func NamedInterface(name string, ipv6 bool) (Interface, error) {
	found, err := net.InterfaceByName(name)
	if err != nil {
		return Interface{}, fmt.Errorf("%w: this host has no interface %q", ErrInterface, name)
	}
	if found.Flags&net.FlagUp == 0 {
		return Interface{}, fmt.Errorf("%w: interface %q is down", ErrInterface, name)
	}
	addresses, err := found.Addrs()
	if err != nil {
		return Interface{}, fmt.Errorf("%w: read the addresses of interface %q: %w", ErrInterface, name, err)
	}
	for _, address := range addresses {
		network, ok := address.(*net.IPNet)
		if !ok {
			continue
		}
		ip, _ := netip.AddrFromSlice(network.IP)
		ip = ip.Unmap()
		if ip.Is6() == ipv6 && !ip.IsLinkLocalUnicast() && !ip.IsMulticast() && !ip.IsUnspecified() {
			return Interface{Index: found.Index, Address: ip}, nil
		}
	}
	family := "IPv4"
	if ipv6 {
		family = "IPv6"
	}
	return Interface{}, fmt.Errorf("%w: interface %q has no usable %s address", ErrInterface, name, family)
}
