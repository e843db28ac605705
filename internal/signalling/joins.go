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
	tokens    *crowd[Fingerprint]
	addresses *crowd[netip.Prefix]
}

// newJoinLimits makes the limits. A token, or an address, may try as many joins as it may open websockets.
func newJoinLimits(config *Config) joinLimits {
	of := func(limits crowdLimits) crowdLimits {
		limits.what = "joins (or messages of 8 KiB in their place)"
		return limits
	}
	return joinLimits{newCrowd[Fingerprint](of(config.tokenLimits())), newCrowd[netip.Prefix](of(config.addressLimits()))}
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

// bearerOf is whom rooms and places are counted by: the token, or the address without one; empty for this host's own
// addresses without a token.
func bearerOf(token Fingerprint, source netip.Prefix) admission.Bearer {
	switch {
	case token != Fingerprint{}:
		return admission.Bearer("token " + hex.EncodeToString(token[:]))
	case source.IsValid():
		return admission.Bearer("address " + source.String())
	default:
		return ""
	}
}
