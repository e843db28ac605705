package ingress

import "time"

const (
	// requestRate is the number of packets per second that may be requested from a publisher that sends nothing: 5 % of
	// 10,000 packets/s, 95 Mbit/s.
	requestRate = 500
	// requestBurst is the number of requests beyond requestRate and one per packet received: the packets of 200 ms at
	// 195 Mbit/s. Only an outage loses more at once, and it lasts longer than repairs are useful.
	requestBurst = 4096
)

// requestBudget bounds the packets requested from one publisher. A loss of 5 % needs 0.06 requests per packet received,
// including repetitions. A publisher whose sequence numbers jump at random would need thousands: each jump is a loss of
// up to 16,384 packets, each requested up to 8 times.
type requestBudget struct {
	credit float64
	// stepped is the time up to which credit is counted.
	stepped time.Time
}

func newRequestBudget() requestBudget { return requestBudget{credit: requestBurst} }

// earn adds the credit of a received packet.
func (b *requestBudget) earn() { b.credit = min(b.credit+1, requestBurst) }

// step adds the credit of the time since the last call.
func (b *requestBudget) step(now time.Time) {
	if !b.stepped.IsZero() {
		b.credit = min(b.credit+max(now.Sub(b.stepped), 0).Seconds()*requestRate, requestBurst)
	}
	b.stepped = now
}

// take spends up to n requests and returns the number granted.
func (b *requestBudget) take(n int) int {
	granted := min(n, int(b.credit))
	b.credit -= float64(granted)
	return granted
}
