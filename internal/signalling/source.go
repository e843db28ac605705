package signalling

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
)

// The headers in which proxies name the client of a request.
const (
	headerXForwardedFor = "X-Forwarded-For"
	headerForwarded     = "Forwarded"
)

// errForwarded reports an unreadable header of a trusted proxy.
var errForwarded = errors.New("invalid proxy header")

const (
	// maxForwarded bounds the header's length in bytes: some fifty hops with IPv6 addresses.
	maxForwarded = 4 << 10
	// maxHops bounds the number of consecutive trusted proxies.
	maxHops = 16
)

// sources finds the client address of a request: the peer of the connection or, if the peer is a trusted proxy, the
// client that the proxy names.
type sources struct {
	trusted []netip.Prefix
	header  string
}

// newSources parses the trusted proxies, which are addresses or prefixes.
func newSources(proxies []string, header string) (sources, error) {
	s := sources{header: http.CanonicalHeaderKey(header)}
	if s.header != headerXForwardedFor && s.header != headerForwarded {
		return s, fmt.Errorf("%w: proxy_header %q: expected %s or %s", ErrConfig, header, headerXForwardedFor,
			headerForwarded)
	}
	for _, text := range proxies {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			address, notOne := netip.ParseAddr(text)
			if notOne != nil || address.Zone() != "" {
				return s, fmt.Errorf("%w: trusted_proxies %q: expected an IP address or a prefix such as 10.0.0.0/8",
					ErrConfig, text)
			}
			prefix = netip.PrefixFrom(address.Unmap(), address.Unmap().BitLen())
		}
		if prefix.Addr().Is4In6() {
			return s, fmt.Errorf("%w: trusted_proxies %q: expected an IPv4 address instead of an IPv4-mapped one",
				ErrConfig, text)
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

// of returns the client address of a request. If the request comes from a trusted proxy, the client is the last address
// in the header that is not a trusted proxy: each proxy appends the address of its own client, and a client can forge
// all earlier addresses. The error wraps errForwarded.
func (s *sources) of(r *http.Request) (netip.Addr, error) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		// The connection does not use IP. All connections of this kind count as one.
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
		// The proxy itself made the request, for example as a health check.
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

// namedBy returns the nodes of a header in their order, unparsed.
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

// forwardedFor returns the nodes of the parameters "for" of a Forwarded header (RFC 7239, section 4), one for each
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
				return nil, fmt.Errorf("%w: an element of %s has two parameters \"for\"", errForwarded, headerForwarded)
			}
			node, found = value, true
		}
		rest = strings.TrimLeft(rest, " \t")
		if rest == "" || rest[0] == ',' {
			if !found {
				return nil, fmt.Errorf("%w: an element of %s has no parameter \"for\"", errForwarded, headerForwarded)
			}
			named, node, found = append(named, node), "", false
		}
		switch {
		case rest == "":
			return named, nil
		case rest[0] != ',' && rest[0] != ';':
			return nil, fmt.Errorf("%w: %s: expected a comma or a semicolon after a value", errForwarded,
				headerForwarded)
		}
		text = rest[1:]
	}
}

// forwardedValue cuts a token or a quoted string (RFC 9110, section 5.6) from the start of text.
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

// isTokenRune reports whether r may be part of a token (RFC 9110, section 5.6.2).
func isTokenRune(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' ||
		r < 128 && strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// nodeAddress parses an address with an optional port. IPv6 addresses with a port are in brackets (RFC 7239, section
// 6). Obfuscated names are an error: behind such a proxy, clients cannot be told apart.
func nodeAddress(node string) (netip.Addr, error) {
	if both, err := netip.ParseAddrPort(node); err == nil {
		return plain(both.Addr()), nil
	}
	text := node
	if inside, ok := strings.CutPrefix(node, "["); ok {
		if text, ok = strings.CutSuffix(inside, "]"); !ok || !strings.Contains(text, ":") {
			return netip.Addr{}, fmt.Errorf("%w: %.60q is not an IP address", errForwarded, node)
		}
	}
	address, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%w: %.60q is not an IP address", errForwarded, node)
	}
	return plain(address), nil
}

// plain returns an address in the form used for comparison: without a zone, and IPv4-mapped addresses as IPv4.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }
