package transport

import (
	"net/netip"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/transport/icemux"
)

const (
	// consentLife is how long a remote peer's last answer to a check permits sending media. RFC 7675 allows 30 s; a
	// receiver whose network has gone is sent no more after this time and one consentInterval.
	consentLife = 5 * time.Second
	// consentInterval is how often consent is looked at, and repeatAfter how long a check may stay without an answer
	// before it is repeated (the first RTO of RFC 8489 section 6.2.1). Consent ends after consentLife / repeatAfter =
	// 10 checks in a row, or their answers, were lost: with 30 % loss in each direction once in a thousand times that 5
	// s.
	consentInterval = icemux.StepInterval
	repeatAfter     = 500 * time.Millisecond
)

// consent is a remote peer's consent to be sent media at an address (RFC 7675): answers to the checks that its ICE
// agent is sent there. It is stepped with the time, and safe for concurrent use.
type consent struct {
	mu      sync.Mutex
	address netip.AddrPort
	// answeredAt is when a check was last answered, sentAt when a check was last sent or repeated.
	answeredAt, sentAt time.Time
	// check is the last check that was sent, until it is answered, and id its transaction; repeated says that it was
	// sent more than once.
	check    []byte
	id       icemux.TransactionID
	repeated bool
}

// begin notes that the remote peer has answered a check at the address that media goes to from now on.
func (c *consent) begin(address netip.AddrPort, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if address != c.address {
		c.address, c.check = address, c.check[:0]
	}
	c.answeredAt = now
}

// checked notes a check that is sent to an address.
func (c *consent) checked(to netip.AddrPort, id icemux.TransactionID, check []byte, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if to == c.address {
		c.check, c.id, c.sentAt, c.repeated = append(c.check[:0], check...), id, now, false
	}
}

// answered notes that a check was answered from an address. It reports whether the remote peer consents there, and
// returns the round-trip time, 0 if it cannot be told: which of several transmissions an answer answers is unknown.
func (c *consent) answered(
	from netip.AddrPort, id icemux.TransactionID, now time.Time,
) (took time.Duration, there bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if from != c.address {
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

// step reports whether the remote peer consents, and returns the check that is to be repeated, empty if there is none.
// The check is appended to buffer.
func (c *consent) step(now time.Time, buffer []byte) (fresh bool, repeat []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.check) > 0 && now.Sub(c.sentAt) >= repeatAfter {
		c.sentAt, c.repeated = now, true
		repeat = append(buffer, c.check...)
	}
	return now.Sub(c.answeredAt) < consentLife, repeat
}
