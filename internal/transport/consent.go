package transport

import (
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/transport/icemux"
)

const (
	// consentLife is the time for which an answered check permits sending media. RFC 7675 permits 30 s. If the network
	// of a receiver has gone, sending stops after consentLife and one consentInterval.
	consentLife = 5 * time.Second
	// consentInterval is the time between two evaluations of consent. repeatAfter is the time after which a check
	// without an answer is repeated (the first RTO of RFC 8489 section 6.2.1). Consent expires if consentLife /
	// repeatAfter = 10 checks in a row, or their answers, are lost. With a loss of 30 % in each direction this happens
	// once in a thousand times 5 s.
	consentInterval = icemux.StepInterval
	repeatAfter     = 500 * time.Millisecond
)

// consent is the remote peer's consent to receive media on a candidate pair (RFC 7675), shown by answers to the checks
// that the ICE agent sends on that pair. Time is an argument of the methods. consent is safe for concurrent use.
type consent struct {
	mu   sync.Mutex
	pair pairAddress
	// answeredAt is the time of the last answer. sentAt is the time at which a check was last sent or repeated.
	answeredAt, sentAt time.Time
	// check is the last check sent that has no answer yet, and id its transaction. repeated is set if the check was
	// sent more than once.
	check    []byte
	id       icemux.TransactionID
	repeated bool
}

// begin sets the pair that media is sent on from now on. The remote peer has just answered a check on this pair.
func (c *consent) begin(pair pairAddress, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if pair != c.pair {
		c.pair, c.check = pair, c.check[:0]
	}
	c.answeredAt = now
}

// checked records a check that is sent on a pair.
func (c *consent) checked(to pairAddress, id icemux.TransactionID, check []byte, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if to == c.pair {
		c.check, c.id, c.sentAt, c.repeated = append(c.check[:0], check...), id, now, false
	}
}

// answered records an answer on a pair. there reports whether media is sent on this pair. took is the
// round-trip time. took is 0 if it is unknown: an answer to a repeated check does not show which transmission it
// answers.
func (c *consent) answered(
	from pairAddress, id icemux.TransactionID, now time.Time,
) (took time.Duration, there bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if from != c.pair {
		return 0, false
	}
	c.answeredAt = now
	if len(c.check) == 0 || c.id != id {
		return 0, true
	}
	if !c.repeated {
		took = now.Sub(c.sentAt)
	}
	c.check = c.check[:0]
	return took, true
}

// step reports whether consent is fresh, and returns the check to repeat, empty if there is none. The check is appended
// to buffer.
func (c *consent) step(now time.Time, buffer []byte) (fresh bool, repeat []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.check) > 0 && now.Sub(c.sentAt) >= repeatAfter {
		c.sentAt, c.repeated = now, true
		repeat = append(buffer, c.check...)
	}
	return now.Sub(c.answeredAt) < consentLife, repeat
}
