package bridge

import (
	"cmp"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// burst is the number of datagrams that are sent to the connector at once: a frame of 100 kB. Each datagram uses
	// 2,304 bytes of the connector's socket buffer, which by default holds 92 datagrams while the connector does not
	// read.
	burst = 88
	// datagramTime is the time per further datagram, at 650 Mbit/s. A connector reads a datagram in a fraction of that
	// time.
	datagramTime = 16 * time.Microsecond
	// leastBurst is the smallest burst for which a wake-up is worthwhile.
	leastBurst = burst / 4
)

// Pace prevents a socket buffer from overflowing: a token bucket of datagrams that refills with time. The zero value is
// for sockets on this host.
type Pace struct {
	// each is the time per datagram. 0 means datagramTime.
	each time.Duration
	full time.Time
}

// wireSize is the size of a full packet on a link, in bytes: 1,172 of payload, 20 of RTP, 16 of SRTP, 28 of UDP and IP.
const wireSize = 1172 + 20 + 16 + 28

// NewPace returns the pace of a link with the given rate. If the rate is 0 or exceeds that of this host's sockets, the
// pace is that of the sockets.
func NewPace(rate volumetric.Bitrate) Pace {
	if rate <= 0 {
		return Pace{}
	}
	return Pace{each: max(datagramTime, time.Duration(wireSize*8*float64(time.Second)/float64(rate)))}
}

// Take requests up to n datagrams and returns the number that may be sent now. If the number is 0, wait is the time
// until the next attempt.
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
