// Package ratelimit bounds how often remote peers and their addresses may do something, by token buckets that are
// stepped with the time.
package ratelimit

import "time"

// Bucket is a token bucket. Its user guards it. The cost of a refused datagram is one subtraction and one comparison,
// where rate.Limiter locks a mutex: a flood is refused hundreds of thousands of times per second.
type Bucket struct {
	// interval is the time that one token takes, depth the time that a full bucket takes.
	interval, depth time.Duration
	// empty is when the bucket was, or will be, empty.
	empty time.Time
}

// Rate is the size of buckets: so many tokens per second, and so many at once.
type Rate struct{ PerSecond, Burst int }

// Bucket makes a full bucket.
func (r Rate) Bucket() Bucket { return NewBucket(r.PerSecond, r.Burst) }

// Sources makes sources with full buckets.
func (r Rate) Sources() Sources { return NewSources(r.PerSecond, r.Burst) }

// NewBucket makes a full bucket of burst tokens, which refills at so many per second.
func NewBucket(perSecond, burst int) Bucket {
	interval := time.Second / time.Duration(perSecond)
	return Bucket{interval: interval, depth: interval * time.Duration(burst)}
}

// Has reports whether there is a token.
func (b *Bucket) Has(now time.Time) bool { return now.Sub(b.empty) >= b.interval }

// Take takes a token, and reports whether there was one.
func (b *Bucket) Take(now time.Time) bool {
	held := now.Sub(b.empty)
	if held < b.interval {
		return false
	}
	b.empty = now.Add(b.interval - min(held, b.depth))
	return true
}

// TakeAll takes tokens, and reports whether there were as many. If there were fewer, TakeAll takes those.
func (b *Bucket) TakeAll(tokens int, now time.Time) bool {
	held := min(now.Sub(b.empty), b.depth)
	taken := max(0, min(tokens, int(held/b.interval)))
	if taken > 0 {
		b.empty = now.Add(b.interval*time.Duration(taken) - held)
	}
	return taken == tokens
}

// full reports whether the bucket is full, as if nothing had been taken.
func (b *Bucket) full(now time.Time) bool { return now.Sub(b.empty) >= b.depth }
