// Package ratelimit has token buckets that limit how often remote peers and their addresses may do something. Time is
// an argument of the methods.
package ratelimit

import "time"

// Bucket is a token bucket. Bucket is not safe for concurrent use. A refused datagram costs one subtraction and one
// comparison, while rate.Limiter locks a mutex: a flood is refused hundreds of thousands of times per second.
type Bucket struct {
	// interval is the time in which one token is added, depth the time in which an empty bucket becomes full.
	interval, depth time.Duration
	// empty is the time at which the bucket was, or will be, empty.
	empty time.Time
}

// Rate is the rate of a bucket in tokens per second, and its size in tokens.
type Rate struct{ PerSecond, Burst int }

// Bucket returns a full bucket.
func (r Rate) Bucket() Bucket { return NewBucket(r.PerSecond, r.Burst) }

// Sources returns sources with full buckets.
func (r Rate) Sources() Sources { return NewSources(r.PerSecond, r.Burst) }

// NewBucket returns a full bucket of burst tokens, to which perSecond tokens are added per second.
func NewBucket(perSecond, burst int) Bucket {
	interval := time.Second / time.Duration(perSecond)
	return Bucket{interval: interval, depth: interval * time.Duration(burst)}
}

// Has reports whether there is a token.
func (b *Bucket) Has(now time.Time) bool { return now.Sub(b.empty) >= b.interval }

// Take removes a token, and reports whether there was one.
func (b *Bucket) Take(now time.Time) bool {
	held := now.Sub(b.empty)
	if held < b.interval {
		return false
	}
	b.empty = now.Add(b.interval - min(held, b.depth))
	return true
}

// TakeAll removes tokens, and reports whether there were enough. If there were fewer, TakeAll removes all of them.
func (b *Bucket) TakeAll(tokens int, now time.Time) bool {
	held := min(now.Sub(b.empty), b.depth)
	taken := max(0, min(tokens, int(held/b.interval)))
	if taken > 0 {
		b.empty = now.Add(b.interval*time.Duration(taken) - held)
	}
	return taken == tokens
}

// full reports whether the bucket is full. A full bucket has the same state as a new one.
func (b *Bucket) full(now time.Time) bool { return now.Sub(b.empty) >= b.depth }
