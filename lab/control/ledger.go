package control

import (
	"cmp"
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/lab"
)

// frameKey identifies a frame of a tile.
type frameKey struct{ tile, number int64 }

// frameRecord is the result of a frame that began to leave.
type frameRecord struct {
	captured time.Duration
	bytes    int
	complete time.Duration // 0 if it was not in time
	// unsent counts the fragments with payload that were not sent because the frame was ended early; unsentBytes is
	// the payload of these fragments.
	unsent, unsentBytes int
}

// ledger records the frames and packets of one receiver.
type ledger struct {
	frames       map[frameKey]*frameRecord
	order        []frameKey // in the order in which they began to leave
	droppedWhole int
	goodput      int64 // payload bytes of frames that were completed in time
	sentBytes    [feedback.Probe + 1]int64
	queue        lab.Distribution
	samples      []sample

	last    totals
	longest time.Duration // delay in the queue since the last sample

	// fallen has the waiting times of all packets from fall on, if fall is set.
	fall       time.Duration
	fallen     []delaySample
	codepoints []codepointChange
	// marked is the arrival of the first packet with CE, 0 if there was none.
	marked time.Duration
}

// codepointChange is the time from which packets left with a codepoint.
type codepointChange struct {
	at        time.Duration
	codepoint ecn.Codepoint
}

// totals are cumulative counters at one time.
type totals struct {
	sent, goodput      int64
	offered, discarded uint64
}

// sample covers one sampleInterval.
type sample struct {
	at                 time.Duration // its end
	capacity           float64       // bit/s, mean
	estimate           float64       // bit/s, at its end
	allocated          float64       // payload bit/s of the allocation, at the end of the interval
	sent, goodput      float64       // bit/s: on the wire, and payload of completed frames
	queue              time.Duration // the largest delay
	offered, discarded uint64        // packets at the bottleneck's queue
	loss               float64       // share of packets lost: over the last seconds, or end to end since the beginning
}

func newLedger() *ledger { return &ledger{frames: make(map[frameKey]*frameRecord)} }

// begin records that a frame begins to leave.
func (l *ledger) begin(f *outgoing) {
	key := frameKey{f.tile, f.number}
	l.frames[key] = &frameRecord{captured: f.captured, bytes: f.bytes}
	l.order = append(l.order, key)
}

// end records that a frame is not sent from fragment index on.
func (l *ledger) end(f *outgoing, index int) {
	record := l.frames[frameKey{f.tile, f.number}]
	for ; index < f.source; index++ {
		record.unsent++
		record.unsentBytes += f.size(index)
	}
}

// complete records that a frame can be decoded.
func (l *ledger) complete(tile, number int64, now time.Duration) {
	record := l.frames[frameKey{tile, number}]
	record.complete = now
	l.goodput += int64(record.bytes)
}

// fresh returns, for each sample, the completed payload bits of frames captured at from or later. Frames that were
// queued before from do not count.
func (l *ledger) fresh(from time.Duration) []float64 {
	bits := make([]float64, len(l.samples))
	for _, record := range l.frames {
		if record.complete == 0 || record.captured < from {
			continue
		}
		i, _ := slices.BinarySearchFunc(l.samples, record.complete, func(s sample,
			at time.Duration) int {
			return cmp.Compare(s.at, at)
		})
		if i < len(bits) {
			bits[i] += float64(8 * record.bytes)
		}
	}
	return bits
}

func (l *ledger) sent(kind feedback.PacketKind, size int) { l.sentBytes[kind] += int64(size) }

// waited adds the waiting time of a packet that leaves the bottleneck's queue at a time.
func (l *ledger) waited(delay, now time.Duration) {
	l.queue.Add(delay)
	l.longest = max(l.longest, delay)
	if l.fall > 0 && now >= l.fall {
		l.fallen = append(l.fallen, delaySample{now, delay})
	}
}

// left records the codepoint with which a packet leaves.
func (l *ledger) left(codepoint ecn.Codepoint, now time.Duration) {
	if last := len(l.codepoints) - 1; last < 0 || l.codepoints[last].codepoint != codepoint {
		l.codepoints = append(l.codepoints, codepointChange{now, codepoint})
	}
}

// arrived records the codepoint with which a packet has arrived.
func (l *ledger) arrived(codepoint ecn.Codepoint, now time.Duration) {
	if codepoint == ecn.CE && l.marked == 0 {
		l.marked = now
	}
}

// codepointFigures lists the codepoints, or returns nil if no packet was ECN-capable.
func (l *ledger) codepointFigures() (list []CodepointFigures) {
	capable := false
	for _, c := range l.codepoints {
		capable = capable || c.codepoint != ecn.NotECT
		list = append(list, CodepointFigures{c.at.Seconds(), c.codepoint.String()})
	}
	if !capable {
		return nil
	}
	return list
}

// sample ends an interval.
func (l *ledger) sample(s sample, count *watchedFlow, length time.Duration) {
	now := totals{goodput: l.goodput, offered: count.offered, discarded: count.discarded}
	for _, bytes := range l.sentBytes {
		now.sent += bytes
	}
	s.sent = float64(now.sent-l.last.sent) * 8 / length.Seconds()
	s.goodput = float64(now.goodput-l.last.goodput) * 8 / length.Seconds()
	s.offered = now.offered - l.last.offered
	s.discarded = now.discarded - l.last.discarded
	s.queue = l.longest
	l.samples = append(l.samples, s)
	l.last, l.longest = now, 0
}
