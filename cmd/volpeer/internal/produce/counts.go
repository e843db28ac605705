package produce

import "github.com/volsfu/volsfu/cmd/volpeer/internal/distribution"

// Counts say what was produced.
type Counts struct {
	// Captured frames fell due; Dropped ones of them were not encoded, since the encoder was behind or the capture failed; Published ones were.
	Captured, Published, Dropped int64
	// Sent are tiles at one quality that the sink took, Unsent those that it could not send.
	Sent, Unsent int64
	// Points are what was encoded, all tiles and qualities; Bytes what was sent of it.
	Points, Bytes int64
	// Encode is the time from taking a capture to handing over its last tile.
	Encode distribution.Distribution
}

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
	c.Dropped += other.Dropped
	c.Sent += other.Sent
	c.Unsent += other.Unsent
	c.Points += other.Points
	c.Bytes += other.Bytes
	c.Encode.Merge(&other.Encode)
}

func (p *Producer) count(change func(*Counts)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.counts)
}
