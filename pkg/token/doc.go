// Package token mints access tokens for a volsfu server: JSON Web Tokens (RFC 7519), signed by HMAC-SHA-256.
// docs/operations.md describes the claims, and the files with the keys that the server and a backend share.
package token
