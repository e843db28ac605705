package ratelimit

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// maxSources is the number of addresses with separate buckets, at some 100 bytes each.
	maxSources = 4096
	// sourceSweep is the interval at which addresses with full buckets are removed.
	sourceSweep = time.Second
)

// Sources limits how often each address may do something. Addresses beyond maxSources share one bucket. Sources is pure
// and not safe for concurrent use.
type Sources struct {
	// perSecond and burst are the parameters of each bucket.
	perSecond, burst int

	buckets map[netip.Prefix]*Bucket
	shared  Bucket
	swept   time.Time
}

// NewSources returns sources with buckets of burst tokens, to which perSecond tokens are added per second.
func NewSources(perSecond, burst int) Sources {
	return Sources{
		perSecond: perSecond, burst: burst,
		buckets: make(map[netip.Prefix]*Bucket), shared: NewBucket(perSecond, burst),
	}
}

// Take removes one token of an address, and reports whether there was one.
func (s *Sources) Take(from netip.Addr, now time.Time) bool { return s.TakeAll(from, 1, now) }

// TakeAll removes tokens of an address, and reports whether there were enough. If there were fewer, TakeAll removes all
// of them. This host's own addresses are not limited.
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

// add makes a bucket for an address. If there are maxSources buckets, add returns the shared bucket.
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

// NewSharedSources returns sources with buckets of burst tokens, to which perSecond tokens are added per second.
func NewSharedSources(perSecond, burst int) *SharedSources {
	return &SharedSources{sources: NewSources(perSecond, burst)}
}

// TakeAll removes tokens of an address, as Sources.TakeAll does.
func (s *SharedSources) TakeAll(from netip.Addr, tokens int, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sources.TakeAll(from, tokens, now)
}
