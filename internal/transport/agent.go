package transport

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/ice/v4"

	"github.com/volsfu/volsfu/internal/description"
	"github.com/volsfu/volsfu/internal/transport/icemux"
)

const (
	// leastAttempts is the least number of connectivity checks of a pair that does not answer: at CheckInterval (50
	// ms), 40 checks take two seconds.
	leastAttempts = 40
	// betterWait is the time for which ICE does not nominate a pair with a peer reflexive or server reflexive
	// candidate, because a better pair may still answer. Browsers hide all their addresses behind names that only their
	// own network resolves (mDNS). Every pair with a browser is therefore peer reflexive, and Pion would wait for a
	// second.
	betterWait = 50 * time.Millisecond
	// directWait is the time for which ICE does not nominate a pair with a relayed candidate. A relayed pair takes some
	// three round trips more than a direct one. The direct pair has answered by then if the round trip is at most 200
	// ms.
	directWait = 200 * time.Millisecond
)

// checkAttempts returns the number of checks without an answer after which a pair has failed. ICE does not check a
// failed pair again before it restarts. The checks therefore continue for as long as ICE tries to connect
// (DisconnectedTimeout + FailedTimeout). If a network drops everything for a while, the first check after the outage
// finds the pair again.
func (c Config) checkAttempts() uint16 {
	attempts := (c.DisconnectedTimeout + c.FailedTimeout) / icemux.CheckInterval
	return uint16(min(max(attempts, leastAttempts), math.MaxUint16))
}

// iceAgent is the ICE agent of one peer, with the candidates of both sides. The fields from gathering on belong to the
// negotiating goroutine.
type iceAgent struct {
	*ice.Agent
	peer *Peer

	local candidateList
	// gathered is set while ICE has all its local candidates.
	gathered atomic.Bool
	// adding guards added: the ports of an endpoint with several ports have their candidates (addPorts).
	adding sync.Mutex
	added  bool

	// gathering is set once ICE was asked to gather.
	gathering bool
	// remote is the remote peer's transport. begun is set once ICE was started with it.
	remote description.Transport
	begun  bool
	// early are the remote candidates that arrived before the description. named are all remote candidates of the ICE
	// generation, from descriptions and trickled, at most description.MaxCandidates.
	early []string
	named map[string]struct{}
}

// newAgent makes the ICE agent of one peer.
func (e *Endpoint) newAgent(peer *Peer) (*iceAgent, error) {
	network, err := e.network.current(time.Now())
	if err != nil {
		return nil, fmt.Errorf("new ICE agent: %w", err)
	}
	servers := newServers(e, peer.servers)
	options := []ice.AgentOption{
		ice.WithNet(network),
		ice.WithLoggerFactory(e.logs),
		ice.WithMulticastDNSMode(ice.MulticastDNSModeDisabled),
		ice.WithDisconnectedTimeout(e.config.DisconnectedTimeout),
		ice.WithFailedTimeout(e.config.FailedTimeout),
		ice.WithKeepaliveInterval(e.config.KeepAlive),
		ice.WithCheckInterval(icemux.CheckInterval),
		ice.WithMaxBindingRequests(e.config.checkAttempts()),
		ice.WithSrflxAcceptanceMinWait(betterWait),
		ice.WithPrflxAcceptanceMinWait(betterWait),
		ice.WithRelayAcceptanceMinWait(directWait),
	}
	if e.onLoopback() {
		options = append(options, ice.WithIncludeLoopback())
	}
	var networks []ice.NetworkType
	ports := e.mediaPorts()
	if len(ports) > 0 {
		// An endpoint that accepts connections makes none. Otherwise a remote candidate could direct this host to
		// addresses that the remote peer chose.
		var mux ice.UDPMux = ports[0].mux
		if e.several {
			mux = candidatePorts{e}
		}
		options = append(options, ice.WithUDPMux(mux), ice.WithDisableActiveTCP(),
			ice.WithBindingRequestHandler(peer.path.requested))
		networks = append(networks, ice.NetworkTypeUDP4, ice.NetworkTypeUDP6)
	}
	if e.tcp != nil {
		options = append(options, ice.WithTCPMux(e.tcp))
	}
	if e.tcp != nil || len(ports) == 0 {
		networks = append(networks, ice.NetworkTypeTCP4, ice.NetworkTypeTCP6)
	}
	options = append(options, servers.options(len(ports) > 0, &networks)...)
	options = append(options, ice.WithNetworkTypes(networks))
	rule := ice.AddressRewriteRule{
		External: e.config.PublicIPs, AsCandidateType: ice.CandidateTypeHost, Mode: ice.AddressRewriteReplace,
	}
	if len(e.reflexive) > 0 {
		// If the NAT keeps port numbers, clients reach the media port at these addresses, too.
		rule.External, rule.Mode = e.reflexive, ice.AddressRewriteAppend
	}
	if len(rule.External) > 0 {
		options = append(options, ice.WithAddressRewriteRules(rule))
	}
	agent, err := ice.NewAgentWithOptions(options...)
	if err != nil {
		return nil, fmt.Errorf("new ICE agent: %w", err)
	}
	a := &iceAgent{Agent: agent, peer: peer, named: make(map[string]struct{})}
	if err := a.watch(); err != nil {
		_ = agent.Close()
		return nil, err
	}
	return a, nil
}

// onLoopback reports whether ICE includes loopback candidates: the endpoint listens on loopback addresses only, or it
// dials, possibly to a server on this host.
func (e *Endpoint) onLoopback() bool {
	for _, port := range e.mediaPorts() {
		for _, address := range port.mux.GetListenAddresses() {
			if udp, ok := address.(*net.UDPAddr); ok && !udp.IP.IsLoopback() {
				return false
			}
		}
	}
	return true
}

// watch registers the callbacks of the agent.
func (a *iceAgent) watch() error {
	if err := a.OnCandidate(a.candidateFound); err != nil {
		return err
	}
	if err := a.OnConnectionStateChange(a.stateChanged); err != nil {
		return err
	}
	return a.OnSelectedCandidatePairChange(a.pairSelected)
}

// candidateFound handles a local candidate. A goroutine of the agent calls candidateFound, stateChanged and
// pairSelected.
func (a *iceAgent) candidateFound(c ice.Candidate) {
	a.peer.try(placeICE, func() { a.found(c) })
}

func (a *iceAgent) stateChanged(state ice.ConnectionState) {
	a.peer.try(placeICE, func() { a.peer.events.iceState(state) })
}

func (a *iceAgent) pairSelected(local, remote ice.Candidate) {
	a.peer.try(placeICE, func() { a.peer.path.selected(local, remote) })
}

// portPeer implements icemux.Peer for the mux of one port.
type portPeer struct {
	*iceAgent
	port *mediaPort
}

// Checked implements icemux.Peer.
func (a portPeer) Checked(to netip.AddrPort, id icemux.TransactionID, check []byte, now time.Time) {
	a.peer.path.consent.checked(pairAddress{a.port, to}, id, check, now)
}

// Answered implements icemux.Peer.
func (a portPeer) Answered(
	from netip.AddrPort, id icemux.TransactionID, response []byte, took time.Duration, now time.Time,
) {
	a.peer.path.answered(pairAddress{a.port, from}, id, response, took, now)
}

// Routed implements icemux.Peer.
func (a portPeer) Routed() bool { return a.peer.path.route.Load() != nil }

// found adds a local candidate. nil reports that there are no more.
func (a *iceAgent) found(c ice.Candidate) {
	if c == nil {
		a.gathered.Store(true)
		return
	}
	text := "candidate:" + c.Marshal()
	a.local.add(text)
	a.peer.events.add(Event{Candidate: &Candidate{Candidate: text, MID: firstMID}})
}

// localTransport returns the transport of this side for a description.
func (a *iceAgent) localTransport() (description.Transport, error) {
	ufrag, password, err := a.GetLocalUserCredentials()
	if err != nil {
		return description.Transport{}, fmt.Errorf("ICE credentials: %w", err)
	}
	return description.Transport{
		Ufrag: ufrag, Password: password, Fingerprint: a.peer.endpoint.fingerprint, Candidates: a.local.all(),
	}, nil
}

// gather starts the gathering of candidates, once per ICE generation.
func (a *iceAgent) gather() error {
	if a.gathering {
		return nil
	}
	a.gathering = true
	ports := a.peer.endpoint.mediaPorts()
	if a.peer.endpoint.several {
		if err := a.addPorts(); err != nil {
			return err
		}
	} else if len(ports) > 0 {
		ufrag, _, err := a.GetLocalUserCredentials()
		if err != nil {
			return fmt.Errorf("ICE credentials: %w", err)
		}
		a.peer.path.agents.set(ports[0], ports[0].mux.Register(ufrag, portPeer{a, ports[0]}))
	}
	if err := a.GatherCandidates(); err != nil {
		return fmt.Errorf("gather ICE candidates: %w", err)
	}
	return nil
}

// restart restarts ICE with new credentials and new candidates.
func (a *iceAgent) restart() error {
	a.awaitGathering()
	a.adding.Lock()
	a.added = false
	a.adding.Unlock()
	if err := a.Restart("", ""); err != nil {
		return fmt.Errorf("restart ICE: %w", err)
	}
	a.local.clear()
	a.gathered.Store(false)
	a.gathering = false
	clear(a.named)
	return nil
}

// setRemote sets the remote peer's transport. The first call starts ICE. Later calls apply changed credentials and
// candidates.
func (a *iceAgent) setRemote(remote description.Transport, controlling bool) error {
	switch {
	case !a.begun:
		if err := a.peer.start(remote, controlling); err != nil {
			return fmt.Errorf("start ICE: %w", err)
		}
		a.begun = true
	case remote.Ufrag != a.remote.Ufrag || remote.Password != a.remote.Password:
		if err := a.SetRemoteCredentials(remote.Ufrag, remote.Password); err != nil {
			return fmt.Errorf("remote ICE credentials: %w", err)
		}
	}
	if !controlling && remote.Ufrag != a.remote.Ufrag {
		clear(a.named)
	}
	a.remote = remote
	if pairs := a.peer.path.pairs.Load(); pairs != nil {
		pairs.setRemote(icemux.Remote{Ufrag: remote.Ufrag, Password: remote.Password, Controlled: controlling})
	}
	// Errors are ignored: ICE then has one candidate less.
	for _, candidate := range remote.Candidates {
		_ = a.name(candidate)
	}
	for _, candidate := range a.early {
		_ = a.addRemote(candidate)
	}
	a.early = nil
	return nil
}

// gatherPatience bounds the wait for host candidates, which are gathered in milliseconds. The wait polls every
// gatherInterval.
const (
	gatherPatience = time.Second
	gatherInterval = time.Millisecond
)

// awaitGathering waits until ICE has gathered its candidates, at most for gatherPatience. ICE must not restart before:
// the gathering goroutine reads the credentials without a lock, and a restart writes them (pion/ice v4.4).
func (a *iceAgent) awaitGathering() {
	deadline := time.Now().Add(gatherPatience)
	for a.gathering && !a.gathered.Load() && time.Now().Before(deadline) {
		time.Sleep(gatherInterval)
	}
}

// name counts a remote candidate and adds it to ICE. A candidate that was counted before changes nothing.
func (a *iceAgent) name(candidate string) error {
	if _, known := a.named[candidate]; known {
		return nil
	}
	if len(a.named) == description.MaxCandidates {
		return fmt.Errorf("%w: more than %d candidates until ICE restarts", ErrCandidate, description.MaxCandidates)
	}
	a.named[strings.Clone(candidate)] = struct{}{}
	if !a.begun {
		a.early = append(a.early, candidate)
		return nil
	}
	return a.addRemote(candidate)
}

// addRemote adds a candidate to ICE. An empty candidate is the end of candidates and is ignored.
func (a *iceAgent) addRemote(text string) error {
	text = strings.TrimPrefix(text, "candidate:")
	if text == "" {
		return nil
	}
	candidate, err := ice.UnmarshalCandidate(text)
	if err == nil {
		candidate, err = a.peer.endpoint.actualCandidate(candidate)
	}
	if err != nil {
		return fmt.Errorf("%w %q: %w", ErrCandidate, text, err)
	}
	if pairs := a.peer.path.pairs.Load(); pairs != nil && candidate.NetworkType().IsUDP() {
		pairs.name(icemux.AddressOf(candidate))
	}
	for _, port := range a.peer.endpoint.mediaPorts() {
		m := a.peer.path.agents.of(port)
		if m != nil && m.Name(candidate, a.remote.Ufrag, a.remote.Password, time.Now()) {
			return nil
		}
	}
	if err := a.AddRemoteCandidate(candidate); err != nil {
		return fmt.Errorf("%w %q: %w", ErrCandidate, text, err)
	}
	return nil
}

// candidateList holds the local candidates found so far. A goroutine of ICE adds candidates, the negotiating goroutine
// reads them.
type candidateList struct {
	mu    sync.Mutex
	texts []string
}

func (l *candidateList) add(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.texts = append(l.texts, text)
}

func (l *candidateList) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.texts)
}

func (l *candidateList) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.texts = nil
}
