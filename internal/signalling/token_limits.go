package signalling

import "time"

// Fingerprint tells tokens apart; that of none is zero.
type Fingerprint [32]byte

// TokenLimits bound the websockets that are opened by one token. Clients without a token are not counted. They are safe
// for concurrent use.
type TokenLimits struct{ quota *quota[Fingerprint] }

// NewTokenLimits makes the limits of one server.
func NewTokenLimits(config *Config) TokenLimits {
	return TokenLimits{newQuota[Fingerprint](config.tokenLimits())}
}

// Enter counts a websocket that is about to be opened by a token, unless there are too many: then the error says so.
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
