package congestion

import "time"

const (
	// flightShare is the weight of the past in the mean interval of reports.
	flightShare = 8
	// flightMost bounds an interval that counts. Receivers report every 250 ms or more often; a longer gap is a
	// silence.
	flightMost = 250 * time.Millisecond
	// flightFrame is the part of the window for a frame that begins while the packets before it are in flight, at 30
	// frames per second.
	flightFrame = 33 * time.Millisecond
	// flightLeast is the smallest window in bytes, two full packets.
	flightLeast = 2 * 1500
)

// flight bounds the bytes in flight. The estimate falls when reports show a queue, and no report comes from a path that
// has stopped: without a window, a wireless link that stops for a second is sent frames for 500 ms (SilenceConfig), and
// none of them arrives in time. With a window they are not sent.
type flight struct {
	last     time.Duration // time of the last report
	interval time.Duration // mean interval of reports, 0 before the second report
}

// reported adds a report.
func (f *flight) reported(now time.Duration) {
	if f.last > 0 {
		gap := min(now-f.last, flightMost)
		if f.interval == 0 {
			f.interval = gap
		} else {
			f.interval += (gap - f.interval) / flightShare
		}
	}
	f.last = now
}

// window returns the bytes that may be in flight, 0 for no bound: those that a path with the rate of the estimate holds
// during the empty round trip, the standing queue, which may be that of others, and the interval of reports, with a
// frame and a further queue that would count as overuse. Draining does not narrow the window.
func (g *gcc) window() int {
	if g.flight.interval == 0 || g.empty == 0 {
		return 0
	}
	length := g.empty + g.queue.delay + g.flight.interval + flightFrame + g.cfg.Delay.QueueMax
	return max(windowOf(max(g.rate.rate, g.estimate), length), flightLeast)
}
