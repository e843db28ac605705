package trigger

import "time"

const (
	// ReceptionInterval is the time between two calls of Receivers.Step. Servers publish receptions as often.
	ReceptionInterval = 100 * time.Millisecond
	// OrderLifetime is the time after which an order of Receivers ends if no other follows. Orders follow each other at
	// half of it, so that a single one may be lost.
	OrderLifetime = 2 * time.Second
	renewAfter    = OrderLifetime / 2

	// Receptions are compared over receptionWindow intervals: 500 ms, two of the longest intervals between two reports
	// of arrivals (250 ms). remembered is the number of receptions of two windows.
	receptionWindow = 5
	remembered      = 2*receptionWindow + 1
	// silentPackets sent in the first silentSteps intervals of the window, and no report in all of it, are silence: the
	// report about them is overdue by at least 300 ms, the sum of a round trip and the interval between reports.
	silentSteps   = 2
	silentPackets = 4

	// lateQueue is the queueing delay of a path in trouble, the deadline that a rule has by default.
	lateQueue = 50 * time.Millisecond

	// troubledShare of the receivers are in trouble if their common path is. Receivers with bad links of their own do
	// not start copies.
	troubledShare = 0.5
)

// Reception is the knowledge of a server about the path to one receiver. The counts begin again if Sent or Reports
// falls.
type Reception struct {
	// Receiver is the number of the receiver, which no later receiver has.
	Receiver uint64
	// Sent counts packets, Arrived and Lost those of them by their last report, and Reports the reports of arrivals.
	// Lost falls when a packet that was reported as lost is reported as arrived.
	Sent, Reports, Arrived, Lost uint64
	// Requested counts packets that the receiver has requested again after they had been sent. KeyFrames counts its
	// requests for key frames, without those with which a decoder begins.
	Requested, KeyFrames uint64
	// QueueDelay is the queueing delay on the path over the last tenth of a second.
	QueueDelay time.Duration
}

// Receivers starts copies when at least half of the receivers behind a hop are in trouble. A receiver is in trouble if,
// within 500 ms,
//
//   - it reports 3 packets and 1 % of the packets as lost, the limits of Trouble,
//   - it requests as many packets again,
//   - it requests a key frame and makes no reports, so that nothing else shows its losses,
//   - its packets queue for 50 ms,
//   - or it reports nothing, although it has reported before and packets were sent.
//
// Receivers that were sent nothing do not count. While the trouble lasts, Step returns its cause every second, for
// orders that end OrderLifetime after the last one. The zero value is ready for use.
type Receivers struct {
	known map[uint64]*receiver
	last  time.Duration // when Step last returned a cause
	fired bool          // last is valid
	hop   Hop
}

// Hop is the state of a hop by the receivers behind it.
type Hop struct {
	// Cause is the trouble that most receivers have, Nothing if the hop is not in trouble.
	Cause Cause
	// Troubled is the number of receivers in trouble, Active the number of those that were sent packets.
	Troubled, Active int
}

// receiver is the recent past of one receiver.
type receiver struct {
	// past are the latest receptions, the newest at the end.
	past []Reception
	// silent is set from the start of silence until the next report, or until no packets were sent for a window.
	silent bool
	// present is set by the receptions of a step.
	present bool
}

// Step takes the receptions of all receivers behind the hop, and returns the cause of an order to start copies, or
// Nothing. Call it every ReceptionInterval.
func (r *Receivers) Step(receptions []Reception, now time.Duration) Cause {
	if r.known == nil {
		r.known = make(map[uint64]*receiver)
	}
	var counted [Ordered + 1]int
	r.hop = Hop{}
	for i := range receptions {
		known := r.known[receptions[i].Receiver]
		if known == nil {
			known = &receiver{}
			r.known[receptions[i].Receiver] = known
		}
		known.add(&receptions[i])
		cause, active := known.judge()
		if active {
			r.hop.Active++
		}
		if cause != Nothing {
			r.hop.Troubled++
			counted[cause]++
		}
	}
	r.forget()
	if float64(r.hop.Troubled) >= troubledShare*float64(r.hop.Active) {
		for cause, receivers := range counted {
			if receivers > counted[r.hop.Cause] {
				r.hop.Cause = Cause(cause)
			}
		}
	}
	if r.hop.Cause == Nothing || r.fired && now-r.last < renewAfter {
		return Nothing
	}
	r.last, r.fired = now, true
	return r.hop.Cause
}

// Hop returns the state of the hop at the last step.
func (r *Receivers) Hop() Hop { return r.hop }

// forget removes the receivers without a reception in this step.
func (r *Receivers) forget() {
	for number, known := range r.known {
		if !known.present {
			delete(r.known, number)
		}
		known.present = false
	}
}

// add adds the newest reception.
func (r *receiver) add(reception *Reception) {
	r.present = true
	if n := len(r.past); n > 0 && (reception.Reports < r.past[n-1].Reports || reception.Sent < r.past[n-1].Sent) {
		r.past, r.silent = r.past[:0], false
	}
	if len(r.past) == remembered {
		r.past = append(r.past[:0], r.past[1:]...)
	}
	r.past = append(r.past, *reception)
}

// judge returns the trouble of the receiver, and whether it was sent packets within the window.
func (r *receiver) judge() (cause Cause, active bool) {
	last := len(r.past) - 1
	if last < receptionWindow {
		return Nothing, false
	}
	newest, oldest := &r.past[last], &r.past[last-receptionWindow]
	early := &r.past[last-receptionWindow+silentSteps]
	if newest.Sent == oldest.Sent {
		r.silent = false
		return Nothing, false
	}
	reported := newest.Reports != oldest.Reports
	before := &r.past[max(last-2*receptionWindow, 0)]
	r.silent = !reported && (r.silent ||
		oldest.Reports != before.Reports && early.Sent-oldest.Sent >= silentPackets)
	arrived, lost := newest.Arrived-oldest.Arrived, newest.Lost-min(newest.Lost, oldest.Lost)
	switch {
	case r.silent:
		return Silence, true
	case lossy(lost, arrived+lost):
		return Losses, true
	case lossy(newest.Requested-oldest.Requested, newest.Sent-oldest.Sent):
		return Losses, true
	case newest.Reports == 0 && newest.KeyFrames != oldest.KeyFrames:
		return Losses, true
	case newest.QueueDelay >= lateQueue:
		return Delays, true
	}
	return Nothing, true
}

// lossy reports whether the losses of the packets are trouble.
func lossy(lost, packets uint64) bool {
	return lost >= leastNumbers && float64(lost) >= lossShare*float64(packets)
}
