package icemux

import (
	"net/netip"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/transport/ratelimit"
	"github.com/volsfu/volsfu/internal/udp"
)

const (
	// portFlood is the number of refused datagrams of one address and port in one StepInterval after which the kernel
	// drops them: 500 per second, which cost the reader of a socket some 0.2 % of a core.
	portFlood = 125
	// sourceFlood is the limit for all ports of a source. 40,000 datagrams per second cost some 16 % of a core. Other
	// hosts may share the source behind a NAT and cannot join while the kernel drops its datagrams. The limit is
	// therefore far above portFlood.
	sourceFlood = 10_000
	// leastShun and mostShun bound the time for which the kernel drops datagrams. The time doubles with each flood that
	// follows. The datagrams of an endless flood reach the reader for a quarter of a second in 16 s.
	leastShun = time.Second
	mostShun  = 16 * time.Second
	// maxFlooders is the number of ports, and of sources, that are counted in one interval. Floods from further sources
	// are refused by the reader, datagram by datagram.
	maxFlooders = 256
)

// shunnable are the kinds of datagrams that the kernel drops of a shunned flooder: STUN requests, whose first byte is
// 0, and DTLS records, whose first byte is 20 to 63 (RFC 7983). Other kinds are not counted: a publisher whose session
// has ended sends media until it learns of the end, and must be able to join again. A publisher that sends over data
// channels may be shunned after the end of its session, and joins from another port.
var shunnable = []udp.Kind{{First: 0, Last: 0}, {First: 20, Last: 63}}

func isShunnable(datagram []byte) bool {
	for _, kind := range shunnable {
		if first := datagram[0]; first >= kind.First && first <= kind.Last {
			return true
		}
	}
	return false
}

// flooder is one port of an address, or all ports of a source if port is 0.
type flooder struct {
	prefix netip.Prefix
	port   uint16
}

// floods finds the addresses that send far more STUN requests and DTLS records than the limits. The kernel then drops
// these datagrams for a while. Otherwise receiving them one by one would take most of a core. Media and STUN responses
// are not dropped. Time is an argument of step. floods is safe for concurrent use.
type floods struct {
	mu sync.Mutex
	// ports and sources count the datagrams of the present interval.
	ports   map[netip.AddrPort]int
	sources map[netip.Prefix]int
	// shunned has the flooders that are shunned at present or were shunned recently. active is the number of flooders
	// shunned at the last step.
	shunned map[flooder]shun
	active  int
}

// shun is the end and the duration of a shun. The entry is kept for the same duration after the end.
type shun struct {
	until time.Time
	lasts time.Duration
}

// note counts a datagram that was refused. The datagram is not empty.
func (f *floods) note(datagram []byte, from netip.AddrPort) {
	if !isShunnable(datagram) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ports == nil {
		f.ports, f.sources = make(map[netip.AddrPort]int), make(map[netip.Prefix]int)
	}
	count(f.ports, from)
	// Programs on this host belong to one owner and are not limited together.
	if source, limited := ratelimit.Source(from.Addr()); limited {
		count(f.sources, source)
	}
}

// count increments the count of a key, unless there are maxFlooders other keys.
func count[K comparable](counts map[K]int, key K) {
	if n, known := counts[key]; known || len(counts) < maxFlooders {
		counts[key] = n + 1
	}
}

// step ends an interval. step returns the flooders whose datagrams the kernel drops from now on, and whether they have
// changed.
func (f *floods) step(now time.Time) (shunned []flooder, changed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.active
	f.active = 0
	for flooder, s := range f.shunned {
		if now.Before(s.until) {
			f.active++
		} else if now.Sub(s.until) >= s.lasts {
			delete(f.shunned, flooder)
		}
	}
	changed = f.active != before
	for source, count := range f.sources {
		if count >= sourceFlood && f.shun(flooder{prefix: source}, now) {
			changed = true
		}
	}
	for address, count := range f.ports {
		host := address.Addr().Unmap().WithZone("")
		one := flooder{netip.PrefixFrom(host, host.BitLen()), address.Port()}
		if count >= portFlood && f.shun(one, now) {
			changed = true
		}
	}
	clear(f.ports)
	clear(f.sources)
	if !changed {
		return nil, false
	}
	for flooder, s := range f.shunned {
		if now.Before(s.until) {
			shunned = append(shunned, flooder)
		}
	}
	return shunned, true
}

// shun shuns a flooder from now on. shun returns false if there is no room, or if the flooder is shunned already and
// the kernel does not drop its datagrams. The caller holds the mutex.
func (f *floods) shun(one flooder, now time.Time) bool {
	if f.active >= udp.MaxRejected || now.Before(f.shunned[one].until) {
		return false
	}
	if f.shunned == nil {
		f.shunned = make(map[flooder]shun)
	}
	lasts := min(max(leastShun, 2*f.shunned[one].lasts), mostShun)
	f.shunned[one] = shun{until: now.Add(lasts), lasts: lasts}
	f.active++
	return true
}

// reject makes the kernel drop the datagrams of flooders. If all ports of a source are shunned, ports of connected
// peers are excepted. Floods from such a port are counted for the port. If the kernel cannot drop datagrams, the
// readers refuse them.
func (m *Mux) reject(shunned []flooder) {
	rejections := udp.Rejections{Kinds: shunnable}
	for _, f := range shunned {
		source := udp.RejectedSource{Prefix: f.prefix, Port: f.port}
		if f.port == 0 {
			source.Except = m.routes.Ports(f.prefix)
		}
		rejections.Sources = append(rejections.Sources, source)
	}
	_ = m.port.Reject(rejections)
}
