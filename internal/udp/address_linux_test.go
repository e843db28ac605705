package udp

import (
	"net"
	"net/netip"
	"testing"
)

// TestZone sends over an interface by its name, and back by the number in received addresses.
func TestZone(t *testing.T) {
	local := linkLocal(t)
	from, to := opened(t)(Listen(Config{Address: local})), opened(t)(Listen(Config{Address: local}))
	there := run(to.Address(), 0, 3, 500, 400)
	send(t, from, there)
	got := take(t, to, to.Sockets()[0], 3)
	back := run(got[0].peer, 0, 2, 500, 400)
	send(t, to, back)
	same(t, take(t, from, from.Sockets()[0], 2),
		netip.AddrPortFrom(local.Addr().WithZone(got[0].peer.Addr().Zone()), to.Address().Port()), back)
}

// linkLocal returns an address that needs a zone.
func linkLocal(t *testing.T) netip.AddrPort {
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		addresses, err := i.Addrs()
		if err != nil || i.Flags&net.FlagUp == 0 {
			continue
		}
		for _, a := range addresses {
			prefix, err := netip.ParsePrefix(a.String())
			if err == nil && prefix.Addr().Is6() && prefix.Addr().IsLinkLocalUnicast() {
				return netip.AddrPortFrom(prefix.Addr().WithZone(i.Name), 0)
			}
		}
	}
	t.Skip("no interface of this system has a link-local address of IPv6")
	return netip.AddrPort{}
}
