package signalling

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const appOrigin = "https://app.example.org"

// shared returns a handler that an application's page may use, and that records whether it was called.
func shared(pages Pages, called *bool) http.Handler {
	return pages.Share(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		*called = true
		_, _ = io.WriteString(w, "secret")
	}), http.MethodGet, http.MethodDelete)
}

// TestShare: allowed pages may read answers, hostile pages reach nothing, and no answer allows cookies.
func TestShare(t *testing.T) {
	operation := Pages{Allowed: []string{appOrigin}}
	for _, test := range []struct {
		name    string
		pages   Pages
		method  string
		origin  string
		asks    string
		status  int
		called  bool
		allowed string
	}{
		{"a program", operation, "GET", "", "", 200, true, ""},
		{"the allowed page", operation, "GET", appOrigin, "", 200, true, appOrigin},
		{"the allowed page, deleting", operation, "DELETE", appOrigin, "", 200, true, appOrigin},
		{"a preflight of the allowed page", operation, "OPTIONS", appOrigin, "DELETE", 204, false, appOrigin},
		{"the server's own page", operation, "DELETE", "https://sfu.example.org", "", 200, true,
			"https://sfu.example.org"},
		{"every page", Pages{Allowed: []string{"*"}}, "GET", "https://any.example", "", 200, true,
			"https://any.example"},
		{"a local page in development", Pages{Local: true}, "GET", "http://localhost:5173", "", 200, true,
			"http://localhost:5173"},
		{"another method", operation, "POST", appOrigin, "", 405, false, appOrigin},
		{"OPTIONS of a program", operation, "OPTIONS", "", "", 405, false, ""},
		{"OPTIONS that is no preflight", operation, "OPTIONS", appOrigin, "", 405, false, appOrigin},
		{"a hostile page", operation, "GET", "https://evil.example", "", 403, false, ""},
		{"a hostile preflight", operation, "OPTIONS", "https://evil.example", "DELETE", 403, false, ""},
		{"a hostile page, deleting", operation, "DELETE", "https://evil.example", "", 403, false, ""},
		{"the allowed host by another scheme", operation, "GET", "http://app.example.org", "", 403, false, ""},
		{"the allowed host by another port", operation, "GET", appOrigin + ":8443", "", 403, false, ""},
		{"a name that begins like the allowed one", operation, "GET", appOrigin + ".evil.example", "", 403, false, ""},
		{"a name that ends like the allowed one", operation, "GET", "https://evilapp.example.org", "", 403, false, ""},
		{"a subdomain", operation, "GET", "https://x.app.example.org", "", 403, false, ""},
		{"the allowed origin in upper case", operation, "GET", "HTTPS://APP.EXAMPLE.ORG", "", 403, false, ""},
		{"the allowed origin with a slash", operation, "GET", appOrigin + "/", "", 403, false, ""},
		{"two origins", operation, "GET", appOrigin + " https://evil.example", "", 403, false, ""},
		{"a sandbox or a file", operation, "GET", "null", "", 403, false, ""},
		{"a star", operation, "GET", "*", "", 403, false, ""},
		{"a user in the origin", operation, "GET", "https://app.example.org@evil.example", "", 403, false, ""},
		{"no pages", Pages{}, "GET", appOrigin, "", 403, false, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			called := false
			r := httptest.NewRequest(test.method, "/v1/rooms", nil)
			r.Host = "sfu.example.org"
			if test.origin != "" {
				r.Header.Set("Origin", test.origin)
			}
			if test.asks != "" {
				r.Header.Set("Access-Control-Request-Method", test.asks)
			}
			w := httptest.NewRecorder()
			shared(test.pages, &called).ServeHTTP(w, r)
			h := w.Header()
			if w.Code != test.status || called != test.called ||
				h.Get("Access-Control-Allow-Origin") != test.allowed {
				t.Errorf("status %d, called %t, allowed %q: expected %d, %t, %q", w.Code, called,
					h.Get("Access-Control-Allow-Origin"), test.status, test.called, test.allowed)
			}
			if h.Get("Access-Control-Allow-Credentials") != "" || h.Get("Vary") != "Origin" {
				t.Errorf("headers: %v", h)
			}
			if methods := h.Get("Access-Control-Allow-Methods"); (methods != "") != (w.Code == http.StatusNoContent) {
				t.Errorf("allowed methods are %q with status %d", methods, w.Code)
			}
			if !called && strings.Contains(w.Body.String(), "secret") {
				t.Error("a refused page reads the answer")
			}
		})
	}
}

func TestConfiguredOrigins(t *testing.T) {
	for origin, valid := range map[string]bool{
		"*": true, appOrigin: true, "http://localhost:5173": true, "https://[2001:db8::1]:8443": true,
		"capacitor://localhost": true,
		"":                      false, "null": false, "app.example.org": false, appOrigin + "/": false,
		appOrigin + "/x":          false,
		"https://App.example.org": false, "https://*.example.org": false, "https://a b": false, "https://": false,
		"https://a;script-src": false, "https://a,https://b": false, "https://a'": false, "https://u@a": false,
		"https://a?x": false, "https://a#x": false, "https://a:": false,
	} {
		config := DefaultConfig()
		config.AllowedOrigins = []string{origin}
		if err := config.Validate(); (err == nil) != valid || err != nil && !errors.Is(err, ErrConfig) {
			t.Errorf("%q: error is %v, expected valid: %t", origin, err, valid)
		}
	}
}
