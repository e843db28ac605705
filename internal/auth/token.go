package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Claims are the claims of a token.
type Claims struct {
	// Identity and Room bind the token to a participant's name and to a room; an empty value leaves the choice to the
	// bearer.
	Identity string
	Room     string
	// Publish and Subscribe grant publishing and receiving, Admin the console and the operators' API, Edge the
	// connection of the edge of volnet with the name Identity to a controller.
	Publish   bool
	Subscribe bool
	Admin     bool
	Edge      bool
	// DeniesData denies sending data messages and changing the own attributes.
	DeniesData bool
	// ID is the ID of the token (claim jti, RFC 7519 section 4.1.7), by which the token can be revoked; may be empty.
	ID string
	// Expires is the time at which the token expires, in whole seconds.
	Expires time.Time
}

// maxIDBytes is the maximum length of a token ID: revocations store IDs. A UUID has 36 bytes.
const maxIDBytes = 256

// validate reports names that are not valid for a room or a participant, and an ID that is too long.
func (c Claims) validate() error {
	if len(c.ID) > maxIDBytes {
		return fmt.Errorf("%w: jti has %d bytes, expected at most %d", ErrClaims, len(c.ID), maxIDBytes)
	}
	for what, name := range map[string]string{"sub": c.Identity, "room": c.Room} {
		if name == "" {
			continue
		}
		if err := volumetric.ValidateName(what, name); err != nil {
			return fmt.Errorf("%w: %w", ErrClaims, err)
		}
	}
	return nil
}

// payload is the token's JSON.
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
		keyID = r.keys[0].id
	}
	secret, ok := r.secret(keyID)
	if !ok {
		return "", fmt.Errorf("mint: %w %q, expected one of %q", ErrUnknownKey, keyID, r.KeyIDs())
	}
	if err := claims.validate(); err != nil {
		return "", fmt.Errorf("mint: %w", err)
	}
	if !claims.Expires.After(now) {
		return "", fmt.Errorf("mint: %w: it would expire at %v, expected a time after %v", ErrClaims,
			claims.Expires, now)
	}
	var data *bool
	if claims.DeniesData {
		data = new(bool)
	}
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, payload{
		Room:      claims.Room,
		Publish:   claims.Publish,
		Subscribe: claims.Subscribe,
		Admin:     claims.Admin,
		Edge:      claims.Edge,
		Data:      data,
		RegisteredClaims: jwt.RegisteredClaims{
			ID:        claims.ID,
			Subject:   claims.Identity,
			IssuedAt:  jwt.NewNumericDate(now),
			ExpiresAt: jwt.NewNumericDate(claims.Expires),
		},
	})
	token.Header["kid"] = keyID
	signed, err := token.SignedString(secret)
	if err != nil {
		return "", fmt.Errorf("mint: %w", err)
	}
	return signed, nil
}

// maxTokenBytes: the tokens of Mint have at most about 1 kB; tokens of other issuers must fit a header line.
const maxTokenBytes = 8 << 10

// Verify checks a token at the time now and returns its claims. Signatures are compared in constant time.
func (r *Keyring) Verify(token string, now time.Time) (Claims, error) {
	if len(token) > maxTokenBytes {
		return Claims{}, fmt.Errorf("%w: %d bytes, expected at most %d", ErrMalformed, len(token), maxTokenBytes)
	}
	parser := jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
		jwt.WithExpirationRequired(),
		jwt.WithLeeway(r.leeway),
		jwt.WithTimeFunc(func() time.Time { return now }),
		jwt.WithStrictDecoding(),
	)
	var p payload
	if _, err := parser.ParseWithClaims(token, &p, r.keyOf); err != nil {
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
	return claims, claims.validate()
}

// keyOf returns the secret for the key ID in a token's header.
func (r *Keyring) keyOf(token *jwt.Token) (any, error) {
	// A critical extension that is not supported must be refused (RFC 7515, section 4.1.11). None is supported.
	if _, critical := token.Header["crit"]; critical {
		return nil, ErrMalformed
	}
	id, _ := token.Header["kid"].(string)
	secret, ok := r.secret(id)
	if !ok {
		return nil, ErrUnknownKey
	}
	return secret, nil
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
