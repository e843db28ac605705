package signalling

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"
)

// tokenOf returns the fingerprint of the n-th token.
func tokenOf(n int) (token Fingerprint) {
	binary.BigEndian.PutUint64(token[:], uint64(n)+1)
	return token
}

func TestOneTokenOpensSoManyWebsockets(t *testing.T) {
	config := DefaultConfig()
	config.TokenWebsockets, config.TokenRate, config.TokenBurst = 3, 1, 5
	c := NewTokenLimits(&config)
	now := time.Unix(1_795_188_600, 0)
	expect := func(what string, token Fingerprint, want bool) {
		t.Helper()
		if err := c.Enter(token, now); (err == nil) != want {
			t.Errorf("%s: got %v, expected it to be let in: %v", what, err, want)
		}
	}
	one, other := tokenOf(1), tokenOf(2)
	for range 3 {
		expect("as many as may be open", one, true)
	}
	expect("one more", one, false)
	expect("another token", other, true)
	for range 10 {
		expect("no token", Fingerprint{}, true)
		c.Leave(Fingerprint{})
	}
	for range 2 {
		c.Leave(one)
		expect("one for one that has gone", one, true)
	}
	c.Leave(one)
	expect("one more than may come at once", one, false)
	now = now.Add(time.Second)
	expect("one more after a second", one, true)
}

// TestRefusalsNameTheLimit checks the limit and the retry time in refusals.
func TestRefusalsNameTheLimit(t *testing.T) {
	config := DefaultConfig()
	now := time.Unix(1_795_188_600, 0)
	for _, test := range []struct {
		name          string
		open          int
		perSecond     float64
		reason        refusal
		after         int
		limit, number string
	}{
		{"too many open", 2, 10, refusedOpen, 5, "signalling.token_websockets", "the limit is 2"},
		{"too many opened", 10, 0.25, refusedRate, 4, "signalling.token_rate", "0.25 websockets per second"},
		{"opened too quickly", 10, 100, refusedRate, 1, "signalling.token_rate", "100 websockets per second"},
		{"a rate of next to nothing", 10, 1e-9, refusedRate, 3600, "signalling.token_rate",
			"1e-09 websockets per second"},
	} {
		config.TokenWebsockets, config.TokenRate, config.TokenBurst = test.open, test.perSecond, 2
		c := NewTokenLimits(&config)
		var err error
		for range 3 {
			err = c.Enter(tokenOf(1), now)
		}
		var exceeded *quotaError
		if !errors.As(err, &exceeded) {
			t.Fatalf("%s: got %v", test.name, err)
		}
		if exceeded.reason != test.reason || exceeded.retryAfter() != test.after ||
			!strings.Contains(err.Error(), test.limit) || !strings.Contains(err.Error(), test.number) {
			t.Errorf("%s: got %q, again after %d s", test.name, err, exceeded.retryAfter())
		}
	}
}

func TestTokensAreForgotten(t *testing.T) {
	config := DefaultConfig()
	config.TokenRate, config.TokenBurst = 1, 1
	c := NewTokenLimits(&config)
	now := time.Unix(1_795_188_600, 0)
	for n := range 100_000 {
		now = now.Add(50 * time.Millisecond)
		if err := c.Enter(tokenOf(n), now); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			c.Leave(tokenOf(n))
		}
		// 20 tokens were used within the last second.
		if known := len(c.quota.members); known > 2*leastSweep {
			t.Fatalf("%d tokens are known after %d", known, n)
		}
	}
	if c.quota.members[tokenOf(0)] == nil {
		t.Error("a token was forgotten whose bearer is there")
	}
}

// TestQuotasAreBounded adds many members at once, so that none of them is idle.
func TestQuotasAreBounded(t *testing.T) {
	c := newQuota[int](DefaultConfig().addressLimits())
	now := time.Unix(1_795_188_600, 0)
	for n := range maxMembers + 1000 {
		if err := c.enter(n, now); err != nil {
			t.Fatal(err)
		}
		if n >= 100 {
			c.leave(n)
		}
	}
	if len(c.members) != maxMembers {
		t.Errorf("%d are known, expected %d", len(c.members), maxMembers)
	}
	for n := range 100 {
		if c.members[n] == nil || c.members[n].open != 1 {
			t.Fatal("a member with an open websocket was removed")
		}
	}
	// If all members have an open websocket, a new member is refused.
	for n := range c.members {
		if n >= 100 {
			c.members[n].open++
		}
	}
	if err := c.enter(-1, now); err == nil || len(c.members) != maxMembers {
		t.Errorf("one more than can be counted was let in: %d are known", len(c.members))
	}
}

// TestQuotaLimitsAreChecked checks that invalid limits are rejected.
func TestQuotaLimitsAreChecked(t *testing.T) {
	for name, spoil := range map[string]func(*Config){
		"no websockets":                func(c *Config) { c.TokenWebsockets = 0 },
		"no rate":                      func(c *Config) { c.TokenRate = 0 },
		"none at once":                 func(c *Config) { c.TokenBurst = 0 },
		"no websockets of an address":  func(c *Config) { c.AddressWebsockets = 0 },
		"no rate of an address":        func(c *Config) { c.AddressRate = 0 },
		"none of an address at once":   func(c *Config) { c.AddressBurst = 0 },
		"another header":               func(c *Config) { c.ProxyHeader = "X-Real-IP" },
		"a proxy by name":              func(c *Config) { c.TrustedProxies = []string{"proxy.example.org"} },
		"a proxy with a zone":          func(c *Config) { c.TrustedProxies = []string{"fe80::1%eth0"} },
		"a prefix of IPv4 within IPv6": func(c *Config) { c.TrustedProxies = []string{"::ffff:10.0.0.0/104"} },
		"a prefix that is too long":    func(c *Config) { c.TrustedProxies = []string{"10.0.0.0/33"} },
	} {
		c := DefaultConfig()
		spoil(&c)
		if err := c.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRefusalsWait checks that repeated refusals of one address are answered with growing delays up to a bound, and at
// once again later. Other addresses do not wait.
func TestRefusalsWait(t *testing.T) {
	c := newQuota[string](quotaLimits{open: 1, perSecond: 1, burst: 1})
	now := time.Unix(1_000_000, 0)
	for _, key := range []string{"ada", "grace"} {
		if err := c.enter(key, now); err != nil {
			t.Fatal(err)
		}
	}
	const most = 10 * time.Second
	var waits []time.Duration
	for range 10 * answerRate * int(most/time.Second) {
		waits = append(waits, c.answerWait("ada", now, most))
	}
	for i, wait := range waits {
		want := min(max(0, time.Duration(i-answerBurst+1)*time.Second/answerRate), most)
		// The limiter computes in floating point.
		if (wait - want).Abs() > time.Microsecond {
			t.Fatalf("refusal %d waits for %v, expected %v", i, wait, want)
		}
	}
	if wait := c.answerWait("grace", now, most); wait != 0 {
		t.Errorf("another address waits for %v", wait)
	}
	for range 2 * answerBurst {
		if wait := c.answerWait("", now, most); wait != 0 {
			t.Fatalf("one of this host's own addresses waits for %v", wait)
		}
	}
	if c.forget(now); c.members["ada"] == nil {
		t.Error("an address with answers that wait is forgotten")
	}
	later := now.Add(most + answerBurst*time.Second/answerRate)
	if wait := c.answerWait("ada", later, most); wait != 0 {
		t.Errorf("after %v a refusal waits for %v", later.Sub(now), wait)
	}
}
