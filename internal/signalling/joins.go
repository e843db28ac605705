package signalling

import (
	"encoding/hex"
	"net/netip"
	"time"

	"github.com/volsfu/volsfu/internal/sfu/admission"
)

const (
	// maxRefusedJoins is how many joins may be refused on one websocket before the websocket ends: a client that
	// resumes in vain joins anew on the same websocket, and may try some other names.
	maxRefusedJoins = 5
	// joinUnit is how many bytes of a message before the join count as one more join. Reading a join and checking what
	// it publishes takes 100 ns per byte, so that the 50 units per second of one address take 4 % of a core, whatever
	// the joins are made of.
	joinUnit = 8 << 10
)

// joinLimits bound the joins that are tried by one token and from one address, whatever becomes of them. They are safe
// for concurrent use.
type joinLimits struct {
	tokens    *quota[Fingerprint]
	addresses *quota[netip.Prefix]
}

// newJoinLimits makes the limits. A token, or an address, may try as many joins as it may open websockets.
func newJoinLimits(config *Config) joinLimits {
	of := func(limits quotaLimits) quotaLimits {
		limits.what = "joins (or messages of 8 KiB in their place)"
		return limits
	}
	return joinLimits{
		newQuota[Fingerprint](of(config.tokenLimits())), newQuota[netip.Prefix](of(config.addressLimits())),
	}
}

// try takes a message of so many bytes by somebody who has not joined from the budgets of the token and the address,
// unless one of them has less: then the error says so. Who has no token, and this host's own addresses, have no budget.
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

// BearerOf is whom rooms and places are counted by: the token, or the address without one; empty for this host's own
// addresses without a token.
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

// RefusalDelays delay the answers to refused joins of each address. They are safe for concurrent use.
type RefusalDelays struct{ quota *quota[netip.Prefix] }

// NewRefusalDelays makes the delays of one server.
func NewRefusalDelays(config *Config) RefusalDelays {
	return RefusalDelays{newQuota[netip.Prefix](config.addressLimits())}
}

// Wait waits for the delay of an address, as HTTP has it, and reports false if done is closed before.
func (d RefusalDelays) Wait(done <-chan struct{}, remote string) bool {
	return waited(done, d.quota.answerWait(SourceOf(remote), time.Now(), maxJoinWait))
}
