package admission

import "time"

// Bearer is the key by which rooms and places are counted: a token, or an address if the client has no token. Nothing
// is counted for the empty bearer.
type Bearer string

// Token identifies a client's token. A Token is zero for a client without a token.
type Token struct {
	// ID is the claim jti. ID is empty if the token has none; then the token cannot be revoked.
	ID string
	// Expires is the time at which the token expires.
	Expires time.Time
}
