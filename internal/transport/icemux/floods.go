package icemux

import (
	"net/netip"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/transport/ratelimit"
	"github.com/volsfu/volsfu/internal/udp"
)

const (
	// portFlood is how many datagrams of one address and port may be refused in one StepInterval before the kernel is
	// told to drop them: 500 per second, which cost the reader of a socket some 0.2 % of a core.
	portFlood = 125
	// sourceFlood is the same for all ports of a source. 40,000 per second cost some 16 % of a core. Others may share
	// the source by a NAT and cannot join while it is shunned, so it is far more than some of their datagrams that are
	// refused.
	sourceFlood = 10_000
	// leastShun and mostShun are for how long the kernel drops them. The time doubles with each flood that follows:
	// while an address floods without end, its datagrams reach the reader for a quarter of a second in 16 s.
	leastShun = time.Second
	mostShun  = 16 * time.Second
	// maxFlooders is how many ports, and how many sources, are counted in one interval. A flood from ever other sources
	// is refused by the reader, one by one.
	maxFlooders = 256
)

// shunnable are the kinds of datagrams that the kernel drops of a flooder that is shunned: STUN requests, which begin
// with 0, and DTLS records, which begin with 20 to 63 (RFC 7983). Others are not counted: a publisher whose session has
// ended sends media until it learns of that, and its next join must not suffer. One that sends over data channels may
// be shunned so, and joins from another port.
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

// floods finds the addresses that send far more STUN requests and DTLS records than they may. The kernel drops those of
// such an address for a while, before they wake a reader: to receive them one by one would take most of a core. Media
// and STUN responses are not concerned. It is stepped with the time, and safe for concurrent use.
type floods struct {
	mu sync.Mutex
	// ports and sources count the datagrams of the present interval.
	ports   map[netip.AddrPort]int
	sources map[netip.Prefix]int
	// shunned has the flooders that are shunned, and were of late; active counts the former at the last step.
	shunned map[flooder]shun
	active  int
}

// shun is how long a flooder is shunned, and until when. It is remembered for as long again.
type shun struct {
	until time.Time
	lasts time.Duration
}

// note notes a datagram that was refused. It is not empty.
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
	// The programs of this host are its owner's, and do not suffer for each other.
	if source, limited := ratelimit.Source(from.Addr()); limited {
		count(f.sources, source)
	}
}

// count counts one more for a key, unless it is one too many.
func count[K comparable](counts map[K]int, key K) {
	if n, known := counts[key]; known || len(counts) < maxFlooders {
		counts[key] = n + 1
	}
}

// step ends an interval. It returns what the kernel is to drop from now on, and whether that has changed.
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

// shun has a flooder shunned from now on. It reports false if there is no room, or if the flooder is shunned already,
// and the kernel does not drop its datagrams. The caller holds the mutex.
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

// reject has the kernel drop the datagrams of flooders. The peers that media goes to are excepted where all ports of
// their source are shunned: if they flood, their ports are. If the kernel cannot, the readers refuse the datagrams.
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
