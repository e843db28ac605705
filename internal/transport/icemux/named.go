package icemux

import (
	"net/netip"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/stun/v4"

	"github.com/volsfu/volsfu/internal/udp"
)

// named are the addresses in the remote peer's candidates from which nothing authentic was received. The ICE agent
// receives such a candidate only after something authentic: otherwise the agent would check each of up to 64 addresses
// from each of its own addresses every CheckInterval, at some 15 µs per check. The remote peer checks this host's
// addresses in any case. Meanwhile the mux sends the few checks that checks permits, which open a firewall in front of
// this host.
type named struct {
	candidates map[netip.AddrPort]ice.Candidate
	// remote is the remote peer, for the checks.
	remote Remote
}

// Remote holds the parts of the Mux's checks that depend on the remote peer.
type Remote struct {
	// Ufrag and Password are the remote peer's ICE credentials.
	Ufrag, Password string
	// Controlled is set if the remote peer's ICE agent has the controlled role.
	Controlled bool
}

// Name records a candidate of the remote peer and sends a first check there. Name returns false if the candidate is for
// the ICE agent: the candidate is not a UDP address, something authentic was received from the address, or the Mux is
// unbounded.
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
	if remote := (Remote{ufrag, password, true}); a.named.remote != remote {
		a.named = named{make(map[netip.AddrPort]ice.Candidate), remote}
	}
	if len(a.named.candidates) < maxRemotes {
		a.named.candidates[address] = candidate
		a.check(address, a.named.remote, namedPriority, now)
	}
	return true
}

// reach gives the ICE agent the candidate of an address from which something authentic was received. The caller of
// reach and check holds the mutex.
func (a *Agent) reach(address netip.AddrPort) {
	candidate := a.named.candidates[address]
	if candidate == nil || a.peer == nil {
		return
	}
	delete(a.named.candidates, address)
	// The call does not wait for the agent. If the agent rejects the candidate, ICE has one candidate less.
	_ = a.peer.AddRemoteCandidate(candidate)
}

// checkNamed sends the checks that are due to named addresses.
func (m *Mux) checkNamed(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.agents {
		if a.peer != nil && a.peer.Routed() {
			// Media has a direct route, and no other pair is needed.
			continue
		}
		for address := range a.named.candidates {
			a.check(address, a.named.remote, namedPriority, now)
		}
	}
}

// Check sends a check to an address of the remote peer, if the limits for the address permit one. The ICE agent does
// not learn of the check. Peer.Answered is called for the answer.
func (a *Agent) Check(to netip.AddrPort, remote Remote, priority uint32, now time.Time) {
	a.mux.mu.Lock()
	defer a.mux.mu.Unlock()
	a.check(to, remote, priority, now)
}

// check is Check for callers that hold the mutex.
func (a *Agent) check(to netip.AddrPort, remote Remote, priority uint32, now time.Time) {
	m := a.mux
	owner := m.owners[to]
	if owner.proven && owner.agent != a || remote.Ufrag == "" {
		return
	}
	id := TransactionID(stun.NewTransactionID())
	if !a.begin(to, id, now) {
		return
	}
	var role stun.Setter = ice.AttrControlled(0)
	if remote.Controlled {
		role = ice.AttrControlling(0)
	}
	check, err := stun.Build(
		stun.BindingRequest, stun.NewTransactionIDSetter(id), stun.NewUsername(remote.Ufrag+":"+a.ufrag),
		role, ice.PriorityAttr(priority), stun.NewShortTermIntegrity(remote.Password), stun.Fingerprint)
	if err != nil {
		return
	}
	socket := m.checks
	if owner.proven {
		socket = m.socketTo(to)
	}
	_ = socket.Send([]udp.Message{{Peer: to, Data: check.Raw, Segment: len(check.Raw)}})
}

// namedPriority is the priority of a peer reflexive candidate (RFC 8445 section 5.1.2.1): type preference 110, local
// preference 65,535, component 1.
const namedPriority = 110<<24 | 65535<<8 | 255

// AddressOf returns the address of a candidate. The result is invalid if the candidate has a host name.
func AddressOf(c ice.Candidate) netip.AddrPort {
	address, err := netip.ParseAddr(c.Address())
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(address.Unmap(), uint16(c.Port()))
}
