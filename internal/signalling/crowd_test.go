package signalling

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"
)

// tokenOf is the fingerprint of one of many tokens.
func tokenOf(n int) (token Fingerprint) {
	binary.BigEndian.PutUint64(token[:], uint64(n)+1)
	return token
}

func TestOneTokenOpensSoManyWebsockets(t *testing.T) {
	config := DefaultConfig()
	config.TokenWebsockets, config.TokenRate, config.TokenBurst = 3, 1, 5
	c := newCrowd(&config)
	now := time.Unix(1_795_188_600, 0)
	expect := func(what string, token Fingerprint, want bool) {
		t.Helper()
		if err := c.enter(token, now); (err == nil) != want {
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
		c.leave(Fingerprint{})
	}
	for range 2 {
		c.leave(one)
		expect("one for one that has gone", one, true)
	}
	c.leave(one)
	expect("one more than may come at once", one, false)
	now = now.Add(time.Second)
	expect("one more after a second", one, true)
}

func TestTokensAreForgotten(t *testing.T) {
	config := DefaultConfig()
	config.TokenRate, config.TokenBurst = 1, 1
	c := newCrowd(&config)
	now := time.Unix(1_795_188_600, 0)
	for n := range 100_000 {
		now = now.Add(50 * time.Millisecond)
		if err := c.enter(tokenOf(n), now); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			c.leave(tokenOf(n))
		}
		// 20 of them came within the last second.
		if known := len(c.tokens); known > 2*leastSweep {
			t.Fatalf("%d tokens are known after %d", known, n)
		}
	}
	if c.tokens[tokenOf(0)] == nil {
		t.Error("a token was forgotten whose bearer is there")
	}
}

// TestTokenLimitsAreChecked finds the values that nobody can mean.
func TestTokenLimitsAreChecked(t *testing.T) {
	for name, spoil := range map[string]func(*Config){
		"no websockets": func(c *Config) { c.TokenWebsockets = 0 },
		"no rate":       func(c *Config) { c.TokenRate = 0 },
		"none at once":  func(c *Config) { c.TokenBurst = 0 },
	} {
		c := DefaultConfig()
		spoil(&c)
		if err := c.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
