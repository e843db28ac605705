package transport

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

// sources bounds how often each address may do something. If there are more addresses than are told apart, the others
// share one bucket. It is pure and not safe for concurrent use.
type sources struct {
	// perSecond and burst are those of each bucket.
	perSecond, burst int

	buckets map[netip.Prefix]*bucket
	shared  bucket
	swept   time.Time
}

func newSources(perSecond, burst int) sources {
	return sources{
		perSecond: perSecond, burst: burst,
		buckets: make(map[netip.Prefix]*bucket), shared: newBucket(perSecond, burst),
	}
}

// take takes one token of an address, and reports whether there was one.
func (s *sources) take(from netip.Addr, now time.Time) bool { return s.takeAll(from, 1, now) }

// takeAll takes tokens of an address, and reports whether there were as many. If there were fewer, takeAll takes those.
// This host's own addresses are not bounded.
func (s *sources) takeAll(from netip.Addr, tokens int, now time.Time) bool {
	source, limited := Source(from)
	if !limited {
		return true
	}
	b := s.buckets[source]
	if b == nil {
		b = s.add(source, now)
	}
	return b.takeAll(tokens, now)
}

// add makes a bucket for an address if there is room for one.
func (s *sources) add(source netip.Prefix, now time.Time) *bucket {
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
	b := newBucket(s.perSecond, s.burst)
	s.buckets[source] = &b
	return &b
}

// sharedSources are sources that are safe for concurrent use.
type sharedSources struct {
	mu      sync.Mutex
	sources sources
}

// takeAll takes tokens of an address, as sources.takeAll does.
func (s *sharedSources) takeAll(from netip.Addr, tokens int, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sources.takeAll(from, tokens, now)
}
