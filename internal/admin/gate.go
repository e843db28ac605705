package admin

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
)

// Loopback admits who asks from this host, without a token. Browsers on this host might ask for pages of others: requests that name another host, or come from a page
// of another, are refused.
type Loopback struct{}

// Admit implements Gate.
func (Loopback) Admit(r *http.Request) error {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !peer.Addr().Unmap().IsLoopback() {
		return fmt.Errorf("%w: this listener answers on loopback only; elsewhere a token with the admin grant is needed, on the clients' listener", ErrForbidden)
	}
	if !loopbackHost(r.Host) {
		return fmt.Errorf("%w: the request is for host %q, expected a loopback address", ErrForbidden, r.Host)
	}
	return ownOrigin(r)
}

// ownOrigin refuses requests of pages of other servers.
func ownOrigin(r *http.Request) error {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return nil
	}
	if u, err := url.Parse(origin); err != nil || u.Host != r.Host {
		return fmt.Errorf("%w: the request comes from a page of %q", ErrForbidden, origin)
	}
	return nil
}

func loopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return slices.Contains([]string{"localhost", "127.0.0.1", "::1", "[::1]"}, host)
}
