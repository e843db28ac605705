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
	// leastAttempts is how many checks a pair is given at least that does not answer: two seconds' worth.
	leastAttempts = 40
	// betterWait is how long a pair with a remote address that was not told, or that a STUN server saw, waits for a
	// better one to answer. Browsers hide all of theirs behind names that only their own network resolves (mDNS), so
	// that every pair with them is such a one, and Pion would wait for a second.
	betterWait = 50 * time.Millisecond
)

// checkAttempts is after how many checks without an answer a pair counts as failed. Nobody checks such a pair again
// before ICE restarts, so they last for as long as ICE looks for a way at all: where a network lets nothing through
// for a while, what comes back is found at the next check.
func (c Config) checkAttempts() uint16 {
	attempts := (c.DisconnectedTimeout + c.FailedTimeout) / icemux.CheckInterval
	return uint16(min(max(attempts, leastAttempts), math.MaxUint16))
}

// iceAgent is the ICE agent of one peer, with the candidates of both sides. What follows the candidates belongs to the
// goroutine that negotiates.
type iceAgent struct {
	*ice.Agent
	peer *Peer

	local candidateList
	// gathered is set while ICE has all its local candidates.
	gathered atomic.Bool

	// gathering says that ICE was told to gather.
	gathering bool
	// remote is the remote peer's transport, begun says that ICE was begun with it.
	remote description.Transport
	begun  bool
	// early are remote candidates that came before the description. named are all of the ICE generation, in
	// descriptions and by themselves; there are description.MaxCandidates at most.
	early []string
	named map[string]struct{}
}

// newAgent makes the ICE agent of one peer.
func (e *Endpoint) newAgent(peer *Peer) (*iceAgent, error) {
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
		ice.WithCheckInterval(icemux.CheckInterval),
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
		// Who takes connections makes none: a remote candidate must not send this host to addresses of the remote
		// peer's choosing.
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
	a := &iceAgent{Agent: agent, peer: peer, named: make(map[string]struct{})}
	if err := a.watch(); err != nil {
		_ = agent.Close()
		return nil, err
	}
	return a, nil
}

// onLoopback reports whether the endpoint can be reached on loopback alone, or dials, perhaps a server on this host.
func (e *Endpoint) onLoopback() bool {
	if e.mux == nil {
		return true
	}
	for _, address := range e.mux.GetListenAddresses() {
		if udp, ok := address.(*net.UDPAddr); ok && !udp.IP.IsLoopback() {
			return false
		}
	}
	return true
}

// watch has the agent tell what happens.
func (a *iceAgent) watch() error {
	if err := a.OnCandidate(a.candidateFound); err != nil {
		return err
	}
	if err := a.OnConnectionStateChange(a.stateChanged); err != nil {
		return err
	}
	return a.OnSelectedCandidatePairChange(a.pairSelected)
}

// candidateFound is called by a goroutine of the agent, as are the next two.
func (a *iceAgent) candidateFound(c ice.Candidate) {
	a.peer.try(placeICE, func() { a.found(c) })
}

func (a *iceAgent) stateChanged(state ice.ConnectionState) {
	a.peer.try(placeICE, func() { a.peer.events.iceState(state) })
}

func (a *iceAgent) pairSelected(local, remote ice.Candidate) {
	a.peer.try(placeICE, func() { a.peer.path.selected(local, remote) })
}

// Checked implements icemux.Peer.
func (a *iceAgent) Checked(to netip.AddrPort, id icemux.TransactionID, check []byte, now time.Time) {
	a.peer.path.consent.checked(to, id, check, now)
}

// Answered implements icemux.Peer.
func (a *iceAgent) Answered(from netip.AddrPort, id icemux.TransactionID, now time.Time) {
	a.peer.path.answered(from, id, now)
}

// Routed implements icemux.Peer.
func (a *iceAgent) Routed() bool { return a.peer.path.route.Load() != nil }

// found takes a local candidate, and nil when there are no more.
func (a *iceAgent) found(c ice.Candidate) {
	if c == nil {
		a.gathered.Store(true)
		return
	}
	text := "candidate:" + c.Marshal()
	a.local.add(text)
	a.peer.events.add(Event{Candidate: &Candidate{Candidate: text, MID: firstMID}})
}

// localTransport describes this side.
func (a *iceAgent) localTransport() (description.Transport, error) {
	ufrag, password, err := a.GetLocalUserCredentials()
	if err != nil {
		return description.Transport{}, fmt.Errorf("ICE credentials: %w", err)
	}
	return description.Transport{
		Ufrag: ufrag, Password: password, Fingerprint: a.peer.endpoint.fingerprint, Candidates: a.local.all(),
	}, nil
}

// gather has ICE look for its candidates, once until ICE restarts.
func (a *iceAgent) gather() error {
	if a.gathering {
		return nil
	}
	a.gathering = true
	if a.peer.endpoint.mux != nil {
		ufrag, _, err := a.GetLocalUserCredentials()
		if err != nil {
			return fmt.Errorf("ICE credentials: %w", err)
		}
		a.peer.path.agent.Store(a.peer.endpoint.mux.Register(ufrag, a))
	}
	if err := a.GatherCandidates(); err != nil {
		return fmt.Errorf("gather ICE candidates: %w", err)
	}
	return nil
}

// restart restarts ICE: new credentials, new candidates.
func (a *iceAgent) restart() error {
	a.awaitGathering()
	if err := a.Restart("", ""); err != nil {
		return fmt.Errorf("restart ICE: %w", err)
	}
	a.local.clear()
	a.gathered.Store(false)
	a.gathering = false
	clear(a.named)
	return nil
}

// setRemote takes the remote peer's transport: it begins ICE, or goes on with what has changed.
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
	// A candidate that cannot be used is one way less to reach the remote peer.
	for _, candidate := range remote.Candidates {
		_ = a.name(candidate)
	}
	for _, candidate := range a.early {
		_ = a.addRemote(candidate)
	}
	a.early = nil
	return nil
}

// Host candidates are gathered in milliseconds; gatherPatience bounds the wait where they are not.
const (
	gatherPatience = time.Second
	gatherInterval = time.Millisecond
)

// awaitGathering waits until ICE has gathered its candidates. Before that ICE must not restart: what gathers reads
// the credentials that a restart writes, without a lock (pion/ice v4.4).
func (a *iceAgent) awaitGathering() {
	deadline := time.Now().Add(gatherPatience)
	for a.gathering && !a.gathered.Load() && time.Now().Before(deadline) {
		time.Sleep(gatherInterval)
	}
}

// name counts a remote candidate and hands it to ICE. One that was named before changes nothing.
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

// addRemote hands a candidate to ICE. An empty one says that there are no more.
func (a *iceAgent) addRemote(text string) error {
	text = strings.TrimPrefix(text, "candidate:")
	if text == "" {
		return nil
	}
	candidate, err := ice.UnmarshalCandidate(text)
	if err != nil {
		return fmt.Errorf("%w %q: %w", ErrCandidate, text, err)
	}
	if m := a.peer.path.agent.Load(); m != nil && m.Name(candidate, a.remote.Ufrag, a.remote.Password, time.Now()) {
		return nil
	}
	if err := a.AddRemoteCandidate(candidate); err != nil {
		return fmt.Errorf("%w %q: %w", ErrCandidate, text, err)
	}
	return nil
}

// candidateList is the local candidates so far. ICE adds to it, negotiation reads it.
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
