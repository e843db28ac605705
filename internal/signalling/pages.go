package signalling

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Pages describes the web pages that may connect. Clients other than browsers send no origin.
type Pages struct {
	// Allowed lists origins in the form https://host[:port]; * allows every origin.
	Allowed []string
	// Local allows every page of this host, on any port.
	Local bool
	// Rebound is set if a host name in a request proves nothing. If the server asks for no token on loopback, a page
	// from elsewhere could resolve its own name to this host, and its browser would treat the page as a page of this
	// server (DNS rebinding).
	Rebound bool
}

// May reports whether a page of the origin may connect to a server with the given Host header. The server's own pages
// and configured pages may connect.
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

// trusts reports whether the value of a Host header is a name that a third party cannot resolve to this server: an
// address, or localhost, which browsers resolve themselves (RFC 6761, section 6.3).
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
