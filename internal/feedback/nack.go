package feedback

import (
	"math"
	"slices"
	"time"
)

// Arrival classifies a received packet.
type Arrival uint8

// The kinds of arrival.
const (
	// InOrder is a packet newer than all before, and not recorded as missing.
	InOrder Arrival = iota
	// Reordered is a missing packet that arrived before a request.
	Reordered
	// Recovered is a missing packet that arrived after a request.
	Recovered
	// Old is a packet that is not missing: it is a duplicate, or arrived after it was given up.
	Old
)

// NACKStats are the counters of a NACKGenerator.
type NACKStats struct {
	// Missing counts the packets recorded as missing; each of them ends as Reordered, Recovered, Lost or Spared, or is
	// forgotten. Spared packets did not arrive and were not needed.
	Missing, Reordered, Recovered, Lost, Spared uint64
	// Asked counts requests for packets, Repeats those that were not the first for their packet.
	Asked, Repeats uint64
	// Old counts packets that were not missing.
	Old uint64
}

// NACKGenerator decides which packets of one received stream to request, and when. It uses extended sequence numbers
// (see Unwrapper). Memory is proportional to the number of missing packets; a packet in order costs a few comparisons.
//
// The number of tries. Let 5 % of packets be lost in each direction. A try succeeds if both the request and the
// retransmission arrive: 0.95² = 0.9025. A packet stays lost after k tries with probability 0.05 × 0.0975^k, and a
// frame of 131 packets over two hops with independent repair with at most 2 × 131 × 0.05 × 0.0975^k:
//
//	k = 2: 12 %    k = 3: 1.2 %    k = 4: 0.12 %    k = 5: 0.012 %
//
// So four tries must return within the deadline for 99.5 % of such frames, and five leave a margin for losses in
// bursts. Of the 150 ms after a frame's first packet, pacing takes 13 (0.4 of a frame interval), detecting a missing
// tail takes 10, and a packet lost on both hops needs a round trip on each. With a request per round trip of 20 ms and
// a margin of 5, tries would be sent at 0, 25, 50, 75 and 100 ms: five in the best case, three or four for the tail of
// a frame lost on both hops. Therefore the first repeat waits for a round trip and the margin, so that no request is
// repeated while its answer may be in transit, and later repeats follow at a third of that, at least 10 ms apart: 0,
// 25, 35, 45, 55, 65, 75, 85 ms, eight tries in 85 ms. With a round trip of 50 ms they are sent at 0, 56, 75 and 94 ms:
// still four whose answers arrive within 150 ms. Only packets whose first try failed cost more, 0.0975 × 5 % = 0.5 % of
// all: one or two needless retransmissions for each are 1 % more traffic at 5 % loss, and 0.04 % at 1 %.
//
// From the eighth try on, the time to the next doubles. A host that stalls for 100 ms loses no packet by the stall, but
// may spend eight tries in it, of which the sender answers one. If the answer is lost and the deadline allows, later
// tries repair the packet: with a deadline of 2 s they are sent at 105, 145, 225, 385, 705 and 1,345 ms.
//
// The deadline counts from the first packet of the frame if Expect reports frames. A request is not sent if its answer
// would arrive later: on a path with a longer round trip there are no requests.
//
// The round-trip time passed to Due may be outdated when a queue builds up. Early repeats would then feed the queue.
// The generator therefore also measures the duration of recoveries, and of waits without recovery, and uses the
// shortest of the last eight if it is longer.
type NACKGenerator struct {
	cfg    NACKConfig
	budget *MissingBudget
	epoch  time.Time // origin of all times below
	stats  NACKStats

	started  bool
	highest  int64         // highest number that arrived
	known    int64         // highest number that arrived or is missing
	expected int64         // last number of the newest frame, from Expect
	newest   bool          // the last received packet was the newest
	last     time.Duration // arrival of highest
	spacing  time.Duration // smoothed time between packets in order
	begun    time.Duration // arrival of the newest frame's first packet
	length   time.Duration // duration of frames from the first packet to the last
	held     int64         // first number that waits for its frame's end, from Hold
	advances uint64        // packets in order so far

	missing []missing // ascending; those before fresh have been requested or have arrived
	fresh   int
	live    int           // missing packets that have not arrived
	repeat  time.Duration // next due time of missing[:fresh], or never
	dropped []int64       // given up for lack of room, not returned yet

	recoveries [8]time.Duration
	recovered  int
	// late is the lateness of packets relative to the earliest, 0 if it is negligible.
	late time.Duration
}

const (
	never = time.Duration(1<<63 - 1)
	// minRepeat is the minimum time between two requests for one packet: closer requests would be lost in the same
	// burst.
	minRepeat = 10 * time.Millisecond
	// minMargin is added to the round-trip time for the timers and the jitter of both ends.
	minMargin = 5 * time.Millisecond
	// tripMargin is minMargin with NACKConfig.OncePerTrip: both ends may be busy for some milliseconds.
	tripMargin = 10 * time.Millisecond
)

// NewNACKGenerator returns a generator for one stream.
func NewNACKGenerator(cfg NACKConfig) *NACKGenerator {
	return &NACKGenerator{cfg: cfg, repeat: never, held: math.MaxInt64}
}

// Stats returns the counters.
func (g *NACKGenerator) Stats() NACKStats { return g.stats }

// Missing returns the number of packets missing now.
func (g *NACKGenerator) Missing() int { return g.live }

// Forget forgets all packets, for a stream that restarts. The counters are kept.
func (g *NACKGenerator) Forget() {
	g.started, g.newest = false, false
	g.Release()
	g.clear()
	g.dropped = g.dropped[:0]
}

// Received records a packet, original or retransmitted.
func (g *NACKGenerator) Received(sequence int64, now time.Time) Arrival {
	at := g.since(now)
	if g.started && sequence > g.highest && sequence-g.known > int64(g.cfg.MaxMissing) {
		// Such a gap cannot be repaired. The Unwrapper reports a Reset in this case.
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
			// This packet is the first later one.
			g.notice(sequence-1, at, at+g.cfg.ReorderWait)
		}
		g.known = sequence
	} else {
		// The end of a frame had been recorded as missing, and arrives after all.
		arrival = g.fill(sequence, at)
	}
	g.highest = sequence
	g.advances++
	// The smoothing constant 1/8 forgets the pause between two frames within a few packets.
	g.spacing += (at - g.last - g.spacing) / 8
	g.last = at
	return arrival
}

// Due appends the numbers to request now to ask, ascending, and the numbers given up since the last call to lost. rtt
// is the round-trip time to the sender, 0 if it is unknown.
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
	rtt, deadline := g.repairTimes(rtt)
	if at >= g.repeat {
		ask, lost = g.repeats(at, rtt, deadline, ask, lost)
	}
	for ; g.fresh < len(g.missing); g.fresh++ {
		m := &g.missing[g.fresh]
		if m.arrived {
			continue
		}
		if at < g.requestTime(m) {
			break
		}
		// Whether the first answer arrives in time depends only on the given round trip: the duration of recoveries is
		// known only while there are some.
		if m.next = m.since + deadline; !m.spared && at < m.next && at+told <= m.next {
			m.tries, m.asked = 1, at
			m.next = min(at+g.cfg.repeatAfter(1, rtt), m.next)
			ask = append(ask, m.sequence)
		}
		g.repeat = min(g.repeat, m.next)
	}
	g.stats.Asked += uint64(len(ask) - before)
	return ask, lost
}

// Next returns the time of the next call of Due, or the zero time if nothing is missing.
func (g *NACKGenerator) Next() time.Time {
	at := g.repeat
	if g.fresh < len(g.missing) {
		at = min(at, g.requestTime(&g.missing[g.fresh]))
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

// since converts a time to a duration since epoch, which takes a third of the memory.
func (g *NACKGenerator) since(now time.Time) time.Duration {
	if g.epoch.IsZero() {
		g.epoch = now
	}
	return now.Sub(g.epoch)
}

// repairTimes returns the round-trip time to assume, and the deadline.
func (g *NACKGenerator) repairTimes(rtt time.Duration) (time.Duration, time.Duration) {
	if rtt <= 0 {
		rtt = g.cfg.UnknownRTT
	}
	if g.recovered >= len(g.recoveries) {
		rtt = max(rtt, slices.Min(g.recoveries[:])-g.late)
	}
	return g.cfg.Repair(rtt, g.late)
}

// Late sets the lateness of packets for later requests: see NACKConfig.Repair.
func (g *NACKGenerator) Late(late time.Duration) { g.late = g.cfg.queued(late) }

// repeatAfter returns the time between a try, counted from 1, and the next.
func (c *NACKConfig) repeatAfter(tries int, rtt time.Duration) time.Duration {
	if c.OncePerTrip {
		return rtt + max(tripMargin, rtt/4)
	}
	first := rtt + max(minMargin, rtt/8)
	if tries == 1 {
		return first
	}
	// 16 doublings of 10 ms are eleven minutes: the bound only prevents an overflow.
	doublings := min(max(tries-c.QuickTries+1, 0), 16)
	return max(first/3, minRepeat) << doublings
}

// repeats requests missing packets again, gives up packets after the deadline, and removes arrived entries.
func (g *NACKGenerator) repeats(at, rtt, deadline time.Duration, ask, lost []int64) (asked, gone []int64) {
	g.repeat = never
	kept := 0
	for i := range g.fresh {
		m := g.missing[i]
		if m.arrived {
			continue
		}
		if at >= m.since+deadline {
			if g.giveUp(m) {
				lost = append(lost, m.sequence)
				g.recordRecovery(m, at)
			}
			continue
		}
		if at >= m.next {
			// A retransmission that cannot arrive in time is not requested.
			if m.next = m.since + deadline; !m.spared && at+rtt <= m.next {
				m.tries++
				m.next = min(at+g.cfg.repeatAfter(m.tries, rtt), m.next)
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
