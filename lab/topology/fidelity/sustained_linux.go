package fidelity

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/test/claim"
)

// measure counts the arrivals of the traffic, compares the received rate with the sent rate, and compares the arrival
// times with the model. Packets have 1,200 bytes, including the IP header.
func (s sustained) measure(ctx context.Context) (lines []claim.Line, err error) {
	c := cell{s.delay, s.link}
	t, err := openTrial(ctx, c.config(), unix.SOCK_DGRAM, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	interval := c.interval(float64(s.mbps) / float64(s.link))
	departures, arrivals, err := t.exchange(int(s.lasts/interval), packetBytes, interval)
	if err != nil {
		return nil, err
	}
	return s.judge(departures, arrivals)
}

// longestPause is half of the capacity of the link's queue.
const longestPause = 50 * time.Millisecond

// judge returns the lines for departures and arrivals, or an invalidError if the sender was too slow or not even.
func (s sustained) judge(departures []departure, arrivals []arrival) ([]claim.Line, error) {
	c := cell{s.delay, s.link}
	first, last := departures[0], departures[len(departures)-1]
	if err := evenly(departures); err != nil {
		return nil, err
	}
	if offered := rateOf(len(departures), last.before-first.before); offered < float64(s.mbps)*(1-rateError/100) {
		return nil, invalidError(fmt.Sprintf("the sender reached only %.0f Mbit/s", offered))
	}
	lines := []claim.Line{claim.Exactly(s.String()+": packets received", int64(len(arrivals)), "packets",
		int64(len(departures)))}
	if len(arrivals) != len(departures) {
		return lines, nil
	}
	errs, err := c.deviations(departures, arrivals)
	if err != nil {
		return nil, err
	}
	mbps := rateOf(len(arrivals), arrivals[len(arrivals)-1].at-arrivals[0].at)
	return append(lines, claim.AtMost(s.String()+": error of the rate", 100*math.Abs(mbps/float64(s.mbps)-1), "%",
		rateError),
		claim.AtMost(s.String()+": error of a packet's delay, p95", milliseconds(quantile(errs, 0.95)), "ms",
			delayErrorP95)), nil
}

// evenly returns an invalidError if the sender was delayed for longer than longestPause. The sender then sends the
// delayed packets at once, which may overflow the queue of 100 ms.
func evenly(departures []departure) error {
	for i, d := range departures[1:] {
		if pause := time.Duration(d.before - departures[i].before); pause > longestPause {
			return invalidError(fmt.Sprintf("the sender was delayed for %v", pause))
		}
	}
	return nil
}

// rateOf returns the rate of packets in Mbit/s from the time between the first and the last, in nanoseconds.
func rateOf(count int, nanoseconds int64) float64 {
	return float64((count-1)*packetBytes*8) / (time.Duration(nanoseconds).Seconds() * 1e6)
}
