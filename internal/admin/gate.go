package admin

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Loopback admits requests from this host, without a token. Pages of other servers may send requests through a browser
// on this host: requests for another host name, or with the origin of another server, are refused.
type Loopback struct{}

// Admit implements Gate.
func (Loopback) Admit(r *http.Request) error {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !peer.Addr().Unmap().IsLoopback() {
		return fmt.Errorf("%w: this listener answers on loopback only; elsewhere a token with the admin grant is "+
			"needed, on the clients' listener", ErrForbidden)
	}
	if !loopbackHost(r.Host) {
		return fmt.Errorf("%w: the request is for host %q, expected a loopback address", ErrForbidden, r.Host)
	}
	return ownOrigin(r)
}

// ownOrigin refuses requests from pages of other servers.
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
	return slices.Contains([]string{"localhost", "127.0.0.1", "::1", "[::1]"}, withoutPort(host))
}

// withoutPort returns the name or address of a Host header.
func withoutPort(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}

// browsers blocks pages of other servers from the operators' listener, which needs no token. A page can reach the
// listener through the browser of a user with access: by the listener's address, or by resolving the page's own name to
// that address (DNS rebinding). Requests of programs, such as Prometheus and probes, are admitted under every name.
type browsers struct {
	// hosts are the names under which browsers may open the listener, in addition to addresses, localhost and names
	// without a dot.
	hosts []string
}

// guard returns a handler that refuses requests from pages of other servers and passes all others to the inner handler.
func (b browsers) guard(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := b.check(r); err != nil {
			answer(w, http.StatusForbidden, err.Error())
			return
		}
		inner.ServeHTTP(w, r)
	})
}

// check returns an error that wraps ErrForbidden if a page of another server made the request.
func (b browsers) check(r *http.Request) error {
	if err := ownOrigin(r); err != nil {
		return err
	}
	// Resources of a page, such as images or frames, have no Origin, but Fetch metadata if the listener is at a
	// loopback address or has TLS. Following a link is harmless: the page with the link cannot read the answer.
	site := r.Header.Get("Sec-Fetch-Site")
	follows := r.Method == http.MethodGet &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	if site != "" && site != "same-origin" && site != "none" && !follows {
		return fmt.Errorf("%w: the request comes from a page of another server (Sec-Fetch-Site is %q)",
			ErrForbidden, site)
	}
	if ofBrowser(r) && !b.known(r.Host) {
		return fmt.Errorf("%w: a browser asks for host %q, expected an address, localhost, or a name of "+
			"admin.allowed_hosts",
			ErrForbidden, r.Host)
	}
	return nil
}

// known reports whether no other server can have a page under the host: an address, a name that browsers resolve
// themselves (RFC 6761, section 6.3), a name without a dot, which has no public registry, or a configured name.
func (b browsers) known(host string) bool {
	name := strings.ToLower(strings.TrimSuffix(withoutPort(host), "."))
	_, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return err == nil || !strings.Contains(name, ".") || strings.HasSuffix(name, ".localhost") ||
		slices.ContainsFunc(b.hosts, func(allowed string) bool { return strings.EqualFold(allowed, name) })
}

// ofBrowser reports whether a browser made the request. Browsers send Accept-Language, and Fetch metadata to loopback
// addresses; a page cannot remove either.
func ofBrowser(r *http.Request) bool {
	for _, name := range []string{"Accept-Language", "Origin", "Sec-Fetch-Mode", "Sec-Fetch-Site"} {
		if _, present := r.Header[name]; present {
			return true
		}
	}
	return strings.HasPrefix(r.UserAgent(), "Mozilla/")
}
