package transport

import (
	"context"
	"crypto/tls"
	"net"
	"strconv"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/stun/v4"

	"github.com/volsfu/volsfu/internal/transport/icemux"
)

const (
	// maxServerURLs is the number of URLs that one peer uses. Each takes a socket and an allocation.
	maxServerURLs = 8
	// relayDialTime bounds the time to connect to a TURN server over TCP or TLS. A firewall that drops the packets
	// would keep a connection attempt waiting for two minutes.
	relayDialTime = 5 * time.Second
	// turnProtocol tells a shared TLS port that the client uses TURN (RFC 7443).
	turnProtocol = "stun.turn"
)

// ICEServer is a TURN server for a peer of a client.
type ICEServer struct {
	// URLs are URIs of RFC 7065. URIs of STUN servers are ignored: a server for which this package is made sees the
	// address of the client's NAT itself.
	URLs                 []string
	Username, Credential string
}

// iceServers are the TURN servers of one peer.
type iceServers struct {
	urls []*stun.URI
	dial relayDialer
}

// newServers returns the servers that a peer uses.
func newServers(e *Endpoint, configured []ICEServer) iceServers {
	s := iceServers{dial: relayDialer{config: e.config.TLS, secured: make(map[string]string)}}
	if !e.config.Initiates {
		return s
	}
	for _, server := range configured {
		if server.Username == "" || server.Credential == "" {
			continue
		}
		for _, text := range server.URLs {
			url, err := stun.ParseURI(text)
			if err != nil || url.Scheme != stun.SchemeTypeTURN && url.Scheme != stun.SchemeTypeTURNS ||
				len(s.urls) == maxServerURLs {
				continue
			}
			url.Username, url.Password = server.Username, server.Credential
			s.urls = append(s.urls, url)
			if url.Scheme == stun.SchemeTypeTURNS {
				s.dial.secured[net.JoinHostPort(url.Host, strconv.Itoa(url.Port))] = url.Host
			}
		}
	}
	return s
}

// options returns the options of an ICE agent, and adds the network types that relayed addresses take. An agent without
// a media port reaches TURN servers over TCP and TLS only.
func (s iceServers) options(hasPort bool, networks *[]ice.NetworkType) []ice.AgentOption {
	if len(s.urls) == 0 {
		return []ice.AgentOption{ice.WithCandidateTypes([]ice.CandidateType{ice.CandidateTypeHost})}
	}
	options := []ice.AgentOption{ice.WithUrls(s.urls), ice.WithProxyDialer(s.dial)}
	if hasPort {
		return append(options,
			ice.WithCandidateTypes([]ice.CandidateType{ice.CandidateTypeHost, ice.CandidateTypeRelay}))
	}
	*networks = append(*networks, ice.NetworkTypeUDP4, ice.NetworkTypeUDP6)
	// ICE makes the candidates of its own TCP connections when it learns of a remote TCP candidate.
	return append(options, ice.WithCandidateTypes([]ice.CandidateType{ice.CandidateTypeRelay}),
		ice.WithTURNTransportProtocols([]ice.NetworkType{ice.NetworkTypeTCP4, ice.NetworkTypeTCP6}))
}

// relayDialer connects to TURN servers over TCP and TLS. ICE's own dialer has no time limit and only the system's
// certificates.
type relayDialer struct {
	config *tls.Config
	// secured are the host names of the servers that are reached over TLS, by host and port.
	secured map[string]string
}

// Dial implements proxy.Dialer.
func (d relayDialer) Dial(network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), relayDialTime)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	host, secured := d.secured[address]
	if !secured {
		return conn, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if d.config != nil {
		config = d.config.Clone()
	}
	config.NextProtos = []string{turnProtocol}
	if config.ServerName == "" {
		config.ServerName = host
	}
	client := tls.Client(conn, config)
	if err := client.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return client, nil
}

// actualCandidate returns a candidate of the remote peer with the address from which this host receives it. The address
// of a candidate that is relayed by the TURN server of this process is another one than the remote peer was told.
func (e *Endpoint) actualCandidate(c ice.Candidate) (ice.Candidate, error) {
	if e.config.RelayedAddress == nil || c.Type() != ice.CandidateTypeRelay || !c.NetworkType().IsUDP() {
		return c, nil
	}
	actual, relayed := e.config.RelayedAddress(icemux.AddressOf(c))
	if !relayed {
		return c, nil
	}
	config := &ice.CandidateRelayConfig{
		Network: "udp", Address: actual.Addr().String(), Port: int(actual.Port()), Component: c.Component(),
		Priority: c.Priority(), Foundation: c.Foundation(),
	}
	if related := c.RelatedAddress(); related != nil {
		config.RelAddr, config.RelPort = related.Address, related.Port
	}
	return ice.NewCandidateRelay(config)
}
