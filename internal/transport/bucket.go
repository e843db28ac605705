package transport

import "time"

// bucket is a token bucket that is stepped with the time. Its user guards it. The cost of a refused datagram is one
// subtraction and one comparison, where rate.Limiter locks a mutex: a flood is refused hundreds of thousands of times
// per second.
type bucket struct {
	// interval is the time that one token takes, depth the time that a full bucket takes.
	interval, depth time.Duration
	// empty is when the bucket was, or will be, empty.
	empty time.Time
}

// newBucket makes a full bucket of burst tokens, which refills at so many per second.
func newBucket(perSecond, burst int) bucket {
	interval := time.Second / time.Duration(perSecond)
	return bucket{interval: interval, depth: interval * time.Duration(burst)}
}

// has reports whether there is a token.
func (b *bucket) has(now time.Time) bool { return now.Sub(b.empty) >= b.interval }

// take takes a token, and reports whether there was one.
func (b *bucket) take(now time.Time) bool {
	held := now.Sub(b.empty)
	if held < b.interval {
		return false
	}
	b.empty = now.Add(b.interval - min(held, b.depth))
	return true
}

// takeAll takes tokens, and reports whether there were as many. If there were fewer, takeAll takes those.
func (b *bucket) takeAll(tokens int, now time.Time) bool {
	held := min(now.Sub(b.empty), b.depth)
	taken := max(0, min(tokens, int(held/b.interval)))
	if taken > 0 {
		b.empty = now.Add(b.interval*time.Duration(taken) - held)
	}
	return taken == tokens
}

// full reports whether the bucket is full, as if nothing had been taken.
func (b *bucket) full(now time.Time) bool { return now.Sub(b.empty) >= b.depth }
