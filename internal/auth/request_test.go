package auth

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestTokenFromRequest(t *testing.T) {
	for _, test := range []struct {
		name    string
		headers []string
		query   string
		want    string
		err     error
	}{
		{"header", []string{"Bearer abc.def.ghi"}, "", "abc.def.ghi", nil},
		{"letter case of the scheme", []string{"bearer abc"}, "", "abc", nil},
		{"spaces", []string{"Bearer   abc "}, "", "abc", nil},
		{"query", nil, "a=1&access_token=abc.def.ghi", "abc.def.ghi", nil},
		{"escaped query", nil, "access%5Ftoken=a%2Eb", "a.b", nil},
		{"none", nil, "", "", ErrNoToken},
		{"other parameters", nil, "token=abc", "", ErrNoToken},
		{"empty header", []string{"Bearer "}, "", "", ErrNoToken},
		{"scheme only", []string{"Bearer"}, "", "", ErrNoToken},
		{"empty parameter", nil, "access_token=", "", ErrNoToken},
		{"another scheme", []string{"Basic YTpi"}, "", "", ErrMalformed},
		{"both", []string{"Bearer abc"}, "access_token=abc", "", ErrSeveralTokens},
		{"two headers", []string{"Bearer abc", "Bearer abc"}, "", "", ErrSeveralTokens},
		{"two parameters", nil, "access_token=abc&access_token=abc", "", ErrSeveralTokens},
		{"broken query", nil, "access_token=%zz", "", ErrMalformed},
		{"semicolon", nil, "a=1;access_token=abc", "", ErrMalformed},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := &http.Request{URL: &url.URL{Path: "/v1/signal", RawQuery: test.query}, Header: http.Header{}}
			for _, value := range test.headers {
				r.Header.Add("Authorization", value)
			}
			got, err := TokenFromRequest(r)
			if got != test.want || !errors.Is(err, test.err) {
				t.Errorf("got %q, %v, expected %q, %v", got, err, test.want, test.err)
			}
		})
	}
}

func TestRedactURL(t *testing.T) {
	for in, want := range map[string]string{
		"/v1/signal":                                     "/v1/signal",
		"/v1/signal?a=1&b=2":                             "/v1/signal?a=1&b=2",
		"/v1/signal?access_token=secret":                 "/v1/signal?access_token=REDACTED",
		"/v1/signal?a=1&access_token=secret&b=2":         "/v1/signal?a=1&access_token=REDACTED&b=2",
		"/v1/signal?access%5Ftoken=secret":               "/v1/signal?access_token=REDACTED",
		"/v1/signal?Access_Token=secret":                 "/v1/signal?access_token=REDACTED",
		"/v1/signal?access_token=secret&access_token=s2": "/v1/signal?access_token=REDACTED&access_token=REDACTED",
		"/v1/signal?a=1;access_token=secret&b=2":         "/v1/signal?REDACTED&b=2",
		"/v1/signal?%zz=secret":                          "/v1/signal?REDACTED",
		"ws://ada:secret@host:8080/x?access_token=s":     "ws://ada:xxxxx@host:8080/x?access_token=REDACTED",
	} {
		u, err := url.Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		before := u.String()
		if got := RedactURL(u); got != want {
			t.Errorf("%s: got %s, expected %s", in, got, want)
		}
		if u.String() != before {
			t.Errorf("%s: the URL was changed to %s", in, u)
		}
	}
}

// FuzzToken: the token found in a request does not appear in the redacted URL.
func FuzzToken(f *testing.F) {
	f.Add("", "a=1&access_token=abc.def")
	f.Add("Bearer abc.def", "")
	f.Add("Basic abc", "access%5Ftoken=x")
	f.Add("", "a;access_token=abc")
	f.Fuzz(func(t *testing.T, header, query string) {
		r := &http.Request{URL: &url.URL{Path: "/", RawQuery: query}, Header: http.Header{}}
		if header != "" {
			r.Header.Set("Authorization", header)
		}
		token, err := TokenFromRequest(r)
		if (token == "") != (err != nil) {
			t.Errorf("got %q, %v", token, err)
		}
		clean := redactQuery(query)
		// Malformed pairs are not among the values; the others are, also with an error.
		values, _ := url.ParseQuery(clean)
		for _, value := range values[queryKey] {
			if value != redacted {
				t.Errorf("%q is redacted to %q", query, clean)
			}
		}
		if header == "" && len(token) > len("access_token=REDACTED&") && !strings.Contains(removeToken(query), token) &&
			strings.Contains(clean, token) {
			t.Errorf("%q is redacted to %q, which contains the token", query, clean)
		}
	})
}

// removeToken removes the parameter's own pairs, so that the rest shows whether the token appears elsewhere, too.
func removeToken(query string) string {
	var kept []string
	for pair := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(pair, "=")
		if unescaped, err := url.QueryUnescape(name); err == nil && !strings.EqualFold(unescaped, queryKey) {
			kept = append(kept, pair)
		}
	}
	return strings.Join(kept, "&")
}
