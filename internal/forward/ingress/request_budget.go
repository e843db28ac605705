package ingress

import "time"

const (
	// requestRate is how many packets per second a publisher may be asked for however little comes from it: 5 % of
	// 10,000 packets/s, 95 Mbit/s.
	requestRate = 500
	// requestBurst is how many it may be asked for beyond that and one per packet received: what comes in 200 ms at 195
	// Mbit/s. More than that is not lost at once, but by an outage that lasts for longer than repairs are worth waiting
	// for.
	requestBurst = 4096
)

// requestBudget bounds how many packets one publisher is asked for. Its loss of 5 % takes 0.06 requests per packet
// received, repeats included; a publisher whose sequence numbers jump at random would take thousands, each jump being a
// loss of up to 16,384 packets, asked for up to 8 times.
type requestBudget struct {
	credit float64
	// stepped is when the credit was last counted.
	stepped time.Time
}

func newRequestBudget() requestBudget { return requestBudget{credit: requestBurst} }

// earn counts a packet received.
func (b *requestBudget) earn() { b.credit = min(b.credit+1, requestBurst) }

// step counts the time since the last call.
func (b *requestBudget) step(now time.Time) {
	if !b.stepped.IsZero() {
		b.credit = min(b.credit+max(now.Sub(b.stepped), 0).Seconds()*requestRate, requestBurst)
	}
	b.stepped = now
}

// take spends up to n requests, and returns how many there were.
func (b *requestBudget) take(n int) int {
	granted := min(n, int(b.credit))
	b.credit -= float64(granted)
	return granted
}
