package hostnet

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// ownInterval is how often the host's interfaces are looked at: addresses come and go (DHCP, IPv6 privacy addresses,
// VPNs).
const ownInterval = 10 * time.Second

// OwnAddresses are the addresses that a participant must not have the server send to since they are the server's: those
// of its interfaces, the broadcast addresses of their networks, and those at which it is reached by a NAT. It is safe
// for concurrent use.
type OwnAddresses struct {
	mu sync.Mutex
	// reached are the addresses at which the server is reached.
	reached []netip.Addr
	// known has all of them. It is replaced, not changed.
	known atomic.Pointer[map[netip.Addr]struct{}]
	// looked is when the interfaces were looked at.
	looked time.Time
}

// NewOwnAddresses looks at the interfaces. Texts that are no addresses are left out.
func NewOwnAddresses(reached []string) *OwnAddresses {
	o := &OwnAddresses{}
	o.Add(reached)
	return o
}

// Add adds addresses at which the server is reached.
func (o *OwnAddresses) Add(reached []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, text := range reached {
		if address, err := netip.ParseAddr(text); err == nil {
			o.reached = append(o.reached, address)
		}
	}
	o.look(time.Now())
}

// Step looks at the interfaces if ownInterval has passed.
func (o *OwnAddresses) Step(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now.Sub(o.looked) >= ownInterval {
		o.look(now)
	}
}

// look looks at the interfaces. The caller holds the mutex.
func (o *OwnAddresses) look(now time.Time) {
	o.looked = now
	known := make(map[netip.Addr]struct{})
	for _, address := range o.reached {
		known[address.Unmap().WithZone("")] = struct{}{}
	}
	for _, host := range hostAddresses() {
		known[host.address.WithZone("")] = struct{}{}
		if broadcast := broadcastOf(host.network); broadcast.IsValid() {
			known[broadcast] = struct{}{}
		}
	}
	o.known.Store(&known)
}

// Has reports whether an address is one of them.
func (o *OwnAddresses) Has(address netip.Addr) bool {
	_, known := (*o.known.Load())[address.WithZone("")]
	return known
}

// broadcastOf is the broadcast address of a network of IPv4 (RFC 919), in which all bits of the host are set. It is
// invalid for networks that have none: those of IPv6, and of less than four addresses (RFC 3021).
func broadcastOf(network netip.Prefix) netip.Addr {
	const leastBits = 31
	if !network.IsValid() || !network.Addr().Is4() || network.Bits() >= leastBits {
		return netip.Addr{}
	}
	bytes := network.Addr().As4()
	for bit := network.Bits(); bit < 8*len(bytes); bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	return netip.AddrFrom4(bytes)
}
