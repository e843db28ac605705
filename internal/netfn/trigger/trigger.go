// Package trigger decides when copies of a rule's packets start. Paper is the trigger of paper 003, and Trouble reacts
// to the losses and delays of first copies. Receivers is the trigger of a server that watches its receivers. The result
// of each is a Cause.
//
// The package is pure: the types are stepped with an explicit now, the time on the sender's monotonic clock, and belong
// to the goroutine that steps them.
package trigger

import "time"

// Cause is why copies start.
type Cause uint8

// The causes.
const (
	Nothing  Cause = iota // copies do not start
	Requests              // the intervals between requests were too long
	Losses                // no copy of some packets was in time
	Delays                // first copies became slow
	Silence               // packets that were sent are not reported as arrived
	Ordered               // a program or an operator gave the order
	Adopted               // an earlier process has copied the packets
)

// String returns the cause as a clause.
func (c Cause) String() string {
	return [...]string{"nothing happened", "requests came too slowly", "packets were lost or late",
		"packets became slow", "no packets arrived", "copies were ordered",
		"an earlier process copied the packets"}[c]
}

const (
	// paperInterval and paperTimes are the policy of paper 003, section IV, step 2: three intervals above 150 ms in a
	// row. The earliest reaction is therefore 450 ms after the onset.
	paperInterval = 150 * time.Millisecond
	paperTimes    = 3
)

// Paper is the trigger of paper 003, which watches the requests for frames. The zero value is ready for use.
type Paper struct {
	last    time.Duration
	started bool
	late    int // intervals in a row that were too long
}

// Request takes a request at now and returns Requests after three intervals in a row above 150 ms, else Nothing.
func (p *Paper) Request(now time.Duration) Cause {
	interval := now - p.last
	if !p.started || interval < 0 {
		interval = 0
	}
	p.last, p.started = now, true
	if interval <= paperInterval {
		p.late = 0
		return Nothing
	}
	if p.late++; p.late < paperTimes {
		return Nothing
	}
	p.late = 0
	return Requests
}
