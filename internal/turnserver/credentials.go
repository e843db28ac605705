package turnserver

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// credentialLife is the time for which a credential makes allocations. A client receives a new credential when it joins
// and when it resumes. If an ICE restart after a longer time needs a new allocation, the connection fails, and the
// client resumes.
const credentialLife = 12 * time.Hour

// credentials makes and reads credentials: the user name is the time of expiry in seconds since 1970 and the session,
// the password is an HMAC of the user name (draft-uberti-behave-turn-rest-00, section 2.2, with SHA-256).
type credentials struct{ secret [sha256.Size]byte }

// newCredentials returns credentials with a secret that no other process has.
func newCredentials() (c credentials) {
	// Never fails.
	_, _ = rand.Read(c.secret[:])
	return c
}

// issue returns a session's credential.
func (c credentials) issue(session string, expiry time.Time) (username, password string) {
	username = strconv.FormatInt(expiry.Unix(), 10) + ":" + session
	return username, c.password(username)
}

// password returns the password of a user name.
func (c credentials) password(username string) string {
	mac := hmac.New(sha256.New, c.secret[:])
	mac.Write([]byte(username))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// parseUsername returns the parts of a user name.
func parseUsername(username string) (session string, expiry time.Time, ok bool) {
	seconds, session, ok := strings.Cut(username, ":")
	n, err := strconv.ParseInt(seconds, 10, 64)
	return session, time.Unix(n, 0), ok && err == nil && session != ""
}
