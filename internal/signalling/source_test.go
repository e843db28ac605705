package signalling

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

// requestFrom returns a request of a peer with lines of a header.
func requestFrom(peer, header string, lines ...string) *http.Request {
	return &http.Request{RemoteAddr: peer, Header: http.Header{header: lines}}
}

func TestSourceOfRequest(t *testing.T) {
	const xff, forwarded = headerXForwardedFor, headerForwarded
	for _, test := range []struct {
		name, header, peer string
		lines              []string
		want               string
	}{
		{"no proxy", xff, "203.0.113.9:1", nil, "203.0.113.9"},
		{"no proxy, IPv4 within IPv6", xff, "[::ffff:203.0.113.9]:1", nil, "203.0.113.9"},
		{"a forged header of an untrusted peer", xff, "203.0.113.9:1", []string{"198.51.100.7"}, "203.0.113.9"},
		{"a proxy's own request", xff, "10.0.0.1:1", nil, "10.0.0.1"},
		{"of a proxy", xff, "10.0.0.1:1", []string{"198.51.100.7"}, "198.51.100.7"},
		{"of a proxy over IPv6", xff, "[2001:db8::1]:1", []string{"2001:db8:1::7"}, "2001:db8:1::7"},
		{"of two proxies", xff, "10.0.0.1:1", []string{"198.51.100.7, 10.0.0.2"}, "198.51.100.7"},
		{"on two lines", xff, "10.0.0.1:1", []string{"198.51.100.7", "10.0.0.2"}, "198.51.100.7"},
		{"what the client has invented", xff, "10.0.0.1:1", []string{"127.0.0.1, nonsense, 10.0.0.9, 198.51.100.7"},
			"198.51.100.7"},
		{"of a client beside the proxies", xff, "10.0.0.1:1", []string{"10.0.0.7"}, "10.0.0.7"},
		{"with a port", xff, "10.0.0.1:1", []string{"198.51.100.7:4711"}, "198.51.100.7"},
		{"with a port, over IPv6", xff, "10.0.0.1:1", []string{"[2001:db8:1::7]:4711"}, "2001:db8:1::7"},
		{"in brackets", xff, "10.0.0.1:1", []string{"[2001:db8:1::7]"}, "2001:db8:1::7"},
		{"no address", xff, "10.0.0.1:1", []string{"unknown"}, ""},
		{"an empty one", xff, "10.0.0.1:1", []string{"198.51.100.7, "}, ""},
		{"IPv4 in brackets", xff, "10.0.0.1:1", []string{"[198.51.100.7]"}, ""},
		{"a long one", xff, "10.0.0.1:1", []string{strings.Repeat("1.1.1.1,", maxForwarded/8) + "198.51.100.7"}, ""},
		{"proxies without end", xff, "10.0.0.1:1", []string{strings.Repeat("10.0.0.1,", maxHops) + "10.0.0.1"}, ""},
		{"the other header", forwarded, "10.0.0.1:1", []string{"for=198.51.100.7"}, "198.51.100.7"},
		{"of two proxies", forwarded, "10.0.0.1:1",
			[]string{`for=198.51.100.7;proto=https;by=10.0.0.2, For="10.0.0.2:81"; host="a,b;c"`}, "198.51.100.7"},
		{"over IPv6", forwarded, "10.0.0.1:1", []string{`proto=https ; for="[2001:db8:1::7]:4711"`}, "2001:db8:1::7"},
		{"with a quoted pair", forwarded, "10.0.0.1:1", []string{`for="198.51.100.\7"`}, "198.51.100.7"},
		{"a hidden one", forwarded, "10.0.0.1:1", []string{"for=_hidden"}, ""},
		{"no address", forwarded, "10.0.0.1:1", []string{"proto=https"}, ""},
		{"the last element without an address", forwarded, "10.0.0.1:1", []string{"for=198.51.100.7, proto=https"}, ""},
		{"two", forwarded, "10.0.0.1:1", []string{"for=198.51.100.7;for=10.0.0.1"}, ""},
		{"a string without an end", forwarded, "10.0.0.1:1", []string{`for="198.51.100.7`}, ""},
		{"a name without a value", forwarded, "10.0.0.1:1", []string{"for"}, ""},
		{"an address that is no token", forwarded, "10.0.0.1:1", []string{"for=[2001:db8:1::7]"}, ""},
		{"nothing behind a comma", forwarded, "10.0.0.1:1", []string{"for=198.51.100.7,"}, ""},
	} {
		s, err := newSources([]string{"10.0.0.0/8", "2001:db8::1"}, test.header)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.of(requestFrom(test.peer, test.header, test.lines...))
		switch {
		case test.want == "" && !errors.Is(err, errForwarded):
			t.Errorf("%s: got %v and %v, expected an error", test.name, got, err)
		case test.want != "" && (err != nil || got != netip.MustParseAddr(test.want)):
			t.Errorf("%s: got %v and %v, expected %s", test.name, got, err, test.want)
		}
	}
	s, err := newSources(nil, "x-forwarded-for")
	if err != nil {
		t.Fatal(err)
	}
	for _, peer := range []string{"@", ""} {
		if got, err := s.of(requestFrom(peer, headerXForwardedFor)); err != nil || got.IsValid() {
			t.Errorf("a peer without an address: got %v and %v", got, err)
		}
	}
}

// FuzzSource checks that any header yields an address or an error, and that the last address named by a trusted proxy
// counts.
func FuzzSource(f *testing.F) {
	for _, text := range []string{
		"198.51.100.7", "a, 10.0.0.2", "[2001:db8::7]:1", `for="[2001:db8::7]:1";by=x, for=10.0.0.1`, `for="\"`,
		"for=;", ",", "", "for=1.1.1.1;for=2.2.2.2",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, header := range []string{headerXForwardedFor, headerForwarded} {
			s, err := newSources([]string{"10.0.0.0/8"}, header)
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.of(requestFrom("10.0.0.1:1", header, text))
			if err != nil {
				if !errors.Is(err, errForwarded) {
					t.Errorf("%s %q: %v", header, text, err)
				}
				continue
			}
			if !got.IsValid() || got.Is4In6() || got.Zone() != "" {
				t.Errorf("%s %q: from %v", header, text, got)
			}
			behind := map[string]string{headerXForwardedFor: "203.0.113.9", headerForwarded: "for=203.0.113.9"}[header]
			if got, err := s.of(requestFrom("10.0.0.1:1", header, text, behind)); err == nil &&
				got != netip.MustParseAddr("203.0.113.9") {
				t.Errorf("%s %q: with an earlier forged value the address is %v", header, text, got)
			}
		}
	})
}
