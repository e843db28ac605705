package pacing

import "time"

// probe is a train of packets that leaves at a rate of its own. The zero probe is none.
type probe struct {
	// rate is in bytes per nanosecond, 0 while no probe is under way. credit is how many bytes may leave, as of filled; below 0 it is owed.
	rate, credit float64
	filled       time.Duration
	// bytes and packets have yet to leave, until the end at the latest.
	bytes, packets int
	end            time.Duration
	// dry says that there was no padding in the last tick.
	dry bool
}

// Probe makes everything leave at so many bits per second, held packets however early they are due, until so many bytes and so many packets have left, or the
// end has come. Padding is the caller's: in a tick it may send some for as long as Pads says so. A probe under way ends.
func (p *Pacer[P, R]) Probe(bitsPerSecond int64, bytes, packets int, end, now time.Duration) {
	rate := max(float64(bitsPerSecond), 1) / 8 / float64(time.Second)
	p.probe = probe{rate: rate, filled: now, bytes: bytes, packets: packets, end: end}
	p.probe.credit = p.probe.tick()
}

// Probing tells whether a probe is under way.
func (p *Pacer[P, R]) Probing() bool { return p.probe.rate > 0 }

// EndProbe ends the probe under way, complete or not.
func (p *Pacer[P, R]) EndProbe() { p.probe = probe{} }

// Pads tells whether padding may leave in the tick under way, because nothing else waits.
func (p *Pacer[P, R]) Pads() bool { return p.probe.rate > 0 && p.probe.credit > 0 && p.held == 0 }

// Dry says that there is no padding now. The next tick is 2 ms later, unless packets come before.
func (p *Pacer[P, R]) Dry() { p.probe.dry = true }

// tick is what leaves in one tick, in bytes: max(1 packet, min(16 packets, 2 ms at the rate)). A packet leaves as long as anything of it is left.
func (b *probe) tick() float64 {
	return max(1, min(tickPackets*fullPacket-1, b.rate*float64(tickTime)))
}

// fill adds what the rate has allowed since the last time, up to a tick and what a late wake-up needs.
func (b *probe) fill(now time.Duration) {
	b.credit = min(b.credit+b.rate*float64(now-b.filled), b.tick()+b.rate*float64(slack))
	b.filled = now
}

// begin begins a tick.
func (b *probe) begin(now time.Duration) {
	if b.rate == 0 {
		return
	}
	if now >= b.end {
		*b = probe{}
		return
	}
	b.fill(now)
	b.dry = false
}

// spend accounts for a packet that has left. It tells whether that has completed the probe.
func (b *probe) spend(bytes int) bool {
	b.credit -= float64(bytes)
	b.bytes -= bytes
	b.packets--
	if b.bytes > 0 || b.packets > 0 {
		return false
	}
	*b = probe{}
	return true
}

// next is when the next tick is due; waits tells whether packets wait.
func (b *probe) next(waits bool) time.Duration {
	switch {
	case b.dry && !waits:
		return min(b.filled+tickTime, b.end)
	case b.credit > 0:
		return b.filled
	}
	return min(b.filled+time.Duration((b.tick()-b.credit)/b.rate)+1, b.end)
}
