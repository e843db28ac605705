package pacing

import "time"

const (
	// fullPacket is the size that ticks at a rate are reckoned with, in bytes.
	fullPacket = 1200
	// slack is what a wake-up may be late without that the rate suffers: where timers are no better than Go's, sleeps take up to 1.1 ms longer.
	slack = 2 * time.Millisecond
	// maxDebt is for how long what leaves past the pacer can keep everything else waiting, as in GCC's pacer.
	maxDebt = 500 * time.Millisecond
)

// Pacer decides which packets of one receiver may leave. Packets leave in ticks: those that are due, and with them up to 16 that are due within 2 ms (with burst5ms:
// all within 5 ms), so that segmented sends stay long. Where the Path leads, packets of a part of the interval leave before they are due for as long as all that leaves is within its estimate. A packet never leaves before one that waits in its flow. R is what the caller knows of a retransmission.
//
// A packet leaves at once where Admit says so, and is otherwise held. When Next has come, the caller begins a tick and pops what leaves, until nothing
// does: retransmissions first. Each packet that has left, and each that has left past the pacer (audio, repairs), is to be told with Spend.
//
// While a probe is under way (see Probe) its rate alone says what media leaves. With the plan of Off nothing waits, but probes have ticks all the same.
type Pacer[P, R any] struct {
	plan Plan
	// until is the end of the tick under way: packets that are due before then belong to it, as long as no more than the plan's number have left in it.
	until time.Duration
	left  int
	// beginning are the flows that hold packets of which the first begins a frame, ongoing those that go on with one; held counts the packets.
	beginning, ongoing flowHeap[P]
	held               int
	// turn counts the frames that have begun.
	turn uint64

	// rate is in bytes per nanosecond, 0 without limit. credit is how many bytes may leave, as of filled; below 0 it is owed.
	rate, credit float64
	filled       time.Duration
	room         room
	lead         lead

	repairs repairs[R]
	probe   probe
}

// Offer is what a Pacer has to know of a packet: when it arrived and is due by its Schedule, and whether it begins a frame.
type Offer struct {
	Arrived, Due time.Duration
	Begins       bool
}

// NewPacer returns a Pacer without limit of rate.
func NewPacer[P, R any](plan Plan) *Pacer[P, R] { return &Pacer[P, R]{plan: plan} }

// Held is the number of packets that wait, without retransmissions.
func (p *Pacer[P, R]) Held() int { return p.held }

// Admit tells whether a packet of a flow may leave at once.
func (p *Pacer[P, R]) Admit(f *Flow[P], o Offer, now time.Duration) bool {
	switch {
	case p.plan.Off():
		return true
	case f.held > 0:
		return false
	case p.probe.rate > 0:
		p.probe.fill(now)
		return p.probe.credit > 0
	}
	if p.rate > 0 {
		if p.fill(now); p.credit <= 0 || !p.room.admits(o.Begins) || o.Begins && p.room.short && p.held > 0 {
			return false
		}
	}
	if now >= p.until && p.held == 0 {
		p.until, p.left = now+p.plan.ahead, 0
	}
	return p.leaves(p.planned(o), now)
}

// Hold makes a packet wait that was not admitted. It tells whether Next may have changed.
func (p *Pacer[P, R]) Hold(f *Flow[P], packet P, o Offer) (next bool) {
	f.push(entry[P]{packet: packet, due: p.planned(o), begins: o.Begins})
	p.held++
	if f.held > 1 {
		return false
	}
	p.wait(f)
	return f.place == 0
}

// Begin says that a packet that has left began a frame of the flow: where there is not room for all, each flow has its turn.
func (p *Pacer[P, R]) Begin(f *Flow[P]) {
	p.turn++
	f.turn = p.turn
}

// Spend accounts for a packet that has left. It tells whether that has completed a probe. What leaves with a probe, at its rate, is not held against what
// follows: a probe at six times the estimate would keep the next frame waiting for longer than it takes itself.
func (p *Pacer[P, R]) Spend(bytes int) (probed bool) {
	if p.probe.rate > 0 {
		return p.probe.spend(bytes)
	}
	p.left++
	p.credit -= float64(bytes)
	p.room.spend(bytes)
	p.lead.bytes -= float64(bytes)
	return false
}

// Next is when the next tick is to begin. It is not ok while nothing waits and no probe is under way.
func (p *Pacer[P, R]) Next() (at time.Duration, ok bool) {
	at, ok = p.nextMedia()
	if repair, waits := p.nextRepair(); waits && (!ok || repair < at) {
		return repair, true
	}
	return at, ok
}

func (p *Pacer[P, R]) nextMedia() (at time.Duration, ok bool) {
	if p.probe.rate > 0 {
		return p.probe.next(p.held > 0), true
	}
	for _, h := range [...]flowHeap[P]{p.beginning, p.ongoing} {
		if len(h) > 0 {
			if due := p.leaving(h[0]); !ok || due < at {
				at, ok = due, true
			}
		}
	}
	return at, ok
}

// leaving is when a tick may begin for the first packet of a flow.
func (p *Pacer[P, R]) leaving(f *Flow[P]) time.Duration {
	at := f.head().due
	if p.rate == 0 {
		return at
	}
	switch {
	case p.lead.admits():
		at = min(at, p.filled)
	case p.lead.open:
		at = min(at, p.refilled(p.lead.rate, p.lead.bytes))
	}
	if p.credit <= 0 {
		at = max(at, p.refilled(p.rate, p.credit))
	}
	if left := p.room.left(f.begins); left <= 0 {
		at = max(at, p.refilled(p.room.rate, left))
	}
	return at
}

// Tick begins a tick.
func (p *Pacer[P, R]) Tick(now time.Duration) {
	p.fill(now)
	p.until, p.left = now+p.plan.ahead, 0
	p.probe.begin(now)
}

// Pop takes the packet that leaves next in this tick. It is not ok when the tick is over.
func (p *Pacer[P, R]) Pop(now time.Duration) (packet P, ok bool) {
	f := p.next(now)
	if f == nil {
		return packet, false
	}
	packet = f.pop()
	p.held--
	p.settle(f)
	return packet, true
}

// next is the flow whose packet leaves next, nil when the tick is over.
func (p *Pacer[P, R]) next(now time.Duration) *Flow[P] {
	f := p.first()
	switch {
	case f == nil:
		return nil
	case p.probe.rate > 0:
		if p.probe.credit <= 0 {
			return nil
		}
		return f
	case p.rate > 0 && p.credit <= 0, !p.leaves(f.head().due, now):
		return nil
	case !p.room.short && p.room.admits(f.begins):
		return f
	}
	return p.inTurn(now)
}

// first is the flow whose packet is due first, nil if none waits.
func (p *Pacer[P, R]) first() *Flow[P] {
	switch {
	case len(p.beginning) == 0 && len(p.ongoing) == 0:
		return nil
	case len(p.ongoing) == 0:
		return p.beginning[0]
	case len(p.beginning) == 0 || p.ongoing[0].head().due <= p.beginning[0].head().due:
		return p.ongoing[0]
	}
	return p.beginning[0]
}

// inTurn is the flow whose packet leaves next where there is not room for all, nil if there is none: first what goes on with a frame, then the flow that has
// begun one longest ago.
func (p *Pacer[P, R]) inTurn(now time.Duration) *Flow[P] {
	if len(p.ongoing) > 0 && p.leaves(p.ongoing[0].head().due, now) {
		if !p.room.admits(false) {
			return nil
		}
		return p.ongoing[0]
	}
	if !p.room.admits(true) {
		return nil
	}
	var first *Flow[P]
	for _, f := range p.beginning {
		if p.leaves(f.head().due, now) && (first == nil || f.turn < first.turn) {
			first = f
		}
	}
	return first
}

// Filter takes those packets out of a flow that keep does not accept. It tells whether Next may have changed.
func (p *Pacer[P, R]) Filter(f *Flow[P], keep func(P) bool) (next bool) {
	before := f.held
	if before == 0 {
		return false
	}
	f.filter(keep)
	p.held -= before - f.held
	if f.held == before {
		return false
	}
	p.settle(f)
	return true
}

// wait puts a flow among those in which packets wait.
func (p *Pacer[P, R]) wait(f *Flow[P]) {
	f.begins = f.head().begins
	p.heap(f).push(f)
}

// settle puts a flow where it belongs from which packets were taken.
func (p *Pacer[P, R]) settle(f *Flow[P]) {
	switch h := p.heap(f); {
	case f.held == 0:
		h.remove(f.place)
		if p.held == 0 {
			p.room.short = false
		}
	case f.head().begins != f.begins:
		h.remove(f.place)
		p.wait(f)
	default:
		h.fix(f.place)
	}
}

func (p *Pacer[P, R]) heap(f *Flow[P]) *flowHeap[P] {
	if f.begins {
		return &p.beginning
	}
	return &p.ongoing
}

// planned is when a packet is due for this receiver.
func (p *Pacer[P, R]) planned(o Offer) time.Duration {
	if p.plan.byEstimate && p.rate > 0 {
		return o.Arrived
	}
	return o.Due
}

// leaves tells whether a packet belongs to the tick under way.
func (p *Pacer[P, R]) leaves(due, now time.Duration) bool {
	return due <= now || due < p.until && p.left < p.plan.most || p.lead.admits()
}
