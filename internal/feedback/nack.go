package feedback

import (
	"math"
	"slices"
	"time"
)

// Arrival says what a packet was to the NACKGenerator.
type Arrival uint8

// The kinds of arrival.
const (
	// InOrder is a packet newer than all before it, and not yet noticed as missing.
	InOrder Arrival = iota
	// Reordered is a missing packet that came before it was asked for.
	Reordered
	// Recovered is a missing packet that was asked for.
	Recovered
	// Old is a packet that is not missed: it came before, or came after it was given up.
	Old
)

// NACKStats counts what a NACKGenerator saw and did.
type NACKStats struct {
	// Missing is the number of packets noticed as missing; every one ends as Reordered, Recovered, Lost or Spared, or is forgotten. Those Spared did not come,
	// and were not needed.
	Missing, Reordered, Recovered, Lost, Spared uint64
	// Asked is the number of requests for packets, Repeats how many of them were not the first for their packet.
	Asked, Repeats uint64
	// Old is the number of packets that were not missed.
	Old uint64
}

// NACKGenerator decides which packets of one received stream to ask for, and when. It works on extended sequence numbers (see Unwrapper). Memory
// follows the number of missing packets; a packet in order costs a few comparisons.
//
// How often to ask. Let 5 % of packets get lost in each direction. A try succeeds if the request and the retransmission pass: 0.95² = 0.9025. A packet
// stays lost after k tries with probability 0.05 × 0.0975^k, and a frame of 131 packets over two hops that repair on their own with at most
// 2 × 131 × 0.05 × 0.0975^k:
//
//	k = 2: 12 %    k = 3: 1.2 %    k = 4: 0.12 %    k = 5: 0.012 %
//
// So four tries must come back within the deadline for 99.5 % of such frames, and five leave room for losses in bursts. Of the 150 ms after a frame's
// first packet, pacing takes 13 (0.4 of a frame interval), noticing a missing tail takes 10, and a packet lost on both hops needs a round trip on
// each. Asking once per round trip of 20 ms and a margin of 5, tries would leave at 0, 25, 50, 75 and 100 ms: five in the best case, three or four for
// the tail of a frame lost on both hops. Therefore the first repeat waits for a round trip and the margin, so that no request is repeated while its
// answer may be under way, and later repeats follow at a third of that, 10 ms apart at least: 0, 25, 35, 45, 55, 65, 75, 85 ms, eight tries in 85 ms.
// With a round trip of 50 ms they leave at 0, 56, 75 and 94 ms: still four whose answers come within 150 ms. The price is paid only by packets
// whose first try failed, 0.0975 × 5 % = 0.5 % of all: one or two needless retransmissions for each are 1 % more traffic at 5 % loss, and 0.04 % at 1 %.
//
// The deadline counts from the first packet of the frame, where Expect tells of frames. No request is made whose answer would come later: on a path
// whose round trip takes longer than that there are none.
//
// The round-trip time given to Due may be old when a queue builds. Repeats that come too early would then feed the queue, so the generator also
// measures how long recoveries took, or were waited for in vain, and uses the shortest of the last eight if it is longer.
type NACKGenerator struct {
	cfg    NACKConfig
	budget *MissingBudget
	epoch  time.Time // all times below count from here
	stats  NACKStats

	started  bool
	highest  int64         // the highest number that arrived
	known    int64         // the highest number that arrived or is missing
	expected int64         // the last number of the newest frame, as far as Expect told
	newest   bool          // the last packet received was the newest
	last     time.Duration // when highest arrived
	spacing  time.Duration // smoothed time between packets in order
	begun    time.Duration // when the first packet of the newest frame arrived
	length   time.Duration // how long frames take from the first packet to the last
	held     int64         // the first number that waits for its frame's end, as far as Hold told
	advances uint64        // packets in order so far

	missing []missing // ascending; those before fresh have been asked for, or have arrived
	fresh   int
	live    int           // missing packets that have not arrived
	repeat  time.Duration // when the first of missing[:fresh] wants attention, never if none does
	dropped []int64       // given up for lack of room, not yet told

	recoveries [8]time.Duration
	recovered  int
	// late is how much later than at best packets come, 0 where that is not worth regarding.
	late time.Duration
}

const (
	never = time.Duration(1<<63 - 1)
	// minRepeat is the least time between two requests for one packet: below it they would share the fate of one burst of losses.
	minRepeat = 10 * time.Millisecond
	// minMargin is added to the round-trip time for the timers and the jitter of both ends.
	minMargin = 5 * time.Millisecond
)

// NewNACKGenerator makes a generator for one stream.
func NewNACKGenerator(cfg NACKConfig) *NACKGenerator {
	return &NACKGenerator{cfg: cfg, repeat: never, held: math.MaxInt64}
}

// Stats returns the counts so far.
func (g *NACKGenerator) Stats() NACKStats { return g.stats }

// Missing is the number of packets missing now.
func (g *NACKGenerator) Missing() int { return g.live }

// Forget forgets all packets, for a stream that begins anew. Counts stay.
func (g *NACKGenerator) Forget() {
	g.started, g.newest = false, false
	g.Release()
	g.clear()
	g.dropped = g.dropped[:0]
}

// Received takes note of a packet, whether sent first or again.
func (g *NACKGenerator) Received(sequence int64, now time.Time) Arrival {
	at := g.since(now)
	if g.started && sequence > g.highest && sequence-g.known > int64(g.cfg.MaxMissing) {
		// So much cannot be repaired. The Unwrapper calls such a jump a reset.
		g.Forget()
	}
	if !g.started {
		g.started, g.newest = true, true
		g.highest, g.known, g.expected = sequence, sequence, sequence
		g.last, g.spacing = at, 0
		g.advances++
		return InOrder
	}
	if g.newest = sequence > g.highest; !g.newest {
		return g.fill(sequence, at)
	}
	arrival := InOrder
	if sequence > g.known {
		if skipped := int(sequence - g.known - 1); skipped > 0 && g.budget.take(skipped, now) {
			// This packet is the first of those that came later.
			g.notice(sequence-1, at, at+g.cfg.ReorderWait)
		}
		g.known = sequence
	} else {
		// The end of a frame had been noticed as missing, and comes after all.
		arrival = g.fill(sequence, at)
	}
	g.highest = sequence
	g.advances++
	// The smoothing constant 1/8 forgets the pause between two frames within a few packets.
	g.spacing += (at - g.last - g.spacing) / 8
	g.last = at
	return arrival
}

// Due appends the numbers to ask for now to ask, ascending, and those given up since the last call to lost. rtt is the round-trip time to the sender, 0 if
// it is not known.
func (g *NACKGenerator) Due(now time.Time, rtt time.Duration, ask, lost []int64) (asked, gone []int64) {
	at := g.since(now)
	lost = append(lost, g.dropped...)
	g.dropped = g.dropped[:0]
	if g.expected > g.known && g.started && at >= g.tailDue() {
		if g.budget.take(int(g.expected-g.known), now) {
			g.notice(g.expected, at, at)
		}
		g.known = g.expected
	}
	before := len(ask)
	told := rtt + g.late
	rtt, deadline := g.terms(rtt)
	if at >= g.repeat {
		ask, lost = g.repeats(at, rtt, deadline, ask, lost)
	}
	for ; g.fresh < len(g.missing); g.fresh++ {
		m := &g.missing[g.fresh]
		if m.arrived {
			continue
		}
		if at < g.askable(m) {
			break
		}
		// Whether the first answer comes in time is reckoned by what was told alone: how long recoveries took shows only while there are some.
		if m.next = m.since + deadline; !m.spared && at < m.next && at+told <= m.next {
			m.tries, m.asked = 1, at
			m.next = min(at+repeatAfter(1, rtt), m.next)
			ask = append(ask, m.sequence)
		}
		g.repeat = min(g.repeat, m.next)
	}
	g.stats.Asked += uint64(len(ask) - before)
	return ask, lost
}

// Next is when Due wants to be called next, the zero time if nothing is missing.
func (g *NACKGenerator) Next() time.Time {
	at := g.repeat
	if g.fresh < len(g.missing) {
		at = min(at, g.askable(&g.missing[g.fresh]))
	}
	if g.started && g.expected > g.known {
		at = min(at, g.tailDue())
	}
	if len(g.dropped) > 0 {
		at = min(at, g.last)
	}
	if at == never {
		return time.Time{}
	}
	return g.epoch.Add(at)
}

// since converts a time to the generator's own, which takes a third of the memory.
func (g *NACKGenerator) since(now time.Time) time.Duration {
	if g.epoch.IsZero() {
		g.epoch = now
	}
	return now.Sub(g.epoch)
}

// terms returns the round-trip time to reckon with, and the deadline.
func (g *NACKGenerator) terms(rtt time.Duration) (time.Duration, time.Duration) {
	if rtt <= 0 {
		rtt = g.cfg.UnknownRTT
	}
	if g.recovered >= len(g.recoveries) {
		rtt = max(rtt, slices.Min(g.recoveries[:])-g.late)
	}
	return g.cfg.Repair(rtt, g.late)
}

// Late tells how much later than at best packets come, for what is due from now on: see NACKConfig.Repair.
func (g *NACKGenerator) Late(late time.Duration) { g.late = g.cfg.queued(late) }

// repeatAfter is the time between a try and the next.
func repeatAfter(tries int, rtt time.Duration) time.Duration {
	first := rtt + max(minMargin, rtt/8)
	if tries == 1 {
		return first
	}
	return max(first/3, minRepeat)
}

// repeats asks again for what was asked for and did not come, gives up what is too old, and sweeps out what arrived.
func (g *NACKGenerator) repeats(at, rtt, deadline time.Duration, ask, lost []int64) (asked, gone []int64) {
	g.repeat = never
	kept := 0
	for i := range g.fresh {
		m := g.missing[i]
		if m.arrived {
			continue
		}
		if at >= m.since+deadline {
			if g.gone(m) {
				lost = append(lost, m.sequence)
				g.took(m, at)
			}
			continue
		}
		if at >= m.next {
			// A retransmission that cannot be back in time is not asked for.
			if m.next = m.since + deadline; !m.spared && m.tries < g.cfg.MaxTries && at+rtt <= m.next {
				m.tries++
				m.next = min(at+repeatAfter(m.tries, rtt), m.next)
				g.stats.Repeats++
				ask = append(ask, m.sequence)
			}
		}
		g.repeat = min(g.repeat, m.next)
		g.missing[kept] = m
		kept++
	}
	g.missing = append(g.missing[:kept], g.missing[g.fresh:]...)
	g.fresh = kept
	if g.live == 0 {
		g.clear()
	}
	return ask, lost
}
