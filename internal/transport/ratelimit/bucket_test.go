package ratelimit

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"
)

var start = time.Unix(1_000_000, 0)

func TestBucket(t *testing.T) {
	b := NewBucket(10, 5)
	take := func(now time.Time, tries int) (taken int) {
		for range tries {
			if b.Take(now) {
				taken++
			}
		}
		return taken
	}
	if taken := take(start, 100); taken != 5 {
		t.Errorf("a full bucket gave %d tokens, expected 5", taken)
	}
	if b.full(start.Add(499*time.Millisecond)) || !b.full(start.Add(500*time.Millisecond)) {
		t.Error("an empty bucket of 5 tokens is not full after the time of 5")
	}
	if taken := take(start.Add(250*time.Millisecond), 100); taken != 2 {
		t.Errorf("a quarter of a second gave %d tokens, expected 2", taken)
	}
	total := 0
	for ms := 300; ms < 10_300; ms++ {
		total += take(start.Add(time.Duration(ms)*time.Millisecond), 3)
	}
	if total < 99 || total > 101 {
		t.Errorf("10 s gave %d tokens, expected 100", total)
	}
}

// TestBucketTakesAll: taking many tokens at once equals taking them one by one until there is none.
func TestBucketTakesAll(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	once, each, now := NewBucket(10, 5), NewBucket(10, 5), start
	refused := 0
	for range 10_000 {
		now = now.Add(time.Duration(random.IntN(int(time.Second))))
		tokens, all := random.IntN(8), true
		for n := 0; n < tokens && all; n++ {
			all = each.Take(now)
		}
		if got := once.TakeAll(tokens, now); got != all || once != each {
			t.Fatalf("%d tokens at %v: %t and %+v, one by one %t and %+v", tokens, now.Sub(start), got, once, all, each)
		}
		if !all {
			refused++
		}
	}
	if refused < 1000 || refused > 9000 {
		t.Errorf("%d of 10,000 takes were refused, expected some of either kind", refused)
	}
}

// TestSources floods from one address, from one IPv6 network, from this host, and from more addresses than have
// buckets.
func TestSources(t *testing.T) {
	const perSecond, burst = 2000, 4000
	prefix := func(n, host int) netip.Addr {
		var a [16]byte
		a[0] = 0x20
		binary.BigEndian.PutUint32(a[4:], uint32(n))
		binary.BigEndian.PutUint32(a[12:], uint32(host))
		return netip.AddrFrom16(a)
	}
	for _, test := range []struct {
		name  string
		from  func(n int) netip.Addr
		tries int
		taken int
	}{
		{"one address", func(int) netip.Addr { return netip.MustParseAddr("203.0.113.1") }, 10 * burst, burst},
		{"one network", func(n int) netip.Addr { return prefix(0, n) }, 10 * burst, burst},
		{"this host", func(int) netip.Addr { return netip.MustParseAddr("127.0.0.1") }, 10 * burst, 10 * burst},
		{"as many networks as are told apart", func(n int) netip.Addr { return prefix(n, 0) }, maxSources, maxSources},
		{"ever other networks", func(n int) netip.Addr { return prefix(n, 0) }, 10 * maxSources, maxSources + burst},
	} {
		s := NewSources(perSecond, burst)
		taken := 0
		for n := range test.tries {
			if s.Take(test.from(n), start) {
				taken++
			}
		}
		if taken != test.taken || len(s.buckets) > maxSources {
			t.Errorf("%s: %d of %d datagrams are taken and %d addresses kept, expected %d and %d at most",
				test.name, taken, test.tries, len(s.buckets), test.taken, maxSources)
		}
		// After a while all addresses are removed.
		s.Take(prefix(1<<20, 0), start.Add(time.Hour))
		if len(s.buckets) > 1 {
			t.Errorf("%s: %d addresses are kept after an hour", test.name, len(s.buckets))
		}
	}
}
