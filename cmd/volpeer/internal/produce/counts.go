package produce

import "github.com/volsfu/volsfu/internal/peer/distribution"

// Counts are the counters of a producer.
type Counts struct {
	// Captured is the number of captures that fell due. Each capture is also in one of Published, Idle (no tile was
	// wanted at any quality) and Dropped (wanted, but not encoded).
	Captured, Published, Idle int64
	Dropped                   Drops
	// Sent counts tiles at one quality that the sink accepted, Unsent tiles that the sink could not send.
	Sent, Unsent int64
	// Paused counts tiles at one quality that were not encoded because no receiver takes the tile, GivenUp tiles that
	// the network cannot carry. Saved estimates the size of both in bytes, by the newest encoded frame of each.
	Paused, GivenUp, Saved int64
	// Late counts tiles at one quality that were not encoded because the encoder would have missed the time limit.
	Late int64
	// Points is the number of encoded points over all tiles and qualities, Bytes the number of bytes sent.
	Points, Bytes int64
	// Encode is the time from taking a capture to handing over the last tile.
	Encode distribution.Distribution
}

// Drops counts captures that were not encoded, by reason: reading from the source failed; skipped by the source, which
// was behind; a newer capture arrived before the encoder was free; encoding would have missed the time limit.
type Drops struct{ Failed, Missed, Replaced, Late int64 }

// All returns the sum.
func (d Drops) All() int64 { return d.Failed + d.Missed + d.Replaced + d.Late }

// Counts returns the counters since the last call.
func (p *Producer) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	counts := p.counts
	p.counts = Counts{}
	return counts
}

// Add adds the counters of another interval.
func (c *Counts) Add(other Counts) {
	c.Captured += other.Captured
	c.Published += other.Published
	c.Dropped.Failed += other.Dropped.Failed
	c.Dropped.Missed += other.Dropped.Missed
	c.Dropped.Replaced += other.Dropped.Replaced
	c.Dropped.Late += other.Dropped.Late
	c.Idle += other.Idle
	c.Sent += other.Sent
	c.Unsent += other.Unsent
	c.Paused += other.Paused
	c.GivenUp += other.GivenUp
	c.Saved += other.Saved
	c.Late += other.Late
	c.Points += other.Points
	c.Bytes += other.Bytes
	c.Encode.Merge(&other.Encode)
}

func (p *Producer) count(change func(*Counts)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.counts)
}
