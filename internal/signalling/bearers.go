package signalling

import "time"

// Fingerprint tells tokens apart; that of none is zero.
type Fingerprint [32]byte

// bearers are those who come with a token, counted by token. Who comes without one is not counted.
type bearers struct{ crowd *crowd[Fingerprint] }

func newBearers(config *Config) bearers { return bearers{newCrowd[Fingerprint](config.tokenLimits())} }

// enter counts a websocket that is about to be opened by a token, unless there are too many: then the error says so.
func (b bearers) enter(token Fingerprint, now time.Time) error {
	if token == (Fingerprint{}) {
		return nil
	}
	return b.crowd.enter(token, now)
}

// leave counts a websocket that has ended.
func (b bearers) leave(token Fingerprint) {
	if token != (Fingerprint{}) {
		b.crowd.leave(token)
	}
}
