package transport

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"time"

	"github.com/pion/ice/v4"

	"github.com/volsfu/volsfu/internal/panics"
)

const (
	// checkInterval is how often pairs are checked that have not answered (RFC 8445 section 14.2 has Ta of 50 ms). Pion's 200 ms would be a third of a join.
	checkInterval = 50 * time.Millisecond
	// leastAttempts is how many checks a pair is given at least that does not answer: two seconds' worth.
	leastAttempts = 40
	// betterWait is how long a pair with a remote address that was not told, or that a STUN server saw, waits for a better one to answer. Browsers hide all of theirs
	// behind names that only their own network resolves (mDNS), so that every pair with them is such a one, and Pion would wait for a second.
	betterWait = 50 * time.Millisecond
)

// checkAttempts is after how many checks without an answer a pair counts as failed. Nobody checks such a pair again before ICE begins anew, so they last for as long as ICE
// looks for a way at all: where a network lets nothing through for a while, what comes back is found at the next check.
func (c Config) checkAttempts() uint16 {
	attempts := (c.DisconnectedTimeout + c.FailedTimeout) / checkInterval
	return uint16(min(max(attempts, leastAttempts), math.MaxUint16))
}

// newAgent makes the ICE agent of one peer.
func (e *Endpoint) newAgent() (*ice.Agent, error) {
	network, err := e.interfaces.current(time.Now())
	if err != nil {
		return nil, fmt.Errorf("new ICE agent: %w", err)
	}
	options := []ice.AgentOption{
		ice.WithNet(network),
		ice.WithLoggerFactory(e.logs),
		ice.WithMulticastDNSMode(ice.MulticastDNSModeDisabled),
		ice.WithDisconnectedTimeout(e.config.DisconnectedTimeout),
		ice.WithFailedTimeout(e.config.FailedTimeout),
		ice.WithKeepaliveInterval(e.config.KeepAlive),
		ice.WithCheckInterval(checkInterval),
		ice.WithMaxBindingRequests(e.config.checkAttempts()),
		ice.WithSrflxAcceptanceMinWait(betterWait),
		ice.WithPrflxAcceptanceMinWait(betterWait),
		ice.WithCandidateTypes([]ice.CandidateType{ice.CandidateTypeHost}),
	}
	if e.onLoopback() {
		options = append(options, ice.WithIncludeLoopback())
	}
	var networks []ice.NetworkType
	if e.mux != nil {
		// Who takes connections makes none: a remote candidate must not send this host to addresses of the remote peer's choosing.
		options = append(options, ice.WithUDPMux(e.mux), ice.WithDisableActiveTCP())
		networks = append(networks, ice.NetworkTypeUDP4, ice.NetworkTypeUDP6)
	}
	if e.tcp != nil {
		options = append(options, ice.WithTCPMux(e.tcp))
	}
	if e.tcp != nil || e.mux == nil {
		networks = append(networks, ice.NetworkTypeTCP4, ice.NetworkTypeTCP6)
	}
	options = append(options, ice.WithNetworkTypes(networks))
	rule := ice.AddressRewriteRule{
		External: e.config.PublicIPs, AsCandidateType: ice.CandidateTypeHost, Mode: ice.AddressRewriteReplace,
	}
	if len(e.reflexive) > 0 {
		// Where the NAT keeps port numbers, clients reach the media port there as well.
		rule.External, rule.Mode = e.reflexive, ice.AddressRewriteAppend
	}
	if len(rule.External) > 0 {
		options = append(options, ice.WithAddressRewriteRules(rule))
	}
	agent, err := ice.NewAgentWithOptions(options...)
	if err != nil {
		return nil, fmt.Errorf("new ICE agent: %w", err)
	}
	return agent, nil
}

// onLoopback reports whether the endpoint can be reached on loopback alone, or dials, perhaps a server on this host.
func (e *Endpoint) onLoopback() bool {
	if e.mux == nil {
		return true
	}
	for _, address := range e.mux.addresses {
		if udp, ok := address.(*net.UDPAddr); ok && !udp.IP.IsLoopback() {
			return false
		}
	}
	return true
}

// watch has the agent tell what happens.
func (p *Peer) watch() error {
	if err := p.agent.OnCandidate(p.candidateFound); err != nil {
		return err
	}
	if err := p.agent.OnConnectionStateChange(p.stateChanged); err != nil {
		return err
	}
	return p.agent.OnSelectedCandidatePairChange(p.pairSelected)
}

// candidateFound is called by a goroutine of the agent, as are the next two.
func (p *Peer) candidateFound(c ice.Candidate) {
	p.try(placeICE, func() { p.found(c) })
}

func (p *Peer) stateChanged(state ice.ConnectionState) {
	p.try(placeICE, func() { p.events.iceState(state) })
}

func (p *Peer) pairSelected(local, remote ice.Candidate) {
	p.try(placeICE, func() { p.selected(local, remote) })
}

// found takes a local candidate, and nil when there are no more.
func (p *Peer) found(c ice.Candidate) {
	if c == nil {
		p.gathered.Store(true)
		return
	}
	text := "candidate:" + c.Marshal()
	p.localCandidates.add(text)
	p.events.add(Event{Candidate: &Candidate{Candidate: text, MID: firstMID}})
}

// selected takes the pair that ICE sends on from now on. If it is one of UDP addresses, media passes ICE by.
func (p *Peer) selected(local, remote ice.Candidate) {
	p.routing.Lock()
	defer p.routing.Unlock()
	if p.closed.Load() {
		return
	}
	var to netip.AddrPort
	if p.endpoint.port != nil && local.NetworkType().IsUDP() && remote.NetworkType().IsUDP() {
		to = remoteAddress(remote)
	}
	p.reroute(to)
}

// unroute makes media go through ICE, for as long as that is there.
func (p *Peer) unroute() {
	p.routing.Lock()
	defer p.routing.Unlock()
	p.reroute(netip.AddrPort{})
}

// reroute makes media go to another address, and through ICE if that is not valid. The caller holds the mutex. On an
// endpoint with other peers a panic ends the process: the readers of all of them go by the routes.
func (p *Peer) reroute(to netip.AddrPort) {
	if !p.endpoint.config.Initiates {
		defer panics.Shared()
	}
	var from peerRoute
	if old := p.route.Load(); old != nil {
		from = *old
	}
	if from.address == to {
		return
	}
	var route *peerRoute
	if to.IsValid() {
		p.consent.begin(to, time.Now())
		if a := p.agentOnPort.Load(); a != nil {
			p.rtt.begin(a.roundTrip(to))
		}
		route = &peerRoute{address: to, socket: p.endpoint.neighbours.take(to.Addr())}
		if route.apart = route.socket != nil; !route.apart {
			route.socket = p.endpoint.port.Sockets()[0]
		}
	}
	p.endpoint.routes.move(p, from.address, to)
	p.route.Store(route)
	if from.apart {
		p.endpoint.neighbours.release(from.address.Addr())
	}
}
