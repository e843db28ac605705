package server

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/volsfu/volsfu/internal/admin"
	"github.com/volsfu/volsfu/internal/auth"
	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/internal/signalling"
)

// newAuthenticator returns the checks of client and operator tokens. With --dev, when the server listens on loopback
// only, and if only a dialect without tokens is enabled, no token is needed. revoked reports whether an operator has
// revoked a token.
func newAuthenticator(
	o Options, files *reloader, revoked func(admission.Token) bool,
) (signalling.Authenticator, admin.Gate, error) {
	c := o.Config
	if c.Server.Dev || o.VR2GatherOnly && !c.VR2Gather.RequireToken {
		return signalling.AllowAll{}, admin.Loopback{}, nil
	}
	keys, err := files.keysOf(c.Auth)
	if err != nil {
		return nil, nil, fmt.Errorf("%w (without --dev a token is asked for)", err)
	}
	return tokens{keys, revoked}, tokens{keys, revoked}, nil
}

// tokens authenticates by access tokens. tokens implements signalling.Authenticator and admin.Gate.
type tokens struct {
	keys    *keyring
	revoked func(admission.Token) bool
}

func (t tokens) claims(r *http.Request) (token string, claims auth.Claims, err error) {
	if token, err = auth.TokenFromRequest(r); err != nil {
		return "", auth.Claims{}, err
	}
	claims, err = t.keys.verify(token)
	if err == nil && t.revoked(tokenOf(claims)) {
		err = auth.ErrRevoked
	}
	return token, claims, err
}

// tokenOf returns the identification of a token.
func tokenOf(claims auth.Claims) admission.Token {
	return admission.Token{ID: claims.ID, Expires: claims.Expires}
}

// Authenticate implements signalling.Authenticator.
func (t tokens) Authenticate(r *http.Request) (signalling.Credentials, error) {
	token, claims, err := t.claims(r)
	if err != nil {
		return signalling.Credentials{}, err
	}
	grants := sfu.Grants{
		Publish: claims.Publish, Subscribe: claims.Subscribe, Data: !claims.DeniesData, Admin: claims.Admin,
	}
	return signalling.Credentials{
		Identity: claims.Identity, Room: claims.Room, Grants: grants, Fingerprint: fingerprint(token),
		Token: tokenOf(claims),
	}, nil
}

// fingerprint identifies a valid token by its signed part: the signature has several encodings, because its last
// character has unused bits.
func fingerprint(token string) signalling.Fingerprint {
	return sha256.Sum256([]byte(token[:max(0, strings.LastIndexByte(token, '.'))]))
}

// Admit implements admin.Gate: a token with the admin grant is needed.
func (t tokens) Admit(r *http.Request) error {
	_, claims, err := t.claims(r)
	switch {
	case errors.Is(err, auth.ErrNoToken):
		return fmt.Errorf("%w: a token with the admin grant is needed", admin.ErrUnauthorized)
	case err != nil:
		return fmt.Errorf("%w: %w", admin.ErrUnauthorized, err)
	case !claims.Admin:
		return fmt.Errorf("%w: the token does not grant administration", admin.ErrForbidden)
	}
	return nil
}
