package token

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrClaims is wrapped with a claim that a token must not have.
var ErrClaims = errors.New("token with invalid claims")

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

// Validate reports names that are not valid for a room or a participant, and an ID that is too long. The error wraps
// ErrClaims.
func (c Claims) Validate() error {
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

// header and payload are the JSON of a token.
type (
	header struct {
		Algorithm string `json:"alg"`
		KeyID     string `json:"kid"`
		Type      string `json:"typ"`
	}
	payload struct {
		Room      string `json:"room,omitempty"`
		Publish   bool   `json:"publish,omitempty"`
		Subscribe bool   `json:"subscribe,omitempty"`
		Admin     bool   `json:"admin,omitempty"`
		Edge      bool   `json:"edge,omitempty"`
		// Data is nil in tokens that grant data messages.
		Data     *bool  `json:"data,omitempty"`
		Identity string `json:"sub,omitempty"`
		ID       string `json:"jti,omitempty"`
		Issued   int64  `json:"iat"`
		Expires  int64  `json:"exp"`
	}
)

// Mint returns a token signed by the key. The error wraps ErrClaims.
func (k Key) Mint(claims Claims, now time.Time) (string, error) {
	if err := claims.Validate(); err != nil {
		return "", fmt.Errorf("mint: %w", err)
	}
	if !claims.Expires.After(now) {
		return "", fmt.Errorf("mint: %w: it would expire at %v, expected a time after %v", ErrClaims, claims.Expires,
			now)
	}
	body := payload{
		Room: claims.Room, Publish: claims.Publish, Subscribe: claims.Subscribe, Admin: claims.Admin,
		Edge: claims.Edge, Identity: claims.Identity, ID: claims.ID, Issued: now.Unix(),
		Expires: claims.Expires.Unix(),
	}
	if claims.DeniesData {
		body.Data = new(bool)
	}
	signed := encode(header{Algorithm: "HS256", KeyID: k.id, Type: "JWT"}) + "." + encode(body)
	mac := hmac.New(sha256.New, k.secret)
	_, _ = mac.Write([]byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), nil
}

// encode returns a part of a token.
func encode(part any) string {
	text, err := json.Marshal(part)
	if err != nil {
		panic("parts of a token are plain data: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(text)
}
