package hostnet

import (
	"net"
	"net/netip"
	"testing"
)

// TestListenAddresses: loopback addresses are returned only if this host has no others.
func TestListenAddresses(t *testing.T) {
	others := map[bool]int{}
	for _, host := range hostAddresses() {
		if !host.address.IsLoopback() && !host.address.IsLinkLocalUnicast() {
			others[host.address.Is4()]++
		}
	}
	for _, text := range []string{"0.0.0.0:7882", "[::]:7882", "127.0.0.1:7882", "[::1]:7882"} {
		port := netip.MustParseAddrPort(text)
		found := ListenAddresses(port)
		expected, loopback := others[true], false
		switch {
		case !port.Addr().IsUnspecified():
			expected, loopback = 1, true
		case port.Addr().Is6():
			expected += others[false]
		}
		if expected == 0 {
			expected, loopback = len(found), true
		}
		if len(found) != expected || len(found) == 0 {
			t.Errorf("%s is reached at %v, expected %d addresses", text, found, expected)
		}
		for _, address := range found {
			udp := address.(*net.UDPAddr)
			if udp.Port != 7882 || udp.IP.IsLoopback() != loopback {
				t.Errorf("%s is reached at %v, expected port 7882, loopback %t", text, udp, loopback)
			}
		}
	}
}

// TestNeighbours: loopback and this host's own addresses are no neighbours, other addresses of its networks are.
func TestNeighbours(t *testing.T) {
	own := map[netip.Addr]bool{}
	for _, host := range hostAddresses() {
		own[host.address.WithZone("")] = true
	}
	for _, host := range hostAddresses() {
		if IsNeighbour(host.address) {
			t.Errorf("%v counts as a neighbour of itself", host.address)
		}
		next := host.address.WithZone("").Next()
		if host.network.Contains(next) && IsNeighbour(next) == (own[next] || next.IsLoopback()) {
			t.Errorf("%v counts as a neighbour of %v: %t", next, host.network, IsNeighbour(next))
		}
	}
	if IsNeighbour(netip.MustParseAddr("127.0.0.5")) {
		t.Error("a loopback address counts as a neighbour")
	}
}
