package bridge

import (
	"cmp"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// burst is how many datagrams are sent to the connector at once: a frame of 100 kB. Each takes 2,304 bytes of its
	// socket's buffer, which holds 92 by default where the connector does not read meanwhile.
	burst = 88
	// datagramTime is what each takes beyond, at 650 Mbit/s: a connector reads one in a fraction of that.
	datagramTime = 16 * time.Microsecond
	// leastBurst is what is worth waking up for.
	leastBurst = burst / 4
)

// Pace keeps a socket from overflowing: a bucket of datagrams that fills up again with time. The zero value is for
// sockets on this host.
type Pace struct {
	// each is what a datagram takes, datagramTime where it is 0.
	each time.Duration
	full time.Time
}

// wireSize is the size of a full packet on the wire, in bytes, for paces of links: 1,172 of payload, 20 of RTP, 16 of
// SRTP, 28 of UDP and IP.
const wireSize = 1172 + 20 + 16 + 28

// NewPace is the pace of a link that carries a rate, or that of this host's sockets where the rate is 0 or more than
// they take.
func NewPace(rate volumetric.Bitrate) Pace {
	if rate <= 0 {
		return Pace{}
	}
	return Pace{each: max(datagramTime, time.Duration(wireSize*8*float64(time.Second)/float64(rate)))}
}

// Take takes up to n datagrams by now, and returns how many may be sent at once. Where it is none, wait says when to
// ask again.
func (p *Pace) Take(now time.Time, n int) (taken int, wait time.Duration) {
	if p.full.Before(now) {
		p.full = now
	}
	each := cmp.Or(p.each, datagramTime)
	debt := p.full.Sub(now)
	room := burst - int((debt+each-1)/each)
	if room < min(n, leastBurst) {
		return 0, debt - time.Duration(burst-min(n, leastBurst))*each
	}
	taken = min(n, room)
	p.full = p.full.Add(time.Duration(taken) * each)
	return taken, 0
}
