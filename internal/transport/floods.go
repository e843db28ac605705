package transport

import (
	"net/netip"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/udp"
)

const (
	// floodLimit is how many datagrams of one address may be refused in one consentInterval before the kernel is told to
	// drop them: 2,000 per second, which cost the reader of a socket some 1 % of a core.
	floodLimit = 500
	// leastShun and mostShun are for how long the kernel drops them. The time doubles with each flood that follows: while
	// an address floods without end, its datagrams reach the reader for a quarter of a second in 16 s.
	leastShun = time.Second
	mostShun  = 16 * time.Second
	// maxShunned is how many addresses are shunned at once, with two rejections each.
	maxShunned = udp.MaxRejections / 2
	// maxFlooders is how many addresses are counted in one interval. A flood from ever other addresses is refused by the
	// reader, one by one.
	maxFlooders = 256
)

// floods finds the addresses that send far more STUN requests and DTLS records than they may. The kernel drops those of
// such an address for a while, before they wake a reader: to receive them one by one would take most of a core. Media and
// STUN responses are not concerned. It is stepped with the time, and safe for concurrent use.
type floods struct {
	mu sync.Mutex
	// refused counts the datagrams of the present interval.
	refused map[netip.AddrPort]int
	// shunned has the addresses that are shunned, and were of late; active counts the former at the last step.
	shunned map[netip.AddrPort]shun
	active  int
}

// shun is how long an address is shunned, and until when. It is remembered for as long again.
type shun struct {
	until time.Time
	lasts time.Duration
}

// shunnable reports whether a datagram is of a kind that the kernel drops for an address that is shunned: a STUN request,
// which begins with 0, or DTLS records, which begin with 20 to 63 (RFC 7983). Others are not counted: a publisher whose
// session has ended sends media until it learns of that, and its next join must not suffer.
func shunnable(datagram []byte) bool { return datagram[0] == 0 || isRecord(datagram) }

// note notes a datagram that was refused. It is not empty.
func (f *floods) note(datagram []byte, from netip.AddrPort) {
	if !shunnable(datagram) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refused == nil {
		f.refused = make(map[netip.AddrPort]int)
	}
	if count, known := f.refused[from]; known || len(f.refused) < maxFlooders {
		f.refused[from] = count + 1
	}
}

// step ends an interval. It returns what the kernel is to drop from now on, and whether that has changed.
func (f *floods) step(now time.Time) (rejections []udp.Rejection, changed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.active
	f.active = 0
	for address, s := range f.shunned {
		if now.Before(s.until) {
			f.active++
		} else if now.Sub(s.until) >= s.lasts {
			delete(f.shunned, address)
		}
	}
	changed = f.active != before
	for address, count := range f.refused {
		if count < floodLimit || f.active >= maxShunned {
			continue
		}
		lasts := min(max(leastShun, 2*f.shunned[address].lasts), mostShun)
		if f.shunned == nil {
			f.shunned = make(map[netip.AddrPort]shun)
		}
		f.shunned[address] = shun{until: now.Add(lasts), lasts: lasts}
		f.active++
		changed = true
	}
	clear(f.refused)
	if !changed {
		return nil, false
	}
	for address, s := range f.shunned {
		if now.Before(s.until) {
			// These are the datagrams that are shunnable.
			rejections = append(rejections, udp.Rejection{Peer: address}, udp.Rejection{Peer: address, First: 20, Last: 63})
		}
	}
	return rejections, true
}
