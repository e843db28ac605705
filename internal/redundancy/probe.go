package redundancy

import "time"

const (
	// probeShare is the part of the sent bytes that probes may take. With budgetShare it is 30 %.
	probeShare = 0.02
	// probeCredit is the credit of the first probe and the largest credit, in bytes: a probe of 8 Mbit/s. The estimate
	// doubles in 0.3 s (fastIncrease), so a probe takes as much as 0.5 s of the rate that it reaches.
	probeCredit  = 500_000
	probeSeconds = 0.5
	// probeAgain is the time after a probe that the path did not carry until the next one.
	probeAgain = 30 * time.Second
	// probeQueue is the queue above which a path is not probed. A probe ends at queueDecrease.
	probeQueue = 15 * time.Millisecond
	// needed is the ratio of the estimate that probes ask for, and the rate on the primary path.
	needed = 1.1
)

// probe raises the estimate of the second path to the rate on the primary path, before an outage needs it: otherwise
// frames of high qualities are lost until the estimate has grown. While a probe is on, frames of the class Other are
// copied within the estimate.
type probe struct {
	on bool
	// credit is the number of bytes that probes may copy. next is the earliest time of the next probe.
	credit float64
	next   time.Time
	// sent is the rate on the primary path in the last complete second without an outage, in bit/s. begun and bytes are
	// the time and the count of sent bytes at which the present second began.
	sent  float64
	begun time.Time
	bytes uint64
}

// count counts the bytes sent so far, of which the last packet has the given size. outage is set during an outage, in
// which repairs would count.
func (p *probe) count(bytes uint64, size int, outage bool, now time.Time) {
	p.credit = min(p.credit+probeShare*float64(size), probeCredit)
	switch elapsed := now.Sub(p.begun); {
	case outage:
	case elapsed < time.Second:
		return
	case elapsed < 2*time.Second:
		p.sent = float64(bytes-p.bytes) * 8 / elapsed.Seconds()
	}
	p.begun, p.bytes = now, bytes
}

// step begins or ends a probe, before a frame that would not be copied otherwise.
func (p *probe) step(e *estimate, now time.Time) {
	carries := e.state == Carrying && e.loss <= lossIncrease
	switch enough := e.rate >= needed*p.sent; {
	case !p.on:
		p.on = carries && !enough && e.queue <= probeQueue && !now.Before(p.next) &&
			p.credit >= min(probeSeconds*p.sent/8, probeCredit)
	case !carries:
		p.on, p.next = false, now.Add(probeAgain)
	case enough || p.credit <= 0:
		p.on = false
	}
}
