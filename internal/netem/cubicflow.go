package netem

import "time"

// CubicFlow is an endless transfer by Cubic through a Link: the sender at its near end, the receiver at its far end, and a way back for the acknowledgements with a
// constant delay and without loss. Like a Link it is pure, and belongs to whoever steps it: Step at the times of Next, and Receive with each packet of the flow that the Link
// delivers.
type CubicFlow struct {
	flow    uint64
	back    time.Duration
	sender  *Cubic
	start   time.Time // when the first segment is sent; zero once it has been
	stopped bool

	acknowledgements fifo[acknowledgement]
	unused           []*Packet
}

// NewCubicFlow returns a transfer that begins at start. Its packets have the given Packet.Flow, and their acknowledgements take back to the sender.
func NewCubicFlow(flow uint64, back time.Duration, start time.Time) *CubicFlow {
	return &CubicFlow{flow: flow, back: back, sender: NewCubic(), start: start}
}

// Stats describes the sender.
func (f *CubicFlow) Stats() CubicStats { return f.sender.Stats() }

// Stop ends the transfer: nothing is sent any more. What is on its way is still to be received.
func (f *CubicFlow) Stop() { f.stopped = true }

// Next returns when Step is to be called, zero if nothing happens before a packet is received.
func (f *CubicFlow) Next() time.Time {
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

// Step takes the acknowledgements that have come by now and sends what the window allows then.
func (f *CubicFlow) Step(link *Link, now time.Time) {
	if !f.start.IsZero() {
		if now.Before(f.start) {
			return
		}
		f.start = time.Time{}
	}
	for f.acknowledgements.len() > 0 && !f.acknowledgements.first().at.After(now) {
		ack := f.acknowledgements.pop()
		f.sender.Acknowledge(ack.number, ack.at)
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

// Receive takes a packet of the flow that has left the link, and keeps it.
func (f *CubicFlow) Receive(p *Packet) {
	f.acknowledgements.push(acknowledgement{p.Number, p.Arrival.Add(f.back)})
	f.unused = append(f.unused, p)
}

// packet returns a packet to send.
func (f *CubicFlow) packet() *Packet {
	last := len(f.unused) - 1
	if last < 0 {
		return &Packet{Size: SegmentBytes, Flow: f.flow}
	}
	p := f.unused[last]
	f.unused = f.unused[:last]
	*p = Packet{Size: SegmentBytes, Flow: f.flow}
	return p
}

// acknowledgement is one on its way, and when it comes to the sender.
type acknowledgement struct {
	number uint64
	at     time.Time
}
