package trunk

import (
	"time"

	"github.com/volsfu/volsfu/internal/transport/ratelimit"
)

// maxUnsentState is the number of bytes waiting in SCTP above which whole states wait.
const maxUnsentState = 1 << 20

// stateRate limits the messages to another node that are no payloads. Together with sendRate, hopsRate and 20 probes
// per second they are below messageRate, the limit at the other node.
var stateRate = ratelimit.Rate{PerSecond: 2500, Burst: 5000}

// outbox has the messages about publications that wait for the rate limit or for SCTP.
type outbox struct {
	control *control
	rate    ratelimit.Bucket
	queue   []*message
	// report receives the error of a message that cannot be sent. failed counts these messages.
	report func(error)
	failed uint64
}

func newOutbox(c *control, report func(error)) outbox {
	return outbox{control: c, rate: stateRate.Bucket(), report: report}
}

// add adds messages.
func (o *outbox) add(m ...*message) { o.queue = append(o.queue, m...) }

// send sends the messages, as far as the rate and SCTP permit, and reports whether all are sent. A message that cannot
// be sent is dropped.
func (o *outbox) send(now time.Time) bool {
	for len(o.queue) > 0 {
		if o.control.unsent() > maxUnsentState || !o.rate.Take(now) {
			return false
		}
		if err := o.control.send(o.queue[0]); err != nil {
			o.failed++
			o.report(err)
		}
		o.queue = o.queue[1:]
	}
	o.queue = nil
	return true
}
