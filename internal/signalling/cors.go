package signalling

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/volsfu/volsfu/pkg/signal"
)

// corsAge is the time in seconds for which browsers remember an answer to a preflight. Chromium's maximum is two hours;
// a page that an operator has removed from the allowed origins is refused by the requests themselves.
const corsAge = "7200"

// Share lets pages of the allowed origins use an HTTP handler with the given methods (CORS, Fetch Standard, section
// 3.2), and refuses pages of other origins. Requests are authenticated by tokens, not by cookies, so that answers allow
// no credentials. The server's own pages and clients other than browsers need no permission.
func (p Pages) Share(inner http.Handler, methods ...string) http.Handler {
	allowed := strings.Join(methods, ", ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		// Also without an Origin: a cache must not answer a page with an answer that allows no page.
		header.Add("Vary", "Origin")
		origin := r.Header.Get("Origin")
		if !p.May(origin, r.Host) {
			text := fmt.Sprintf("%s: pages of %.200q may not connect (signalling.allowed_origins)",
				signal.CodeForbidden, origin)
			http.Error(w, text, http.StatusForbidden)
			return
		}
		if origin != "" {
			header.Set("Access-Control-Allow-Origin", origin)
			header.Set("Access-Control-Expose-Headers", "ETag, Link, Location, Retry-After")
		}
		switch {
		case r.Method == http.MethodOptions && origin != "" && r.Header.Get("Access-Control-Request-Method") != "":
			header.Set("Access-Control-Allow-Methods", allowed)
			header.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, If-Match, If-None-Match")
			header.Set("Access-Control-Max-Age", corsAge)
			w.WriteHeader(http.StatusNoContent)
		case !slices.Contains(methods, r.Method) && r.Method != http.MethodHead:
			header.Set("Allow", allowed)
			http.Error(w, fmt.Sprintf("the method is %.20q, expected %s", r.Method, allowed),
				http.StatusMethodNotAllowed)
		default:
			inner.ServeHTTP(w, r)
		}
	})
}

// checkOrigin returns an error if a configured origin is not of the form in which browsers send origins, or *.
func checkOrigin(origin string) error {
	if origin == "*" {
		return nil
	}
	u, err := url.Parse(origin)
	// An origin is part of a header (Content-Security-Policy), in which commas, semicolons and spaces separate.
	if err != nil || u.Scheme == "" || u.Hostname() == "" || origin != u.Scheme+"://"+u.Host ||
		strings.HasSuffix(origin, ":") || origin != strings.ToLower(origin) || strings.ContainsAny(origin, "*,; '\"") {
		return fmt.Errorf("%w: allowed_origins has %q, expected https://host[:port] in lower case, without a path, "+
			"or *", ErrConfig, origin)
	}
	return nil
}
