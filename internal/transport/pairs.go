package transport

import (
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/stun/v4"

	"github.com/volsfu/volsfu/internal/transport/icemux"
)

// MaxPaths is the number of paths of one peer: of interfaces that a client may name, and of pairs that are checked.
const MaxPaths = 8

const (
	// lostChecks is the number of checks in a row without an answer that shows that a pair does not work. A check is
	// sent every StepInterval (250 ms), and the last of them has this time to be answered, so a pair fails 1 to 1.25 s
	// after the path. Checks are counted instead of time: a process that was stalled has sent none, and its pairs work.
	lostChecks = 4
	// returnAfter is the time for which a preferred pair must have worked without a break before media returns to it.
	returnAfter = 2 * time.Second
	// takeoverAfter is the time for which another pair must have worked before it takes over from a pair that fails. If
	// the remote peer was stalled, all pairs fail, and work again within their round-trip times.
	takeoverAfter = icemux.StepInterval
	// expiredChecks is the number of checks after which a pair is no longer checked, if nothing has come from the
	// remote peer on it: those of 5 s.
	expiredChecks = int(consentLife / icemux.StepInterval)
)

// pairAddress identifies a candidate pair of a peer: a port of this endpoint, and the remote peer's address.
type pairAddress struct {
	port   *mediaPort
	remote netip.AddrPort
}

// valid reports whether there is a pair.
func (a pairAddress) valid() bool { return a.remote.IsValid() }

// pairs are the candidate pairs of a peer whose remote peer reads all of them, and the choice of two among them: the
// primary route, which carries all packets, and the second route, which carries copies. Time is an argument of the
// methods. pairs is safe for concurrent use.
//
// An entry is made for an authentic check from the remote peer and, on a client, for an answered check. Media uses a
// pair only after the remote peer has answered a check on it (RFC 7675).
type pairs struct {
	// trusting is set for clients, which number the paths themselves.
	trusting bool
	// counts are by path.
	counts [MaxPaths]pathCounts

	mu     sync.Mutex
	states []*pairState
	// selected is the pair that ICE has selected. remote are the credentials for checks.
	selected pairAddress
	remote   icemux.Remote
	// named are the first addresses in the candidates of a client's server.
	named []netip.AddrPort
}

// pathCounts are the counts of one path.
type pathCounts struct{ first, repeated, copied atomic.Uint64 }

// pairState is one pair. path is its number.
type pairState struct {
	pairAddress
	path uint8
	// silentChecks counts the checks since the last sign of the remote peer: an authentic check, or an answer.
	// unanswered counts the checks since the last answer.
	silentChecks, unanswered int
	// answeredAt is the time of the last answer. since is the time from which the pair has worked without a break.
	answeredAt, since time.Time
	rtt               roundTrip
}

// works reports whether one of the last checks was answered, and whether consent is fresh (RFC 7675).
func (s *pairState) works(now time.Time) bool {
	return !s.answeredAt.IsZero() && s.unanswered < lostChecks && now.Sub(s.answeredAt) < consentLife
}

// answer records an answered check, and reports whether the pair did not work before.
func (s *pairState) answer(now time.Time) (returns bool) {
	if returns = !s.works(now); returns {
		s.since = now
	}
	s.answeredAt, s.unanswered, s.silentChecks = now, 0, 0
	return returns
}

// find returns the state of a pair, nil if it is unknown. The caller of find and add holds the mutex.
func (p *pairs) find(pair pairAddress) *pairState {
	for _, s := range p.states {
		if s.pairAddress == pair {
			return s
		}
	}
	return nil
}

// add returns the state of a pair. If there is no room, add returns nil, or replaces the pair that does not work and
// has been silent for most checks.
func (p *pairs) add(pair pairAddress, path uint8, now time.Time) *pairState {
	if known := p.find(pair); known != nil {
		return known
	}
	made := &pairState{pairAddress: pair, path: path}
	if len(p.states) < MaxPaths {
		p.states = append(p.states, made)
		return made
	}
	silent := -1
	for i, s := range p.states {
		if !s.works(now) && (silent < 0 || s.silentChecks > p.states[silent].silentChecks) {
			silent = i
		}
	}
	if silent < 0 {
		return nil
	}
	p.states[silent] = made
	return made
}

// checked records an authentic check on a pair.
func (p *pairs) checked(pair pairAddress, path uint8, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.add(pair, path, now); s != nil {
		s.path, s.silentChecks = path, 0
	}
}

// answered records an answered check on a pair, and reports whether the pair did not work before. took is the
// round-trip time.
func (p *pairs) answered(pair pairAddress, took time.Duration, now time.Time) (returns bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.find(pair)
	if s == nil && p.trusting {
		s = p.add(pair, pair.port.path, now)
	}
	if s == nil {
		return false
	}
	s.rtt.add(took)
	return s.answer(now)
}

// choose records the pair that ICE has selected. The remote peer has just answered a check on this pair.
func (p *pairs) choose(pair pairAddress, path uint8, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.selected = pair
	if s := p.add(pair, path, now); s != nil {
		s.answer(now)
	}
}

// setRemote sets the remote peer's credentials.
func (p *pairs) setRemote(remote icemux.Remote) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remote = remote
}

// authentic reports whether a response is a success response of the remote peer (RFC 8445 section 7.2.5.2). Media is
// sent on a pair without the selection of ICE, which authenticates responses itself. A host that has nothing to do with
// the remote peer may respond as well, for example a STUN server.
func (p *pairs) authentic(response []byte) bool {
	p.mu.Lock()
	password := p.remote.Password
	p.mu.Unlock()
	// Pion writes into the message, and behind it.
	message := &stun.Message{Raw: slices.Clone(response)}
	return message.Decode() == nil && message.Type == stun.BindingSuccess &&
		stun.NewShortTermIntegrity(password).Check(message) == nil
}

// isSelected reports whether ICE has selected the pair.
func (p *pairs) isSelected(pair pairAddress) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.selected == pair
}

// path returns the number of a pair's path.
func (p *pairs) path(pair pairAddress) uint8 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.find(pair); s != nil {
		return s.path
	}
	return pair.port.path
}

// drop removes the pairs of a port.
func (p *pairs) drop(port *mediaPort) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.states = slices.DeleteFunc(p.states, func(s *pairState) bool { return s.port == port })
}

// name records the address in a candidate of the server. A server's own checks follow the checks of the client.
func (p *pairs) name(address netip.AddrPort) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trusting && address.IsValid() && len(p.named) < MaxPaths && !slices.Contains(p.named, address) {
		p.named = append(p.named, address)
	}
}

// due removes the expired pairs, counts a check of each other pair, and returns the pairs to check and the credentials
// for the checks. A client also checks the addresses that the server has named from each port that reaches no address.
// due is called every StepInterval, after step.
func (p *pairs) due(ports []*mediaPort) (check []pairAddress, remote icemux.Remote) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.states = slices.DeleteFunc(p.states, func(s *pairState) bool { return s.silentChecks >= expiredChecks })
	for _, s := range p.states {
		s.silentChecks++
		s.unanswered++
		check = append(check, s.pairAddress)
	}
	if !p.trusting {
		return check, p.remote
	}
	for _, port := range ports {
		if slices.ContainsFunc(check, func(a pairAddress) bool { return a.port == port }) {
			continue
		}
		for _, address := range p.named {
			if address.Addr().Is4() == port.Address().Addr().Is4() {
				check = append(check, pairAddress{port, address})
			}
		}
	}
	return check, p.remote
}

// step returns the pairs of the two routes. The primary route stays on its pair while the pair works, unless a pair
// with a lower number has worked for returnAfter. If the pair does not work, the primary route moves to the pair with
// the lowest number that has worked for takeoverAfter. The second route is a working pair of another path. An invalid
// pair is none.
func (p *pairs) step(primary, second pairAddress, now time.Time) (pairAddress, pairAddress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	present := p.find(primary)
	works := present != nil && present.works(now)
	best := p.best(now, func(s *pairState) bool {
		worked := now.Sub(s.since)
		return !works && worked >= takeoverAfter || works && s.path < present.path && worked >= returnAfter
	})
	if best != nil {
		primary, present, works = best.pairAddress, best, true
	}
	if !works {
		return primary, pairAddress{}
	}
	apart := func(s *pairState) bool { return s.path != present.path }
	if s := p.find(second); s != nil && s.works(now) && apart(s) {
		return primary, second
	}
	if s := p.best(now, apart); s != nil {
		return primary, s.pairAddress
	}
	return primary, pairAddress{}
}

// best returns the working pair with the lowest number among those that are eligible, nil if there is none. The caller
// holds the mutex.
func (p *pairs) best(now time.Time, eligible func(*pairState) bool) (best *pairState) {
	for _, s := range p.states {
		if s.works(now) && eligible(s) && (best == nil || s.path < best.path) {
			best = s
		}
	}
	return best
}
