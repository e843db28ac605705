package netem

import (
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
)

// SegmentBytes is the size of a segment of a transfer on the wire, headers included.
const SegmentBytes = 1500

// windowSender is the congestion control of an endless transfer. Its methods are those of Cubic and Prague.
type windowSender interface {
	Send(now time.Time) (number uint64, ok bool)
	Acknowledge(number uint64, marked bool, now time.Time)
	Next() time.Time
	Expire(now time.Time)
}

// transfer is an endless transfer through a Link: the sender at the near end, the receiver at the far end, and a return
// path for the acknowledgements with constant delay and without loss. Each acknowledgement reports whether the segment
// arrived with CE, as AccECN feedback does (RFC 9768). Like a Link it is pure, and belongs to the goroutine that steps
// it: Step at the times of Next, and Receive with each packet of the flow that the Link delivers.
type transfer struct {
	flow    uint64
	back    time.Duration
	ecn     ecn.Codepoint
	sender  windowSender
	start   time.Time // time of the first segment; zero after that
	stopped bool

	acknowledgements fifo[acknowledgement]
	unused           []*Packet
}

// Stop ends sending. Packets in transit still have to be received.
func (f *transfer) Stop() { f.stopped = true }

// Next returns the time of the next Step, zero if nothing happens before a packet is received.
func (f *transfer) Next() time.Time {
	if !f.start.IsZero() {
		return f.start
	}
	next := f.sender.Next()
	if f.stopped {
		next = time.Time{}
	}
	if f.acknowledgements.len() > 0 {
		if at := f.acknowledgements.first().at; next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}

// Step processes the acknowledgements that have arrived by now and sends the segments that are due.
func (f *transfer) Step(link *Link, now time.Time) {
	if !f.start.IsZero() {
		if now.Before(f.start) {
			return
		}
		f.start = time.Time{}
	}
	for f.acknowledgements.len() > 0 && !f.acknowledgements.first().at.After(now) {
		ack := f.acknowledgements.pop()
		f.sender.Acknowledge(ack.number, ack.marked, ack.at)
	}
	if f.stopped {
		return
	}
	f.sender.Expire(now)
	for {
		number, ok := f.sender.Send(now)
		if !ok {
			return
		}
		p := f.packet()
		p.Number = number
		link.Send(p, now)
	}
}

// Receive processes a packet of the flow that has left the link, and keeps it.
func (f *transfer) Receive(p *Packet) {
	f.acknowledgements.push(acknowledgement{p.Number, p.ECN == ecn.CE, p.Arrival.Add(f.back)})
	f.unused = append(f.unused, p)
}

// packet returns a packet to send.
func (f *transfer) packet() *Packet {
	last := len(f.unused) - 1
	if last < 0 {
		return &Packet{Size: SegmentBytes, Flow: f.flow, ECN: f.ecn}
	}
	p := f.unused[last]
	f.unused = f.unused[:last]
	*p = Packet{Size: SegmentBytes, Flow: f.flow, ECN: f.ecn}
	return p
}

// acknowledgement is an acknowledgement in transit, with its arrival time at the sender.
type acknowledgement struct {
	number uint64
	marked bool // the segment arrived with CE
	at     time.Time
}
