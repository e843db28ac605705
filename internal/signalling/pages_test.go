package signalling

import "testing"

func TestOrigins(t *testing.T) {
	const host = "sfu.example.org:8080"
	operation := func(allowed ...string) Pages { return Pages{Allowed: allowed} }
	development := func(allowed ...string) Pages { return Pages{Allowed: allowed, Local: true, Rebound: true} }
	open := Pages{Local: true}
	tests := []struct {
		name   string
		pages  Pages
		host   string
		origin string
		want   bool
	}{
		{"a client that is no browser", operation(), host, "", true},
		{"a page of this server", operation(), host, "https://sfu.example.org:8080", true},
		{"a page of another port", operation(), host, "https://sfu.example.org:9090", false},
		{"a foreign page", operation(), host, "https://evil.example", false},
		{"a configured page", operation("https://app.example.org"), host, "https://app.example.org", true},
		{"a configured page by another scheme", operation("https://app.example.org"), host, "http://app.example.org",
			false},
		{"a host that begins like a configured one", operation("https://app.example.org"), host,
			"https://app.example.org.evil.example", false},
		{"every page", operation("*"), host, "https://evil.example", true},
		{"a local page in operation", operation(), host, "http://localhost:5173", false},
		{"a local page in development", development(), "localhost:8080", "http://localhost:5173", true},
		{"a local page by address", development(), "localhost:8080", "http://127.0.0.1:5173", true},
		{"a local page by IPv6 address", development(), "localhost:8080", "http://[::1]:5173", true},
		{"a page of this server in development", development(), "127.0.0.1:8080", "http://127.0.0.1:8080", true},
		{"a page of this server by a local name", development(), "lab.localhost:8080", "http://lab.localhost:8080",
			true},
		{"a page of this server by IPv6 address", development(), "[::1]:8080", "http://[::1]:8080", true},
		{"a page of this server without a port", development(), "[::1]", "http://[::1]", true},
		{"a page whose name was resolved to this host", development(), "evil.example:8080", "http://evil.example:8080",
			false},
		{"a page whose name was resolved to this host, without a port", development(), "evil.example",
			"http://evil.example", false},
		{"a configured name of this host", development("http://sfu.lan:8080"), "sfu.lan:8080", "http://sfu.lan:8080",
			true},
		{"a client that is no browser and has a name for this host", development(), "sfu.lan:8080", "", true},
		{"a host that begins like a local one", development(), "localhost:8080", "http://localhost.evil.example",
			false},
		{"a page of no origin, such as a file or a sandbox", development(), "localhost:8080", "null", false},
		{"an invalid URL", development(), "localhost:8080", "http://%zz", false},
		{"no host at all", development(), "", "null", false},
		{"an origin that is this server's, without tokens", open, host, "http://sfu.example.org:8080",
			true},
		{"a foreign page without tokens", open, host, "https://evil.example", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := test.pages.May(test.origin, test.host); got != test.want {
				t.Errorf("origin %q at host %q: allowed is %v, expected %v", test.origin, test.host, got, test.want)
			}
		})
	}
}
