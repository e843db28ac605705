package auth

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// queryKey is the query parameter that may carry a token (RFC 6750, section 2.3): browsers cannot set headers of a
// websocket.
const queryKey = "access_token"

// redacted replaces a secret.
const redacted = "REDACTED"

// TokenFromRequest returns the token of a request, from "Authorization: Bearer" or from the query parameter
// access_token. The error is ErrNoToken or ErrSeveralTokens, or wraps ErrMalformed if the header has another scheme or
// the query cannot be parsed.
func TokenFromRequest(r *http.Request) (string, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return "", fmt.Errorf("%w: the query cannot be read", ErrMalformed)
	}
	headers, parameters := r.Header.Values("Authorization"), query[queryKey]
	switch {
	case len(headers)+len(parameters) == 0:
		return "", ErrNoToken
	case len(headers)+len(parameters) > 1:
		return "", ErrSeveralTokens
	case len(parameters) == 1:
		return nonEmpty(parameters[0])
	}
	// The scheme is case-insensitive (RFC 9110, section 11.1).
	scheme, token, _ := strings.Cut(headers[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", fmt.Errorf("%w: expected the scheme Bearer in the header Authorization", ErrMalformed)
	}
	return nonEmpty(strings.TrimSpace(token))
}

func nonEmpty(token string) (string, error) {
	if token == "" {
		return "", ErrNoToken
	}
	return token, nil
}

// RedactURL returns a URL for logs, without its password and without the token in its query.
func RedactURL(u *url.URL) string {
	clean := *u
	clean.RawQuery = redactQuery(u.RawQuery)
	return clean.Redacted()
}

// redactQuery replaces the values of the token's parameter, and whole pairs that cannot be parsed.
func redactQuery(raw string) string {
	if raw == "" {
		return ""
	}
	pairs := strings.Split(raw, "&")
	for i, pair := range pairs {
		name, _, _ := strings.Cut(pair, "=")
		unescaped, err := url.QueryUnescape(name)
		switch {
		case err != nil || strings.Contains(pair, ";"):
			pairs[i] = redacted
		case strings.EqualFold(unescaped, queryKey):
			pairs[i] = queryKey + "=" + redacted
		}
	}
	return strings.Join(pairs, "&")
}
