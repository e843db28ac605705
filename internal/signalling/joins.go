package signalling

import (
	"encoding/hex"
	"net/netip"
	"time"

	"github.com/volsfu/volsfu/internal/sfu/admission"
)

const (
	// maxRefusedJoins is the number of refused joins after which a websocket ends. A client whose resume fails rejoins
	// on the same websocket and may try a few other names.
	maxRefusedJoins = 5
	// joinUnit is the number of bytes of a message before the join that count as one more join. Reading and checking a
	// join costs 100 ns per byte, so the 50 units per second of one address use 4 % of a core, whatever the joins
	// contain.
	joinUnit = 8 << 10
)

// joinLimits bounds the attempts to join by one token and from one address, successful or not. joinLimits is safe for
// concurrent use.
type joinLimits struct {
	tokens    *quota[Fingerprint]
	addresses *quota[netip.Prefix]
}

// newJoinLimits returns the limits. A token or an address may try as many joins as it may open websockets.
func newJoinLimits(config *Config) joinLimits {
	of := func(limits quotaLimits) quotaLimits {
		limits.what = "joins (or messages of 8 KiB in their place)"
		return limits
	}
	return joinLimits{
		newQuota[Fingerprint](of(config.tokenLimits())), newQuota[netip.Prefix](of(config.addressLimits())),
	}
}

// try charges a message of the given length, sent before the join, to the budgets of the token and the address. try
// returns an error if a budget is exceeded. Clients without a token have no token budget, and addresses of this host
// have no address budget.
func (l *joinLimits) try(token Fingerprint, source netip.Prefix, bytes int, now time.Time) error {
	units := 1 + bytes/joinUnit
	if source.IsValid() {
		if err := l.addresses.spend(source, units, now); err != nil {
			return err
		}
	}
	if token != (Fingerprint{}) {
		return l.tokens.spend(token, units, now)
	}
	return nil
}

// BearerOf returns the key by which rooms and places are counted: the token, or the address if there is no token.
// BearerOf is empty for addresses of this host without a token.
func BearerOf(token Fingerprint, source netip.Prefix) admission.Bearer {
	switch {
	case token != Fingerprint{}:
		return admission.Bearer("token " + hex.EncodeToString(token[:]))
	case source.IsValid():
		return admission.Bearer("address " + source.String())
	default:
		return ""
	}
}

// RefusalDelays delays the answers to refused joins of each address. RefusalDelays is safe for concurrent use.
type RefusalDelays struct{ quota *quota[netip.Prefix] }

// NewRefusalDelays returns the delays of one server.
func NewRefusalDelays(config *Config) RefusalDelays {
	return RefusalDelays{newQuota[netip.Prefix](config.addressLimits())}
}

// Wait waits for the delay of an address, which has the form of http.Request.RemoteAddr. Wait reports false if done is
// closed first.
func (d RefusalDelays) Wait(done <-chan struct{}, remote string) bool {
	return waited(done, d.quota.answerWait(SourceOf(remote), time.Now(), maxJoinWait))
}
