package signalling

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// crowd knows how many websockets are open by each token, and how many were opened of late: whoever has a token can have others be told of joins without end, and has
// the server keep what each websocket may send before it is looked at. It is safe for concurrent use.
type crowd struct {
	config *Config

	mu     sync.Mutex
	tokens map[Fingerprint]*bearers
	// sweep is how many tokens may be known before those are forgotten of which there is nothing to know.
	sweep int
}

// Fingerprint tells tokens apart; that of none is zero.
type Fingerprint [32]byte

// bearers are those who have one token.
type bearers struct {
	open   int
	opened *rate.Limiter
}

// leastSweep keeps sweeps rare while there are few tokens.
const leastSweep = 64

func newCrowd(config *Config) *crowd {
	return &crowd{config: config, tokens: make(map[Fingerprint]*bearers), sweep: leastSweep}
}

// enter counts a websocket that is about to be opened by a token, unless there are too many: then the error says so. Who comes without one is not counted.
func (c *crowd) enter(token Fingerprint, now time.Time) error {
	if token == (Fingerprint{}) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.tokens[token]
	if b == nil {
		if len(c.tokens) >= c.sweep {
			c.forget(now)
		}
		b = &bearers{opened: rate.NewLimiter(rate.Limit(c.config.TokenRate), c.config.TokenBurst)}
		c.tokens[token] = b
	}
	if b.open >= c.config.TokenWebsockets {
		return fmt.Errorf("%d websockets are open by this token, the limit is %d", b.open, c.config.TokenWebsockets)
	}
	if !b.opened.AllowN(now, 1) {
		return fmt.Errorf("%g websockets per second are the limit for one token, and %d at once", c.config.TokenRate, c.config.TokenBurst)
	}
	b.open++
	return nil
}

// leave counts a websocket that has ended.
func (c *crowd) leave(token Fingerprint) {
	if token == (Fingerprint{}) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens[token].open--
}

// forget drops tokens whose bearers have all gone, and long enough ago for them to be as anybody new.
func (c *crowd) forget(now time.Time) {
	for token, b := range c.tokens {
		if b.open == 0 && b.opened.TokensAt(now) >= float64(c.config.TokenBurst) {
			delete(c.tokens, token)
		}
	}
	c.sweep = max(leastSweep, 2*len(c.tokens))
}
