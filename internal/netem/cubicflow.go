package netem

import "time"

// CubicFlow is an endless Cubic transfer through a Link: the sender at the near end, the receiver at the far end, and a
// return path for the acknowledgements with constant delay and without loss. Like a Link it is pure, and belongs to the
// goroutine that steps it: Step at the times of Next, and Receive with each packet of the flow that the Link delivers.
type CubicFlow struct {
	flow    uint64
	back    time.Duration
	sender  *Cubic
	start   time.Time // time of the first segment; zero after that
	stopped bool

	acknowledgements fifo[acknowledgement]
	unused           []*Packet
}

// NewCubicFlow returns a transfer that begins at start. Its packets have the given Packet.Flow, and acknowledgements
// take the time back.
func NewCubicFlow(flow uint64, back time.Duration, start time.Time) *CubicFlow {
	return &CubicFlow{flow: flow, back: back, sender: NewCubic(), start: start}
}

// Stats returns the statistics of the sender.
func (f *CubicFlow) Stats() CubicStats { return f.sender.Stats() }

// Stop ends sending. Packets in transit still have to be received.
func (f *CubicFlow) Stop() { f.stopped = true }

// Next returns the time of the next Step, zero if nothing happens before a packet is received.
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

// Step processes the acknowledgements that have arrived by now and sends the segments that the window permits.
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

// Receive processes a packet of the flow that has left the link, and keeps it.
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

// acknowledgement is an acknowledgement in transit, with its arrival time at the sender.
type acknowledgement struct {
	number uint64
	at     time.Time
}
