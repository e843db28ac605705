package pacing

import (
	"math"
	"time"
)

const (
	// fullPacket is the packet size, in bytes, for which ticks are computed.
	fullPacket = 1200
	// slack is the lateness of a wake-up that does not reduce the rate, unless the Path is smooth: with timers of Go's
	// precision, sleeps take up to 1.1 ms longer.
	slack = 2 * time.Millisecond
	// maxDebt bounds the time for which packets that bypass the pacer can delay all other packets, as in GCC's pacer.
	maxDebt = 500 * time.Millisecond
)

// Pacer decides which packets of one receiver may leave. Packets leave in ticks: all that are due, and with them up to
// 16 that are due within 2 ms (burst5ms: all within 5 ms), so that segmented sends stay long. While the Path leads,
// packets may leave before they are due as long as all sent bytes are within the estimate. While the Path is smooth,
// only the estimate decides, in ticks of 0.5 ms, and the frame that began first leaves first. Packets of a flow never
// overtake each other. R is the caller's description of a retransmission.
//
// A packet leaves at once if Admit returns true, and is otherwise queued with Hold. When Next is reached, the caller
// begins a tick and pops packets until none may leave: retransmissions first. The caller reports each packet that has
// left, including packets that bypass the pacer (audio, repairs), with Spend.
//
// During a probe (see Probe) the rate of the probe alone decides which media leaves. With the plan of Off no packet
// waits, but probes have ticks as well.
type Pacer[P, R any] struct {
	plan Plan
	// until is the end of the current tick: packets due before then belong to the tick, as long as left, the number of
	// packets that have left in the tick, is below the plan's bound.
	until time.Duration
	left  int
	// flows are the flows with queued packets; held counts the packets.
	flows flows[P]
	held  int
	// turn counts the frames that have begun.
	turn uint64

	// rate is in bytes per nanosecond, 0 for no limit. credit is the number of bytes that may leave, as of filled; a
	// negative value is a debt.
	rate, credit float64
	filled       time.Duration
	// waits is set if packets have been queued since the last fill, smoothProbes if the ticks of probes are those of a
	// smooth path.
	waits, smoothProbes bool
	room                room
	lead                lead
	// bound is nil while the Path has no window.
	bound *bound[P]

	repairs repairs[R]
	probe   probe
}

// Offer describes a packet to a Pacer: its arrival, its due time by the Schedule, and whether it begins a frame.
type Offer struct {
	Arrived, Due time.Duration
	Begins       bool
	// Frame is the size of the frame that the packet begins, in bytes on the wire, 0 if it is unknown. Expires is the
	// time from which on the caller drops the frame unless it has begun, 0 for never. Both matter only if Path.Window
	// is set.
	Frame   int
	Expires time.Duration
}

// NewPacer returns a Pacer without a rate limit.
func NewPacer[P, R any](plan Plan) *Pacer[P, R] { return &Pacer[P, R]{plan: plan} }

// Off reports whether the plan never holds packets, so that only probes have ticks.
func (p *Pacer[P, R]) Off() bool { return p.plan.Off() }

// Held returns the number of queued packets, without retransmissions.
func (p *Pacer[P, R]) Held() int { return p.held }

// Admit reports whether a packet of a flow may leave at once.
func (p *Pacer[P, R]) Admit(f *Flow[P], o Offer, now time.Duration) bool {
	switch {
	case p.plan.Off():
		return true
	case f.held > 0:
		return false
	case p.probe.rate > 0:
		if p.probe.fill(now); p.probe.credit <= 0 {
			return false
		}
		p.bound.takes(f, o.Frame, o.Begins)
		return true
	}
	if p.rate > 0 {
		if p.fill(now); p.credit <= 0 || !p.roomFor(o, now) {
			return false
		}
	}
	if now >= p.until && p.held == 0 {
		p.until, p.left = now+p.plan.ahead, 0
	}
	if !p.room.smooth && !p.leaves(p.plan.due(o, p.rate > 0), now) {
		return false
	}
	p.bound.takes(f, o.Frame, o.Begins)
	return true
}

// roomFor reports whether the estimate and the window permit a packet. No frame begins before one that has waited
// longer.
func (p *Pacer[P, R]) roomFor(o Offer, now time.Duration) bool {
	switch {
	case p.room.smooth:
		if p.held > 0 || p.room.full() {
			return false
		}
	case !p.room.admits(o.Begins) || o.Begins && p.room.short && p.held > 0:
		return false
	}
	return !o.Begins || p.bound == nil || len(p.flows.beginning) == 0 && p.bound.fits(o.Frame, now)
}

// Hold queues a packet that was not admitted. It reports whether Next may have changed.
func (p *Pacer[P, R]) Hold(f *Flow[P], packet P, o Offer) (next bool) {
	f.push(entry[P]{
		packet: packet, due: p.plan.due(o, p.rate > 0), expires: o.Expires, frame: int32(min(o.Frame, math.MaxInt32)),
		begins: o.Begins,
	})
	if p.held == 0 {
		p.waits = o.Arrived <= p.filled
	}
	p.held++
	if f.held > 1 {
		return false
	}
	p.flows.add(f)
	return f.place == 0 || p.bound != nil
}

// Begin records that a packet that has left began a frame of the flow. While room is short, flows take turns.
func (p *Pacer[P, R]) Begin(f *Flow[P]) {
	p.turn++
	f.turn = p.turn
	p.bound.begin(f, p.filled)
	if p.room.smooth && f.held > 0 {
		p.flows.update(f)
	}
}

// Spend accounts for a packet that has left and reports whether the packet completed a probe. Packets of a probe are
// not charged to the pacer: after a probe at six times the estimate the next frame would wait for longer than its own
// duration.
func (p *Pacer[P, R]) Spend(bytes int) (probed bool) {
	p.bound.spend(bytes, p.filled)
	if p.probe.rate > 0 {
		return p.probe.spend(bytes)
	}
	p.left++
	p.credit -= float64(bytes)
	p.room.spend(bytes)
	p.lead.bytes -= float64(bytes)
	return false
}

// Next returns the time of the next tick. ok is false if no packet is queued and no probe is active.
func (p *Pacer[P, R]) Next() (at time.Duration, ok bool) {
	at, ok = p.nextMedia()
	if repair, waits := p.nextRepair(); waits && (!ok || repair < at) {
		return repair, true
	}
	return at, ok
}

func (p *Pacer[P, R]) nextMedia() (at time.Duration, ok bool) {
	switch {
	case p.probe.rate > 0:
		return p.probe.next(p.held > 0), true
	case p.held == 0:
		return 0, false
	case p.room.smooth:
		return p.nextSmooth(), true
	case p.bound != nil:
		return p.nextBounded(), true
	}
	for _, h := range p.flows.heaps() {
		if len(h) > 0 {
			if due := p.leaving(h[0]); !ok || due < at {
				at, ok = due, true
			}
		}
	}
	return at, ok
}

// leaving returns the earliest tick for the first packet of a flow.
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

// Pop removes and returns the next packet of this tick. ok is false at the end of the tick.
func (p *Pacer[P, R]) Pop(now time.Duration) (packet P, ok bool) {
	f := p.next(now)
	if f == nil {
		p.bound.takes(nil, 0, false)
		return packet, false
	}
	head := f.head()
	p.bound.takes(f, int(head.frame), head.begins)
	packet = f.pop()
	p.held--
	p.removed(f)
	return packet, true
}

// next returns the flow of the next packet, or nil at the end of the tick.
func (p *Pacer[P, R]) next(now time.Duration) *Flow[P] {
	f := p.flows.first()
	switch {
	case f == nil:
		return nil
	case p.probe.rate > 0:
		if p.probe.credit <= 0 {
			return nil
		}
		return f
	case p.rate > 0 && p.credit <= 0, p.room.smooth && p.room.full():
		return nil
	case p.room.smooth && len(p.flows.ongoing) > 0:
		return p.flows.ongoing[0]
	case p.room.smooth:
		return p.beginner(now)
	case !p.leaves(f.head().due, now):
		return nil
	case p.bound == nil && !p.room.short && p.room.admits(f.begins):
		return f
	}
	return p.inTurn(now)
}

// inTurn returns the flow of the next packet while room is short or bytes in flight are bounded, or nil: flows in the
// middle of a frame first, then the flow whose last frame began longest ago.
func (p *Pacer[P, R]) inTurn(now time.Duration) *Flow[P] {
	if len(p.flows.ongoing) > 0 && p.leaves(p.flows.ongoing[0].head().due, now) {
		if !p.room.admits(false) {
			return nil
		}
		return p.flows.ongoing[0]
	}
	if !p.room.admits(true) {
		return nil
	}
	return p.beginner(now)
}

// beginner returns the flow whose frame begins next, or nil: the flow whose last frame began longest ago, if its frame
// fits the window. While frames wait for the window, beginner also returns flows whose frame has expired, so that the
// caller drops the frame.
func (p *Pacer[P, R]) beginner(now time.Duration) *Flow[P] {
	var first *Flow[P]
	for _, f := range p.flows.beginning {
		head := f.head()
		switch {
		case !p.mayBegin(head.due, now):
		case p.bound != nil && head.expired(now):
			return f
		case first == nil || f.turn < first.turn:
			first = f
		}
	}
	if first != nil && !p.bound.fits(int(first.head().frame), now) {
		return nil
	}
	return first
}

// mayBegin reports whether a frame may begin by the due time of its first packet. If bytes in flight are bounded, no
// frame begins early: the order of turns would depend on frames that do not wait yet.
func (p *Pacer[P, R]) mayBegin(due, now time.Duration) bool {
	switch {
	case p.room.smooth:
		return true
	case p.bound != nil:
		return due <= now
	}
	return p.leaves(due, now)
}

// Filter removes the packets of a flow for which keep returns false. It reports whether Next may have changed.
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
	p.removed(f)
	return true
}

// removed restores the order of the flows after packets of a flow were removed.
func (p *Pacer[P, R]) removed(f *Flow[P]) {
	p.flows.update(f)
	if p.held == 0 {
		p.room.short = false
	}
}

// leaves reports whether a packet belongs to the current tick.
func (p *Pacer[P, R]) leaves(due, now time.Duration) bool {
	return due <= now || due < p.until && p.left < p.plan.most || p.lead.admits()
}
