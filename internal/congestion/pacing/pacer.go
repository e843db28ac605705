package pacing

import "time"

const (
	// fullPacket is the size that ticks at a rate are reckoned with, in bytes.
	fullPacket = 1200
	// slack is what a wake-up may be late without that the rate suffers: sleeps take up to 1.1 ms longer.
	slack = 2 * time.Millisecond
	// maxDebt is for how long what leaves past the pacer can keep everything else waiting, as in GCC's pacer.
	maxDebt = 500 * time.Millisecond
)

// Pacer decides which packets of one receiver may leave. Packets leave in ticks: those that are due, and with them up to 16 that are due within 2 ms (with burst5ms:
// all within 5 ms), so that segmented sends stay long. A packet never leaves before one that waits in its flow.
//
// A packet leaves at once where Admit says so, and is otherwise held. When Next has come, the caller begins a tick and pops what leaves, until nothing
// does. Each packet that has left, and each that has left past the pacer (audio, retransmissions, repairs), is to be told with Spend.
//
// While a probe is under way (see Probe) its rate alone says what leaves. With the plan of Off nothing waits, but probes have ticks all the same.
type Pacer[P any] struct {
	plan Plan
	// until is the end of the tick under way: packets that are due before then belong to it, as long as no more than the plan's number have left in it.
	until time.Duration
	left  int
	// waiting are the flows that hold packets, a heap by when the first one is due; held counts the packets.
	waiting []*Flow[P]
	held    int

	// rate is in bytes per nanosecond, 0 without limit. credit is how many bytes may leave, as of filled; below 0 it is owed.
	rate, credit float64
	filled       time.Duration

	probe probe
}

// NewPacer returns a Pacer without limit of rate.
func NewPacer[P any](plan Plan) *Pacer[P] { return &Pacer[P]{plan: plan} }

// SetEstimate makes 2.5 × that many bits per second the rate which all frames under way share; 0 lifts the limit.
func (p *Pacer[P]) SetEstimate(bitsPerSecond int64, now time.Duration) {
	p.fill(now)
	rate := rateFactor * float64(max(bitsPerSecond, 0)) / 8 / float64(time.Second)
	if p.rate == 0 {
		p.credit, p.filled = 0, now
	}
	p.rate = rate
}

// Held is the number of packets that wait.
func (p *Pacer[P]) Held() int { return p.held }

// Admit tells whether a packet of a flow may leave at once. arrived and due are the packet's, by its Schedule.
func (p *Pacer[P]) Admit(f *Flow[P], arrived, due, now time.Duration) bool {
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
		if p.fill(now); p.credit <= 0 {
			return false
		}
	}
	if now >= p.until && len(p.waiting) == 0 {
		p.until, p.left = now+p.plan.ahead, 0
	}
	return p.leaves(p.planned(arrived, due), now)
}

// Hold makes a packet wait that was not admitted. It tells whether Next may have changed.
func (p *Pacer[P]) Hold(f *Flow[P], packet P, arrived, due time.Duration) (next bool) {
	f.push(entry[P]{packet: packet, due: p.planned(arrived, due)})
	p.held++
	if f.held > 1 {
		return false
	}
	f.place = len(p.waiting)
	p.waiting = append(p.waiting, f)
	p.up(f.place)
	return f.place == 0
}

// Spend accounts for a packet that has left. It tells whether that has completed a probe. What leaves with a probe, at its rate, is not held against what
// follows: a probe at six times the estimate would keep the next frame waiting for longer than it takes itself.
func (p *Pacer[P]) Spend(bytes int) (probed bool) {
	if p.probe.rate > 0 {
		return p.probe.spend(bytes)
	}
	p.left++
	p.credit -= float64(bytes)
	return false
}

// Next is when the next tick is to begin. It is not ok while nothing waits and no probe is under way.
func (p *Pacer[P]) Next() (at time.Duration, ok bool) {
	if p.probe.rate > 0 {
		return p.probe.next(len(p.waiting) > 0), true
	}
	if len(p.waiting) == 0 {
		return 0, false
	}
	at = p.waiting[0].head().due
	if p.rate > 0 && p.credit <= 0 {
		at = max(at, p.filled+time.Duration((p.tick()-p.credit)/p.rate)+1)
	}
	return at, true
}

// Tick begins a tick.
func (p *Pacer[P]) Tick(now time.Duration) {
	p.fill(now)
	p.until, p.left = now+p.plan.ahead, 0
	p.probe.begin(now)
}

// Pop takes the packet that leaves next in this tick. It is not ok when the tick is over.
func (p *Pacer[P]) Pop(now time.Duration) (packet P, ok bool) {
	if len(p.waiting) == 0 {
		return packet, false
	}
	f := p.waiting[0]
	switch {
	case p.probe.rate > 0:
		if p.probe.credit <= 0 {
			return packet, false
		}
	case p.rate > 0 && p.credit <= 0, !p.leaves(f.head().due, now):
		return packet, false
	}
	packet = f.pop()
	p.held--
	if f.held == 0 {
		p.remove(0)
	} else {
		p.down(0)
	}
	return packet, true
}

// Filter takes those packets out of a flow that keep does not accept. It tells whether Next may have changed.
func (p *Pacer[P]) Filter(f *Flow[P], keep func(P) bool) (next bool) {
	before := f.held
	if before == 0 {
		return false
	}
	f.filter(keep)
	p.held -= before - f.held
	switch {
	case f.held == 0:
		p.remove(f.place)
	case f.held < before:
		p.up(f.place)
		p.down(f.place)
	}
	return f.held < before
}

// planned is when a packet is due for this receiver.
func (p *Pacer[P]) planned(arrived, due time.Duration) time.Duration {
	if p.plan.byEstimate && p.rate > 0 {
		return arrived
	}
	return due
}

// leaves tells whether a packet belongs to the tick under way.
func (p *Pacer[P]) leaves(due, now time.Duration) bool {
	return due <= now || due < p.until && p.left < p.plan.most
}

// tick is what leaves in one tick at the rate, in bytes: max(1 packet, min(16 packets, 2 ms at the rate)).
func (p *Pacer[P]) tick() float64 {
	return max(1, min(float64(p.plan.most)*fullPacket, p.rate*float64(p.plan.ahead)))
}

// fill adds what the rate has allowed since the last time. Of what is not used one tick is kept, and while packets wait what a late wake-up needs.
func (p *Pacer[P]) fill(now time.Duration) {
	most := p.tick()
	if len(p.waiting) > 0 {
		most += p.rate * float64(slack)
	}
	p.credit = max(p.credit, -fullPacket-p.rate*float64(maxDebt))
	p.credit = min(p.credit+p.rate*float64(now-p.filled), most)
	p.filled = now
}

// remove takes a flow out of the heap.
func (p *Pacer[P]) remove(i int) {
	last := len(p.waiting) - 1
	p.swap(i, last)
	p.waiting[last] = nil
	p.waiting = p.waiting[:last]
	if i < last {
		p.up(i)
		p.down(i)
	}
}

func (p *Pacer[P]) swap(i, j int) {
	p.waiting[i], p.waiting[j] = p.waiting[j], p.waiting[i]
	p.waiting[i].place, p.waiting[j].place = i, j
}

func (p *Pacer[P]) before(i, j int) bool {
	return p.waiting[i].head().due < p.waiting[j].head().due
}

func (p *Pacer[P]) up(i int) {
	for i > 0 && p.before(i, (i-1)/2) {
		p.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (p *Pacer[P]) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(p.waiting); child++ {
			if p.before(child, least) {
				least = child
			}
		}
		if least == i {
			return
		}
		p.swap(i, least)
		i = least
	}
}
