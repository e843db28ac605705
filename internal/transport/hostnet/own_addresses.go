package hostnet

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// ownInterval is the time between two reads of the host's interfaces. Addresses change (DHCP, IPv6 privacy addresses,
// VPNs).
const ownInterval = 10 * time.Second

// OwnAddresses is the set of addresses that the server must not be made to send to because they are its own: the
// addresses of its interfaces, the broadcast addresses of their networks, and the public addresses behind which a NAT
// forwards to the server. OwnAddresses is safe for concurrent use.
type OwnAddresses struct {
	mu sync.Mutex
	// reached are the public addresses.
	reached []netip.Addr
	// known is the whole set. It is replaced, not changed.
	known atomic.Pointer[map[netip.Addr]struct{}]
	// looked is the time of the last read of the interfaces.
	looked time.Time
}

// NewOwnAddresses reads the interfaces and adds the given public addresses. Texts that are not addresses are ignored.
func NewOwnAddresses(reached []string) *OwnAddresses {
	o := &OwnAddresses{}
	o.Add(reached)
	return o
}

// Add adds public addresses of the server. Texts that are not addresses are ignored.
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

// Step reads the interfaces if ownInterval has passed.
func (o *OwnAddresses) Step(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now.Sub(o.looked) >= ownInterval {
		o.look(now)
	}
}

// look reads the interfaces. The caller holds the mutex.
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

// Has reports whether the set has an address.
func (o *OwnAddresses) Has(address netip.Addr) bool {
	_, known := (*o.known.Load())[address.WithZone("")]
	return known
}

// broadcastOf returns the broadcast address of an IPv4 network (RFC 919), in which all host bits are set. The result is
// invalid for networks without a broadcast address: IPv6 networks, and networks of fewer than four addresses (RFC
// 3021).
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
