package signalling

import (
	"net/netip"
	"strings"
	"testing"
)

// FuzzOrigin checks that a page may connect if its host is the host of the request and, if names prove nothing, the
// host is a loopback name or an address. An origin with an allowed origin as its prefix is a different origin.
func FuzzOrigin(f *testing.F) {
	for _, origin := range []string{
		"https://sfu.example.org:8080", "https://app.example.org", "http://localhost:5173", "http://[::1]:80",
		"http://lab.localhost", "null", "", "https://a@b", "https://a/b", "https:a", "//a",
		"http://%zz", "http://[fe80::1%25e]:1",
	} {
		for _, host := range []string{"sfu.example.org:8080", "localhost:8080", "[::1]:80", "a", ""} {
			f.Add(origin, host)
		}
	}
	const configured, foreign = "https://app.example.org", ".evil.example"
	operation := Pages{Allowed: []string{configured}}
	development := Pages{Allowed: []string{configured}, Local: true, Rebound: true}
	f.Fuzz(func(t *testing.T, origin, host string) {
		for _, p := range []Pages{operation, development} {
			if !p.May("", host) || !p.May(configured, host) {
				t.Fatalf("%+v at host %q refuses a client that is no browser, or a configured page", p, host)
			}
			for _, other := range []string{configured + foreign, "https://" + host + foreign, "https://evil.example"} {
				if isHost(host) && !strings.HasSuffix(host, foreign[1:]) && p.May(other, host) {
					t.Fatalf("%+v at host %q admits %q", p, host, other)
				}
			}
			if origin == "" || origin == configured || strings.Contains(origin, "%") || !p.May(origin, host) {
				continue
			}
			authority := authorityOf(origin)
			if authority != host && !(p.Local && isLoopback(authority)) {
				t.Fatalf("%+v at host %q admits %q", p, host, origin)
			}
			if p.Rebound && !isLoopback(authority) && !isAddress(authority) {
				t.Fatalf("%+v at host %q admits %q, whose name may have been resolved to this host", p, host, origin)
			}
		}
		for _, name := range []string{"localhost" + foreign, "127.0.0.1" + foreign, host + foreign} {
			if isHost(name) && development.May("http://"+name, name) {
				t.Fatalf("the page of %q is admitted, whose name may have been resolved to this host", name)
			}
		}
		if isHost(host) && !operation.May("https://"+host, host) {
			t.Fatalf("host %q refuses its own page", host)
		}
	})
}

// isHost reports whether a text is a name in lower case, as browsers send it in Host.
func isHost(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") == ""
}

// authorityOf returns the host and port in the text of an origin.
func authorityOf(origin string) string {
	_, rest, _ := strings.Cut(origin, "//")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return rest[strings.LastIndex(rest, "@")+1:]
}

// nameIn returns a host without port and brackets.
func nameIn(authority string) string {
	colon := strings.LastIndex(authority, ":")
	if bracketed := strings.HasPrefix(authority, "["); colon > strings.LastIndex(authority, "]") &&
		(bracketed || strings.Count(authority, ":") == 1) {
		authority = authority[:colon]
	}
	return strings.Trim(authority, "[]")
}

func isLoopback(authority string) bool {
	name := nameIn(authority)
	address, err := netip.ParseAddr(name)
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || err == nil && address.IsLoopback()
}

func isAddress(authority string) bool {
	_, err := netip.ParseAddr(nameIn(authority))
	return err == nil
}
