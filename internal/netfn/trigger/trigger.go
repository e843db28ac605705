// Package trigger decides when copies of a rule's packets start and stop. Paper is the trigger of paper 003, Trouble
// reacts to the losses and delays of first copies, and Order is an order through the API. The result of each is an
// Event.
//
// The package is pure: the types are stepped with an explicit now, the time on the sender's monotonic clock, and belong
// to the goroutine that steps them.
package trigger

import (
	"fmt"
	"time"
)

// Action is the effect of an event on the copies of a rule.
type Action uint8

// The actions.
const (
	None Action = iota
	Start
	Stop
)

// Cause is why an event happened.
type Cause uint8

// The causes.
const (
	Nothing  Cause = iota
	Requests       // the intervals between requests were too long
	Losses         // no copy of some packets was in time
	Delays         // first copies became slow
	Silence        // packets that were sent are not reported as arrived
	Ordered        // a program or an operator gave the order
)

// String returns the cause as it follows "because".
func (c Cause) String() string {
	return [...]string{"nothing happened", "requests came too slowly", "packets were lost or late",
		"delays were growing", "no packets arrived", "of an order"}[c]
}

// Event is the result of a trigger. The zero value is no event.
type Event struct {
	Action Action
	Cause  Cause
}

// Order returns the event of an order through the API, which is "start" or "stop".
func Order(text string) (Event, error) {
	switch text {
	case "start":
		return Event{Start, Ordered}, nil
	case "stop":
		return Event{Stop, Ordered}, nil
	default:
		return Event{}, fmt.Errorf("the trigger %q is neither \"start\" nor \"stop\"", text)
	}
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

// Request takes a request at now and returns Start after three intervals in a row above 150 ms.
func (p *Paper) Request(now time.Duration) Event {
	interval := now - p.last
	if !p.started || interval < 0 {
		interval = 0
	}
	p.last, p.started = now, true
	if interval <= paperInterval {
		p.late = 0
		return Event{}
	}
	if p.late++; p.late < paperTimes {
		return Event{}
	}
	p.late = 0
	return Event{Start, Requests}
}
