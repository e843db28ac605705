package fabric

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// DefaultRoutePort is the port of routes between embedded servers.
const DefaultRoutePort = 6222

// Address is the value of --cluster.
type Address struct {
	// Embedded is set if the NATS server runs inside this process. RoutePort is the TCP port of its routes, negative if
	// the system chooses one. Seeds are the host:port of servers that the server connects to.
	Embedded  bool
	RoutePort int
	Seeds     []string
	// Servers are the URLs of an external cluster's servers, User its credentials, nil if there are none. TLS is set
	// if the servers are reached with TLS.
	Servers []string
	User    *url.Userinfo
	TLS     bool
}

// Parse parses an address: embedded://SEED:6222,… or nats://HOST:4222,… or tls://HOST:4222,…. In an embedded address
// the item without a host, such as :6222, is the port of this node's routes, :0 a port that the system chooses. By
// default that is the port of the first seed. Errors wrap ErrAddress.
func Parse(text string) (*Address, error) {
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		return nil, fmt.Errorf("%w: expected embedded://SEED:6222,… or nats://HOST:4222,…", ErrAddress)
	}
	rest = strings.TrimSuffix(rest, "/")
	switch scheme {
	case "embedded":
		return parseEmbedded(rest)
	case "nats", "tls":
		return parseExternal(scheme, rest)
	default:
		return nil, fmt.Errorf("%w: the scheme is %q, expected embedded, nats or tls", ErrAddress, scheme)
	}
}

// Reached returns the host:port of the servers that this node connects to.
func (a *Address) Reached() []string {
	reached := slices.Clone(a.Seeds)
	for _, server := range a.Servers {
		_, address, _ := strings.Cut(server, "://")
		reached = append(reached, address)
	}
	return reached
}

func parseEmbedded(list string) (*Address, error) {
	a := &Address{Embedded: true}
	for item := range strings.SplitSeq(list, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		if item == ":0" {
			a.RoutePort = -1
			continue
		}
		host, port, err := hostPort(item, DefaultRoutePort)
		switch {
		case err != nil:
			return nil, err
		case host != "":
			a.Seeds = append(a.Seeds, net.JoinHostPort(host, strconv.Itoa(port)))
		case a.RoutePort != 0:
			return nil, fmt.Errorf("%w: this node has the ports %d and %d, expected one item without a host",
				ErrAddress, a.RoutePort, port)
		default:
			a.RoutePort = port
		}
	}
	if a.RoutePort == 0 {
		a.RoutePort = DefaultRoutePort
		if len(a.Seeds) > 0 {
			_, port, _ := net.SplitHostPort(a.Seeds[0])
			a.RoutePort, _ = strconv.Atoi(port)
		}
	}
	return a, nil
}

func parseExternal(scheme, list string) (*Address, error) {
	a := &Address{TLS: scheme == "tls"}
	if at := strings.LastIndexByte(list, '@'); at >= 0 {
		u, err := url.Parse(scheme + "://" + list[:at] + "@host")
		if err != nil {
			return nil, fmt.Errorf("%w: expected USER:PASSWORD before the @", ErrAddress)
		}
		a.User, list = u.User, list[at+1:]
	}
	const clientPort = 4222
	for item := range strings.SplitSeq(list, ",") {
		host, port, err := hostPort(strings.TrimSpace(item), clientPort)
		if err != nil {
			return nil, err
		}
		if host == "" {
			return nil, fmt.Errorf("%w: %q has no host, expected HOST:%d", ErrAddress, item, clientPort)
		}
		a.Servers = append(a.Servers, scheme+"://"+net.JoinHostPort(host, strconv.Itoa(port)))
	}
	return a, nil
}

// hostPort splits HOST, HOST:PORT or :PORT.
func hostPort(text string, standard int) (string, int, error) {
	if u, err := url.Parse("x://" + text); err != nil || u.Host != text {
		return "", 0, fmt.Errorf("%w: %q, expected HOST:PORT", ErrAddress, text)
	}
	host, digits, err := net.SplitHostPort(text)
	if err != nil {
		return strings.Trim(text, "[]"), standard, nil
	}
	port, err := strconv.Atoi(digits)
	if err != nil || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("%w: the port of %q is not 1 to 65535", ErrAddress, text)
	}
	return host, port, nil
}
