package pacing

import "time"

// probe is a train of packets with its own rate. The zero probe is inactive.
type probe struct {
	// rate is in bytes per nanosecond, 0 while inactive. credit is the number of bytes that may leave, as of filled; a
	// negative value is a debt.
	rate, credit float64
	filled       time.Duration
	// bytes and packets remain to be sent, until end at the latest.
	bytes, packets int
	end            time.Duration
	// dry is set if the last tick had no padding, smooth if the path is smooth.
	dry, smooth bool
}

// Probe sends all packets at a rate, queued packets however early and regardless of the window, until the given numbers
// of bytes and of packets have left or end is reached. The caller adds padding in a tick as long as Pads returns true.
// Probe replaces an active probe. On a smooth path the ticks of the probe are 0.5 ms long instead of 2 ms.
func (p *Pacer[P, R]) Probe(bitsPerSecond int64, bytes, packets int, end, now time.Duration) {
	rate := max(float64(bitsPerSecond), 1) / 8 / float64(time.Second)
	p.probe = probe{rate: rate, filled: now, bytes: bytes, packets: packets, end: end, smooth: p.smoothProbes}
	p.probe.credit = p.probe.tick()
}

// Probing reports whether a probe is active.
func (p *Pacer[P, R]) Probing() bool { return p.probe.rate > 0 }

// EndProbe ends an active probe, complete or not.
func (p *Pacer[P, R]) EndProbe() { p.probe = probe{} }

// Pads reports whether padding may leave in the current tick: no packet is queued.
func (p *Pacer[P, R]) Pads() bool { return p.probe.rate > 0 && p.probe.credit > 0 && p.held == 0 }

// Dry reports to the pacer that no padding is available. The next tick is 2 ms later, unless packets arrive earlier.
func (p *Pacer[P, R]) Dry() { p.probe.dry = true }

// tick returns the bytes of one tick: max(1 packet, min(16 packets, 2 ms at the rate)), and 0.5 ms instead of 2 ms on a
// smooth path. A packet leaves as long as any of its bytes is allowed.
func (b *probe) tick() float64 {
	span := tickTime
	if b.smooth {
		span = smoothTick
	}
	return max(1, min(tickPackets*fullPacket-1, b.rate*float64(span)))
}

// fill adds the bytes that the rate allows since the last fill, at most a tick and the allowance for a late wake-up.
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

// spend accounts for a packet that has left and reports whether the packet completed the probe.
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

// next returns the time of the next tick; waits is set if packets are queued.
func (b *probe) next(waits bool) time.Duration {
	switch {
	case b.dry && !waits:
		return min(b.filled+tickTime, b.end)
	case b.credit > 0:
		return b.filled
	}
	return min(b.filled+time.Duration((b.tick()-b.credit)/b.rate)+1, b.end)
}
