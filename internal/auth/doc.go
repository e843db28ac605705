// Package auth owns tokens: the keys that sign them, verification and minting, their place in a request, and their
// redaction in logs. Tokens are JSON Web Tokens (RFC 7519) signed by HMAC-SHA-256; no other algorithm is accepted. A
// Keyring is immutable, so any goroutine may use it.
package auth

import (
	"errors"

	"github.com/volsfu/volsfu/pkg/token"
)

// Errors of keys.
var (
	// ErrKey is the sentinel of an invalid configured key. The wrapping error has the reason, never the secret.
	ErrKey = token.ErrKey
	// ErrConfig is the sentinel of an invalid setting. The wrapping error has the setting and the expected value.
	ErrConfig = errors.New("invalid auth configuration")
)

// Errors of tokens. The texts never contain a part of the token.
var (
	// ErrNoToken: the request carries no token.
	ErrNoToken = errors.New("no token")
	// ErrSeveralTokens: the request carries more than one token, which RFC 6750, section 2, forbids.
	ErrSeveralTokens = errors.New("more than one token")
	// ErrMalformed: not a JSON Web Token.
	ErrMalformed = errors.New("malformed token")
	// ErrUnknownKey: the token names no key, or one that is not configured.
	ErrUnknownKey = errors.New("token of an unknown key")
	// ErrSignature: the signature is not that of the key, or not HS256.
	ErrSignature = errors.New("token with a wrong signature")
	// ErrExpired: the token's time is over.
	ErrExpired = errors.New("token has expired")
	// ErrNotYet: the token's time has not begun.
	ErrNotYet = errors.New("token is not valid yet")
	// ErrRevoked: an operator has revoked the token.
	ErrRevoked = errors.New("token has been revoked")
	// ErrClaims: a claim is missing, or of a form or value that it must not have.
	ErrClaims = token.ErrClaims
)
