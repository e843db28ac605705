package signalling

import "time"

// Fingerprint identifies a token. A Fingerprint is zero if there is no token.
type Fingerprint [32]byte

// TokenLimits bounds the websockets of each token. Clients without a token are not counted. TokenLimits is safe for
// concurrent use.
type TokenLimits struct{ quota *quota[Fingerprint] }

// NewTokenLimits returns the limits of one server.
func NewTokenLimits(config *Config) TokenLimits {
	return TokenLimits{newQuota[Fingerprint](config.tokenLimits())}
}

// Enter counts a websocket that a token is about to open. Enter returns an error if a limit is exceeded.
func (l TokenLimits) Enter(token Fingerprint, now time.Time) error {
	if token == (Fingerprint{}) {
		return nil
	}
	return l.quota.enter(token, now)
}

// Leave counts a websocket that has ended.
func (l TokenLimits) Leave(token Fingerprint) {
	if token != (Fingerprint{}) {
		l.quota.leave(token)
	}
}
