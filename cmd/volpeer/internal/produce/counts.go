package produce

import "github.com/volsfu/volsfu/internal/peer/distribution"

// Counts say what was produced.
type Counts struct {
	// Captured frames fell due; Dropped ones of them were not encoded though wanted; Idle ones, since no tile of them
	// was wanted at any quality; Published ones were.
	Captured, Published, Idle int64
	Dropped                   Drops
	// Sent are tiles at one quality that the sink took, Unsent those that it could not send.
	Sent, Unsent int64
	// Paused are tiles at one quality that were not encoded since nobody took them, GivenUp those that the network
	// could not carry. Saved is what they would have taken in bytes, by the last frame that was encoded of each.
	Paused, GivenUp, Saved int64
	// Late are tiles at one quality that were not encoded since they would not have been done in time.
	Late int64
	// Points are what was encoded, all tiles and qualities; Bytes what was sent of it.
	Points, Bytes int64
	// Encode is the time from taking a capture to handing over its last tile.
	Encode distribution.Distribution
}

// Drops are captures that were not encoded, by reason: the source failed to give them; it was behind and left them out;
// a newer one came before the encoder was free; they would not have been encoded in time.
type Drops struct{ Failed, Missed, Replaced, Late int64 }

// All is their sum.
func (d Drops) All() int64 { return d.Failed + d.Missed + d.Replaced + d.Late }

// Counts gives what was produced since the last call.
func (p *Producer) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	counts := p.counts
	p.counts = Counts{}
	return counts
}

// Add adds what was produced in another stretch of time.
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
