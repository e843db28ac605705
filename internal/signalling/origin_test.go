package signalling

import "testing"

func TestOrigins(t *testing.T) {
	const host = "sfu.example.org:8080"
	tests := []struct {
		name     string
		origin   string
		allowed  []string
		loopback bool
		want     bool
	}{
		{"a client that is no browser", "", nil, false, true},
		{"a page of this server", "https://sfu.example.org:8080", nil, false, true},
		{"a page of another port", "https://sfu.example.org:9090", nil, false, false},
		{"a foreign page", "https://evil.example", nil, false, false},
		{"a configured page", "https://app.example.org", []string{"https://app.example.org"}, false, true},
		{"a configured page by another scheme", "http://app.example.org", []string{"https://app.example.org"}, false, false},
		{"a host that begins like a configured one", "https://app.example.org.evil.example", []string{"https://app.example.org"}, false, false},
		{"every page", "https://evil.example", []string{"*"}, false, true},
		{"a local page in development", "http://localhost:5173", nil, true, true},
		{"a local page by address", "http://127.0.0.1:5173", nil, true, true},
		{"a local page by IPv6 address", "http://[::1]:5173", nil, true, true},
		{"a local page in operation", "http://localhost:5173", nil, false, false},
		{"a host that begins like a local one", "http://localhost.evil.example", nil, true, false},
		{"a page of no origin, such as a file or a sandbox", "null", nil, true, false},
		{"what is no URL", "http://%zz", nil, true, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := originAllowed(test.origin, host, test.allowed, test.loopback); got != test.want {
				t.Errorf("origin %q: allowed is %v, expected %v", test.origin, got, test.want)
			}
		})
	}
}
