// Package iceservers reads the configured STUN and TURN servers that clients use besides the server's own, and makes
// the credentials of each session.
package iceservers

import (
	"crypto/hmac"
	"crypto/sha1" // The algorithm of TURN servers with a shared secret.
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pion/stun/v4"

	"github.com/volsfu/volsfu/pkg/signal"
)

// ErrServer is wrapped with the invalid text and the expected form. The text is shown without secrets.
var ErrServer = errors.New("invalid ICE server")

// CredentialLife is the validity of a credential that is made from a shared secret. A TURN server asks for a valid
// credential at each refresh. A client receives a new credential when it joins and when it resumes, so a day covers
// sessions of a day.
const CredentialLife = 24 * time.Hour

// Server is one configured server.
type Server struct {
	urls                 []string
	username, credential string
	// secret is the secret shared with a TURN server. It is empty for STUN servers and for fixed credentials.
	secret string
}

// form is the form of a server in the configuration.
const form = "URL [URL…] [username=NAME credential=TEXT | secret=TEXT]"

// Parse reads servers in the form
//
//	URL [URL…] [username=NAME credential=TEXT | secret=TEXT]
//
// with one or more spaces between the words. A URL is a URI of STUN (RFC 7064) or TURN (RFC 7065), and TURN needs a
// credential or a secret.
func Parse(texts []string) ([]Server, error) {
	var servers []Server
	for i, text := range texts {
		server, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("%w %d: %w", ErrServer, i+1, err)
		}
		servers = append(servers, server)
	}
	return servers, nil
}

func parse(text string) (Server, error) {
	var s Server
	relays := false
	for word := range strings.FieldsSeq(text) {
		name, value, assigned := strings.Cut(word, "=")
		var field *string
		switch {
		case !assigned || strings.ContainsAny(name, ":?"):
			url, err := stun.ParseURI(word)
			if err != nil {
				return s, fmt.Errorf("URL %q: %w, expected %s", word, err, form)
			}
			relays = relays || url.Scheme == stun.SchemeTypeTURN || url.Scheme == stun.SchemeTypeTURNS
			s.urls = append(s.urls, word)
			continue
		case name == "username":
			field = &s.username
		case name == "credential":
			field = &s.credential
		case name == "secret":
			field = &s.secret
		default:
			return s, fmt.Errorf("%q is not known, expected %s", name, form)
		}
		if value == "" || *field != "" {
			return s, fmt.Errorf("%s is empty or occurs twice, expected %s", name, form)
		}
		*field = value
	}
	fixed := s.username != "" && s.credential != ""
	switch {
	case len(s.urls) == 0:
		return s, fmt.Errorf("there is no URL, expected %s", form)
	case (s.username != "" || s.credential != "") && (!fixed || s.secret != ""):
		return s, fmt.Errorf("%s: expected username and credential, or secret alone", s.urls[0])
	case relays && !fixed && s.secret == "":
		return s, fmt.Errorf("%s: a TURN server needs username and credential, or secret", s.urls[0])
	}
	return s, nil
}

// For returns the server for a session's client. If the server has a shared secret, the credential is valid until
// CredentialLife from now (draft-uberti-behave-turn-rest-00, section 2.2): the user name is the time of expiry in
// seconds since 1970 and the session, the credential is the HMAC-SHA1 of the user name.
func (s Server) For(session string, now time.Time) signal.ICEServer {
	server := signal.ICEServer{URLs: s.urls, Username: s.username, Credential: s.credential}
	if s.secret != "" {
		server.Username = strconv.FormatInt(now.Add(CredentialLife).Unix(), 10) + ":" + session
		mac := hmac.New(sha1.New, []byte(s.secret))
		mac.Write([]byte(server.Username))
		server.Credential = base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return server
}

// URLs returns the URLs of the server.
func (s Server) URLs() []string { return s.urls }
