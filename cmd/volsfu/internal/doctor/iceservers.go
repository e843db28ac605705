package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/pion/stun/v4"

	"github.com/volsfu/volsfu/internal/iceservers"
	"github.com/volsfu/volsfu/internal/turnserver"
	"github.com/volsfu/volsfu/pkg/signal"
)

// relayPatience is the time for the check of all servers, which are checked at once: connecting with TLS, an allocation
// and repetitions.
const relayPatience = 5 * time.Second

// iceServers checks the URLs of ice_servers from this host, with credentials as a client receives them.
func (o *options) iceServers(ctx context.Context) []Finding {
	servers, err := iceservers.Parse(o.settings.ICEServers)
	if err != nil {
		// The check of the configuration has reported the error.
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, relayPatience)
	defer cancel()
	type target struct {
		url    string
		client signal.ICEServer
	}
	var targets []target
	for _, server := range servers {
		client := server.For("doctor", time.Now())
		for _, url := range client.URLs {
			targets = append(targets, target{url, client})
		}
	}
	found := make([]Finding, len(targets))
	var running sync.WaitGroup
	for i, t := range targets {
		running.Go(func() { found[i] = iceServerFinding(t.url, useICEServer(ctx, t.url, t.client)) })
	}
	running.Wait()
	return found
}

// useICEServer asks a STUN server for a mapping, or makes an allocation on a TURN server.
func useICEServer(ctx context.Context, url string, client signal.ICEServer) error {
	uri, err := stun.ParseURI(url)
	if err != nil {
		return err
	}
	switch uri.Scheme {
	case stun.SchemeTypeTURN, stun.SchemeTypeTURNS:
		allocated := func(net.PacketConn) error { return nil }
		return turnserver.Check(ctx, url, client.Username, client.Credential, nil, allocated)
	case stun.SchemeTypeSTUN:
		addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", uri.Host)
		if err == nil {
			err = askSTUN(ctx, addresses, uint16(uri.Port))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", url, err)
		}
		return nil
	}
	return errUnchecked
}

// families are the address families of STUN servers.
var families = []struct {
	network, name string
	has           func(netip.Addr) bool
}{{"udp4", "IPv4", netip.Addr.Is4}, {"udp6", "IPv6", netip.Addr.Is6}}

// askSTUN asks a STUN server for a mapping in each address family that the server has and this host can use. The error
// wraps errPartly if the server answers in one family only.
func askSTUN(ctx context.Context, addresses []netip.Addr, port uint16) error {
	answers := 0
	var silent, unusable error
	for _, family := range families {
		at := slices.IndexFunc(addresses, func(a netip.Addr) bool { return family.has(a.Unmap()) })
		if at < 0 {
			continue
		}
		switch err := askSTUNAt(ctx, family.network, netip.AddrPortFrom(addresses[at].Unmap(), port)); {
		case err == nil:
			answers++
		case errors.Is(err, errSilent):
			silent = errors.Join(silent, fmt.Errorf("over %s: %w", family.name, err))
		default:
			unusable = errors.Join(unusable, fmt.Errorf("over %s: %w", family.name, err))
		}
	}
	switch {
	case answers == 0:
		return errors.Join(silent, unusable)
	case silent != nil:
		return fmt.Errorf("%w: %w", errPartly, silent)
	}
	return nil
}

// askSTUNAt asks a STUN server at one of its addresses.
func askSTUNAt(ctx context.Context, network string, server netip.AddrPort) error {
	conn, err := net.ListenPacket(network, ":0")
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_, err = mappingOf(ctx, conn, net.UDPAddrFromAddrPort(server))
	return err
}

// errPartly means that a server answers clients of one address family only.
var errPartly = errors.New("some clients do not reach the server")

// errUnchecked means that there is no check for the scheme of a URL.
var errUnchecked = errors.New("STUN over TLS is not checked")

// iceServerFinding judges the use of a server.
func iceServerFinding(url string, err error) Finding {
	f := Finding{Subject: "ICE server", Status: OK, Result: url + " answers"}
	switch {
	case err == nil:
	case errors.Is(err, errUnchecked):
		f.Status, f.Result = Skipped, url+": "+err.Error()
	case errors.Is(err, errPartly):
		f.Status, f.Result = Warning, err.Error()
		f.Advice = "Let the server listen on all addresses of its name, or remove the address from the name."
	default:
		f.Status, f.Result = Failed, err.Error()
		f.Advice = "Check name, port and credential of this server in ice_servers, and the firewalls between."
	}
	return f
}
