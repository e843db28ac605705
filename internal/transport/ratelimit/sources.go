package ratelimit

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// maxSources is how many addresses are told apart at once, at some 100 bytes each.
	maxSources = 4096
	// sourceSweep is how often addresses are forgotten whose bucket is full.
	sourceSweep = time.Second
)

// Sources bounds how often each address may do something. If there are more addresses than are told apart, the others
// share one bucket. It is pure and not safe for concurrent use.
type Sources struct {
	// perSecond and burst are those of each bucket.
	perSecond, burst int

	buckets map[netip.Prefix]*Bucket
	shared  Bucket
	swept   time.Time
}

// NewSources returns sources with buckets of burst tokens, which refill at so many per second.
func NewSources(perSecond, burst int) Sources {
	return Sources{
		perSecond: perSecond, burst: burst,
		buckets: make(map[netip.Prefix]*Bucket), shared: NewBucket(perSecond, burst),
	}
}

// Take takes one token of an address, and reports whether there was one.
func (s *Sources) Take(from netip.Addr, now time.Time) bool { return s.TakeAll(from, 1, now) }

// TakeAll takes tokens of an address, and reports whether there were as many. If there were fewer, TakeAll takes those.
// This host's own addresses are not bounded.
func (s *Sources) TakeAll(from netip.Addr, tokens int, now time.Time) bool {
	source, limited := Source(from)
	if !limited {
		return true
	}
	b := s.buckets[source]
	if b == nil {
		b = s.add(source, now)
	}
	return b.TakeAll(tokens, now)
}

// add makes a bucket for an address if there is room for one.
func (s *Sources) add(source netip.Prefix, now time.Time) *Bucket {
	if now.Sub(s.swept) >= sourceSweep {
		s.swept = now
		for known, b := range s.buckets {
			if b.full(now) {
				delete(s.buckets, known)
			}
		}
	}
	if len(s.buckets) >= maxSources {
		return &s.shared
	}
	b := NewBucket(s.perSecond, s.burst)
	s.buckets[source] = &b
	return &b
}

// SharedSources are Sources that are safe for concurrent use.
type SharedSources struct {
	mu      sync.Mutex
	sources Sources
}

// NewSharedSources returns sources with buckets of burst tokens, which refill at so many per second.
func NewSharedSources(perSecond, burst int) *SharedSources {
	return &SharedSources{sources: NewSources(perSecond, burst)}
}

// TakeAll takes tokens of an address, as Sources.TakeAll does.
func (s *SharedSources) TakeAll(from netip.Addr, tokens int, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sources.TakeAll(from, tokens, now)
}
