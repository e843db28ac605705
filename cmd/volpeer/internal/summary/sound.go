package summary

import "time"

// soundCounter counts the packets of one audio stream. Missing sequence numbers between the lowest and the highest
// count as lost.
type soundCounter struct {
	// whole is the sum of finished sequences, stretch the current sequence.
	whole, stretch  soundCounts
	lowest, highest int64
	// last is the latest arrival, and gap the longest time between two arrivals.
	last time.Time
	gap  time.Duration
}

type soundCounts struct{ received, lost int64 }

// maxSoundGap is the largest jump of sequence numbers that counts as loss: 10 s of 20 ms packets. A larger jump starts
// a new sequence.
const maxSoundGap = 500

func (c *soundCounter) count(sequence uint16, arrived time.Time) {
	if !c.last.IsZero() {
		c.gap = max(c.gap, arrived.Sub(c.last))
	}
	if arrived.After(c.last) {
		c.last = arrived
	}
	extended := c.highest + int64(int16(sequence-uint16(c.highest)))
	if c.stretch.received == 0 || extended > c.highest+maxSoundGap || extended < c.highest-maxSoundGap {
		c.whole = c.counts()
		c.stretch = soundCounts{}
		c.lowest, c.highest = int64(sequence), int64(sequence)
		extended = c.lowest
	}
	c.lowest, c.highest = min(c.lowest, extended), max(c.highest, extended)
	c.stretch.received++
	c.stretch.lost = max(0, c.highest-c.lowest+1-c.stretch.received)
}

func (c *soundCounter) counts() soundCounts {
	return soundCounts{c.whole.received + c.stretch.received, c.whole.lost + c.stretch.lost}
}
