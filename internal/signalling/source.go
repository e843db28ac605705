package signalling

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
)

// The headers by which proxies say whom a request is from.
const (
	headerXForwardedFor = "X-Forwarded-For"
	headerForwarded     = "Forwarded"
)

// errForwarded says that a trusted proxy has passed on a header that cannot be read.
var errForwarded = errors.New("unreadable header of a proxy")

const (
	// maxForwarded bounds the header's bytes: some fifty hops of IPv6.
	maxForwarded = 4 << 10
	// maxHops is how many trusted proxies may stand in a row.
	maxHops = 16
)

// sources tells whom a request is from: the peer of its connection, or where that is a trusted proxy, whom the proxy
// names.
type sources struct {
	trusted []netip.Prefix
	header  string
}

// newSources reads which proxies are trusted, as addresses or prefixes.
func newSources(proxies []string, header string) (sources, error) {
	s := sources{header: http.CanonicalHeaderKey(header)}
	if s.header != headerXForwardedFor && s.header != headerForwarded {
		return s, fmt.Errorf("%w: proxy_header %q: expected %s or %s", ErrConfig, header, headerXForwardedFor, headerForwarded)
	}
	for _, text := range proxies {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			address, notOne := netip.ParseAddr(text)
			if notOne != nil || address.Zone() != "" {
				return s, fmt.Errorf("%w: trusted_proxies %q: expected an IP address or a prefix such as 10.0.0.0/8", ErrConfig, text)
			}
			prefix = netip.PrefixFrom(address.Unmap(), address.Unmap().BitLen())
		}
		if prefix.Addr().Is4In6() {
			return s, fmt.Errorf("%w: trusted_proxies %q: expected the prefix in the form of IPv4", ErrConfig, text)
		}
		s.trusted = append(s.trusted, prefix.Masked())
	}
	return s, nil
}

func (s *sources) trusts(a netip.Addr) bool {
	for _, prefix := range s.trusted {
		if prefix.Contains(a) {
			return true
		}
	}
	return false
}

// of gives the address that a request is from. Where it comes from a trusted proxy, that is the last one named in the
// header that is none: each proxy appends whom it has the request from, and what stands before may be anybody's
// invention. The error is around errForwarded.
func (s *sources) of(r *http.Request) (netip.Addr, error) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		// The connection is none of IP's. All of its kind count as one.
		return netip.Addr{}, nil
	}
	at := plain(peer.Addr())
	if !s.trusts(at) {
		return at, nil
	}
	lines := r.Header.Values(s.header)
	length := 0
	for _, line := range lines {
		length += len(line) + 1
	}
	if length > maxForwarded {
		return at, fmt.Errorf("%w: %s has more than %d bytes", errForwarded, s.header, maxForwarded)
	}
	if len(lines) == 0 {
		// It is the proxy's own, as one that looks whether the server is there.
		return at, nil
	}
	named, err := namedBy(s.header, strings.Join(lines, ","))
	if err != nil {
		return at, err
	}
	for hop := len(named) - 1; hop >= 0; hop-- {
		if len(named)-hop > maxHops {
			return at, fmt.Errorf("%w: %s names more than %d trusted proxies", errForwarded, s.header, maxHops)
		}
		if at, err = nodeAddress(named[hop]); err != nil {
			return at, fmt.Errorf("%s: %w", s.header, err)
		}
		if !s.trusts(at) {
			break
		}
	}
	return at, nil
}

// namedBy gives the nodes of a header, the last one last, as they are written.
func namedBy(header, text string) ([]string, error) {
	if header == headerForwarded {
		return forwardedFor(text)
	}
	named := strings.Split(text, ",")
	for i, name := range named {
		named[i] = strings.Trim(name, " \t")
	}
	return named, nil
}

// forwardedFor gives the nodes of the parameters "for" of a header Forwarded (RFC 7239, section 4), one for each
// element.
func forwardedFor(text string) ([]string, error) {
	var named []string
	node, found := "", false
	for {
		name, rest, _ := strings.Cut(text, "=")
		value, rest, ok := forwardedValue(rest)
		if name = strings.Trim(name, " \t"); !ok || !isToken(name) {
			return nil, fmt.Errorf("%w: %s: expected pairs of a name and a value", errForwarded, headerForwarded)
		}
		if strings.EqualFold(name, "for") {
			if found {
				return nil, fmt.Errorf("%w: %s names two nodes for one proxy", errForwarded, headerForwarded)
			}
			node, found = value, true
		}
		rest = strings.TrimLeft(rest, " \t")
		if rest == "" || rest[0] == ',' {
			if !found {
				return nil, fmt.Errorf("%w: %s does not name whom a proxy has the request from", errForwarded, headerForwarded)
			}
			named, node, found = append(named, node), "", false
		}
		switch {
		case rest == "":
			return named, nil
		case rest[0] != ',' && rest[0] != ';':
			return nil, fmt.Errorf("%w: %s: expected a comma or a semicolon behind a value", errForwarded, headerForwarded)
		}
		text = rest[1:]
	}
}

// forwardedValue takes a token or a quoted string (RFC 9110, section 5.6) off the beginning of a text.
func forwardedValue(text string) (value, rest string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		end := strings.IndexFunc(text, func(r rune) bool { return !isTokenRune(r) })
		if end < 0 {
			end = len(text)
		}
		return text[:end], text[end:], end > 0
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '"':
			return b.String(), text[i+1:], true
		case '\\':
			if i++; i == len(text) {
				return "", "", false
			}
		}
		b.WriteByte(text[i])
	}
	return "", "", false
}

func isToken(text string) bool {
	return text != "" && strings.IndexFunc(text, func(r rune) bool { return !isTokenRune(r) }) < 0
}

// isTokenRune takes what tokens are made of (RFC 9110, section 5.6.2).
func isTokenRune(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r < 128 && strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// nodeAddress reads an address, with or without a port, that of IPv6 in brackets where there is one (RFC 7239,
// section 6). Names that hide an address are an error: whoever trusts a proxy that hides its clients cannot tell them
// apart.
func nodeAddress(node string) (netip.Addr, error) {
	if both, err := netip.ParseAddrPort(node); err == nil {
		return plain(both.Addr()), nil
	}
	text := node
	if inside, ok := strings.CutPrefix(node, "["); ok {
		if text, ok = strings.CutSuffix(inside, "]"); !ok || !strings.Contains(text, ":") {
			return netip.Addr{}, fmt.Errorf("%w: %.60q is no address", errForwarded, node)
		}
	}
	address, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%w: %.60q is no address", errForwarded, node)
	}
	return plain(address), nil
}

// plain is an address as it is compared: without a zone, and that of IPv4 as such.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }
