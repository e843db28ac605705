package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
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
		conn, err := net.ListenPacket("udp4", ":0")
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		if _, err = mappingOf(ctx, conn, net.JoinHostPort(uri.Host, strconv.Itoa(uri.Port))); err != nil {
			return fmt.Errorf("%s: %w", url, err)
		}
		return nil
	}
	return errUnchecked
}

// errUnchecked means that there is no check for the scheme of a URL.
var errUnchecked = errors.New("STUN over TLS is not checked")

// iceServerFinding judges the use of a server.
func iceServerFinding(url string, err error) Finding {
	f := Finding{Subject: "ICE server", Status: OK, Result: url + " answers"}
	switch {
	case err == nil:
	case errors.Is(err, errUnchecked):
		f.Status, f.Result = Skipped, url+": "+err.Error()
	default:
		f.Status, f.Result = Failed, err.Error()
		f.Advice = "Check name, port and credential of this server in ice_servers, and the firewalls between."
	}
	return f
}
