package signalling

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Pages say which web pages may connect. Clients that are no browsers send no origin.
type Pages struct {
	// Allowed are origins, as https://host[:port]; * allows every one.
	Allowed []string
	// Local allows every page of this host, whatever its port.
	Local bool
	// Rebound says that a name in a request proves nothing: if no token is asked for on loopback, a page of anywhere
	// could have its own name resolved to this host, and would then be one of this server's own as far as its browser
	// can tell (DNS rebinding).
	Rebound bool
}

// May reports whether a page of the origin may connect to a server that it knows under that host: pages of this
// server itself, and those that are configured.
func (p Pages) May(origin, host string) bool {
	if origin == "" || slices.Contains(p.Allowed, "*") || slices.Contains(p.Allowed, origin) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	return u.Host == host && p.trusts(host) ||
		p.Local && slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, u.Hostname())
}

// trusts reports whether a host, as in HTTP's header of that name, is one that nobody else can have resolved to this
// server: an address, or the name that browsers resolve themselves (RFC 6761, section 6.3).
func (p Pages) trusts(host string) bool {
	if !p.Rebound {
		return true
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil || host == "localhost" || strings.HasSuffix(host, ".localhost")
}
