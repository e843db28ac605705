package icemux

import (
	"net/netip"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/stun/v4"

	"github.com/volsfu/volsfu/internal/udp"
)

// named are the addresses that a remote peer has named in candidates and that nothing authentic has come from. The ICE
// agent learns of such a candidate only once something has: it would check each of up to 64 addresses from each of its
// own every CheckInterval, at some 15 µs for each check. The remote peer checks our addresses by itself. The mux
// meanwhile sends the few checks that checks permits, which open a firewall in front of this host.
type named struct {
	candidates map[netip.AddrPort]ice.Candidate
	// ufrag and password are the remote peer's, for the checks.
	ufrag, password string
}

// Name notes a candidate of the remote peer, and sends a first check there. It reports false if the candidate is for
// the ICE agent: if it is none of UDP, or something has come from its address.
func (a *Agent) Name(candidate ice.Candidate, ufrag, password string, now time.Time) bool {
	address := AddressOf(candidate)
	if a.mux.unbounded || !candidate.NetworkType().IsUDP() || !address.IsValid() {
		return false
	}
	a.mux.mu.Lock()
	defer a.mux.mu.Unlock()
	if a.checks.reached(address) {
		return false
	}
	if a.named.ufrag != ufrag || a.named.password != password {
		a.named = named{make(map[netip.AddrPort]ice.Candidate), ufrag, password}
	}
	if len(a.named.candidates) < maxRemotes {
		a.named.candidates[address] = candidate
		a.check(address, now)
	}
	return true
}

// reach gives the ICE agent the candidate of an address that something authentic has come from. The caller holds the
// mutex, here and below.
func (a *Agent) reach(address netip.AddrPort) {
	candidate := a.named.candidates[address]
	if candidate == nil || a.peer == nil {
		return
	}
	delete(a.named.candidates, address)
	// It does not wait for the agent. A candidate that the agent does not take is one way less to reach the remote
	// peer.
	_ = a.peer.AddRemoteCandidate(candidate)
}

// checkNamed sends the checks that are due to addresses that were named.
func (m *Mux) checkNamed(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.agents {
		if a.peer != nil && a.peer.Routed() {
			// Media has its way, and others are not looked for.
			continue
		}
		for address := range a.named.candidates {
			a.check(address, now)
		}
	}
}

// check sends a check to an address that was named, if one is due.
func (a *Agent) check(to netip.AddrPort, now time.Time) {
	m := a.mux
	if other := m.owners[to]; other.proven && other.agent != a {
		return
	}
	id := TransactionID(stun.NewTransactionID())
	if !a.begin(to, id, now) {
		return
	}
	check, err := stun.Build(
		stun.BindingRequest, stun.NewTransactionIDSetter(id), stun.NewUsername(a.named.ufrag+":"+a.ufrag),
		ice.AttrControlling(0), ice.PriorityAttr(namedPriority), stun.NewShortTermIntegrity(a.named.password),
		stun.Fingerprint)
	if err != nil {
		return
	}
	_ = m.checks.Send([]udp.Message{{Peer: to, Data: check.Raw, Segment: len(check.Raw)}})
}

// namedPriority is that of a peer reflexive candidate of a host (RFC 8445 section 5.1.2.1): type preference 110, local
// preference 65,535, component 1.
const namedPriority = 110<<24 | 65535<<8 | 255

// AddressOf returns the address at which a candidate receives, invalid if the candidate has a name instead.
func AddressOf(c ice.Candidate) netip.AddrPort {
	address, err := netip.ParseAddr(c.Address())
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(address.Unmap(), uint16(c.Port()))
}
