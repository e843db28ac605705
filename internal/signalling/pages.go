package signalling

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// pages says which web pages may connect. Clients that are no browsers send no origin.
type pages struct {
	// allowed are origins, as https://host[:port]; * allows every one.
	allowed []string
	// local allows every page of this host, whatever its port.
	local bool
	// rebound says that a name in a request proves nothing: where no token is asked for on loopback, a page of anywhere could have its own name resolved to this host,
	// and would then be one of this server's own as far as its browser can tell (DNS rebinding).
	rebound bool
}

// may tells whether a page of the origin may connect to a server that it knows under that host: pages of this server itself, and those that are configured.
func (p pages) may(origin, host string) bool {
	if origin == "" || slices.Contains(p.allowed, "*") || slices.Contains(p.allowed, origin) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	return u.Host == host && p.trusts(host) || p.local && slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, u.Hostname())
}

// trusts tells whether a host, as in HTTP's header of that name, is one that nobody else can have resolved to this server: an address, or the name that
// browsers resolve themselves (RFC 6761, section 6.3).
func (p pages) trusts(host string) bool {
	if !p.rebound {
		return true
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil || host == "localhost" || strings.HasSuffix(host, ".localhost")
}
