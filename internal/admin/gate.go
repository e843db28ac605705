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
	return slices.Contains([]string{"localhost", "127.0.0.1", "::1", "[::1]"}, withoutPort(host))
}

// withoutPort is the name or address of a Host header.
func withoutPort(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}

// browsers keeps pages of other servers from the operators' listener, which asks for no token. A page reaches the
// listener through the browser of somebody who may: by naming the listener's address, or by having the page's own name
// resolved to that address (DNS rebinding). Requests of programs, such as Prometheus and probes, pass under every name.
type browsers struct {
	// hosts are the names under which browsers may open the listener, beside addresses, localhost and names without a
	// dot.
	hosts []string
}

// guard makes a handler that serves what the inner handler does, but refuses requests of pages of other servers.
func (b browsers) guard(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := b.check(r); err != nil {
			answer(w, http.StatusForbidden, err.Error())
			return
		}
		inner.ServeHTTP(w, r)
	})
}

// check gives an error around ErrForbidden for a request that a page of another server makes.
func (b browsers) check(r *http.Request) error {
	if err := ownOrigin(r); err != nil {
		return err
	}
	// What a page loads, as an image or a frame, has no Origin, but the metadata of Fetch where the listener is at a
	// loopback address or has TLS. Following a link is harmless: the page that has the link does not see the answer.
	site := r.Header.Get("Sec-Fetch-Site")
	follows := r.Method == http.MethodGet &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	if site != "" && site != "same-origin" && site != "none" && !follows {
		return fmt.Errorf("%w: the request comes from a page of another server (Sec-Fetch-Site is %q)", ErrForbidden, site)
	}
	if ofBrowser(r) && !b.known(r.Host) {
		return fmt.Errorf("%w: a browser asks for host %q, expected an address, localhost, or a name of admin.allowed_hosts",
			ErrForbidden, r.Host)
	}
	return nil
}

// known reports whether no other server has a page under the host: it is an address, a name that browsers resolve
// themselves (RFC 6761, section 6.3), a name without a dot, which has no public registry, or a configured name.
func (b browsers) known(host string) bool {
	name := strings.ToLower(strings.TrimSuffix(withoutPort(host), "."))
	_, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return err == nil || !strings.Contains(name, ".") || strings.HasSuffix(name, ".localhost") ||
		slices.ContainsFunc(b.hosts, func(allowed string) bool { return strings.EqualFold(allowed, name) })
}

// ofBrowser reports whether a browser makes the request. Browsers send Accept-Language, and those that know Fetch's
// metadata send them to loopback addresses; a page cannot remove either.
func ofBrowser(r *http.Request) bool {
	for _, name := range []string{"Accept-Language", "Origin", "Sec-Fetch-Mode", "Sec-Fetch-Site"} {
		if _, present := r.Header[name]; present {
			return true
		}
	}
	return strings.HasPrefix(r.UserAgent(), "Mozilla/")
}
