package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/volsfu/volsfu/pkg/token"
)

// Claims are the claims of a token.
type Claims = token.Claims

// payload is the JSON of a token, as token.Key.Mint and other issuers write it.
type payload struct {
	Room      string `json:"room,omitempty"`
	Publish   bool   `json:"publish,omitempty"`
	Subscribe bool   `json:"subscribe,omitempty"`
	Admin     bool   `json:"admin,omitempty"`
	Edge      bool   `json:"edge,omitempty"`
	// Data is nil in tokens that grant data messages without naming them.
	Data *bool `json:"data,omitempty"`
	jwt.RegisteredClaims
}

// Mint returns a token signed by the key of that name, or by the first key if the name is empty.
func (r *Keyring) Mint(keyID string, claims Claims, now time.Time) (string, error) {
	if keyID == "" {
		keyID = r.keys[0].ID()
	}
	k, ok := r.key(keyID)
	if !ok {
		return "", fmt.Errorf("mint: %w %q, expected one of %q", ErrUnknownKey, keyID, r.KeyIDs())
	}
	return k.Mint(claims, now)
}

// maxTokenBytes: the tokens of Mint have at most about 1 kB; tokens of other issuers must fit a header line.
const maxTokenBytes = 8 << 10

// Verify checks a token at the time now and returns its claims. Signatures are compared in constant time.
func (r *Keyring) Verify(text string, now time.Time) (Claims, error) {
	if len(text) > maxTokenBytes {
		return Claims{}, fmt.Errorf("%w: %d bytes, expected at most %d", ErrMalformed, len(text), maxTokenBytes)
	}
	parser := jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
		jwt.WithExpirationRequired(),
		jwt.WithLeeway(r.leeway),
		jwt.WithTimeFunc(func() time.Time { return now }),
		jwt.WithStrictDecoding(),
	)
	var p payload
	if _, err := parser.ParseWithClaims(text, &p, r.keyOf); err != nil {
		return Claims{}, sentinelOf(err)
	}
	claims := Claims{
		Identity:   p.Subject,
		Room:       p.Room,
		Publish:    p.Publish,
		Subscribe:  p.Subscribe,
		Admin:      p.Admin,
		Edge:       p.Edge,
		DeniesData: p.Data != nil && !*p.Data,
		ID:         p.ID,
		Expires:    p.ExpiresAt.Time,
	}
	return claims, claims.Validate()
}

// keyOf returns the secret for the key ID in a token's header.
func (r *Keyring) keyOf(parsed *jwt.Token) (any, error) {
	// A critical extension that is not supported must be refused (RFC 7515, section 4.1.11). None is supported.
	if _, critical := parsed.Header["crit"]; critical {
		return nil, ErrMalformed
	}
	id, _ := parsed.Header["kid"].(string)
	k, ok := r.key(id)
	if !ok {
		return nil, ErrUnknownKey
	}
	return k.Secret(), nil
}

// sentinelOf replaces an error of the library, whose text may quote the token, by one of this package.
func sentinelOf(err error) error {
	if form := new(json.UnmarshalTypeError); errors.As(err, &form) {
		return ErrClaims
	}
	for _, pair := range []struct{ theirs, ours error }{
		{ErrUnknownKey, ErrUnknownKey},
		{ErrMalformed, ErrMalformed},
		{jwt.ErrTokenMalformed, ErrMalformed},
		{jwt.ErrTokenSignatureInvalid, ErrSignature},
		{jwt.ErrTokenRequiredClaimMissing, ErrClaims},
		{jwt.ErrTokenExpired, ErrExpired},
		{jwt.ErrTokenNotValidYet, ErrNotYet},
		{jwt.ErrTokenInvalidClaims, ErrClaims},
	} {
		if errors.Is(err, pair.theirs) {
			return pair.ours
		}
	}
	return ErrMalformed
}
