package icemux

import (
	"net/netip"
	"time"

	"github.com/volsfu/volsfu/internal/description"
	"github.com/volsfu/volsfu/internal/transport/ratelimit"
)

const (
	// maxRemotes is the number of remote addresses of one ICE generation, as many as a description may have candidates:
	// the named addresses, and the addresses that checks have come from. ICE pairs each with its own addresses and
	// checks the pairs.
	maxRemotes = description.MaxCandidates
	// namedAttempts is the number of checks to a named address from which nothing was received. RFC 8445 refers to RFC
	// 8489, whose Rc is 7. The first three intervals are CheckInterval, and each further interval is twice the previous
	// one. A check waits for the next StepInterval. The tenth check leaves some 7 s after the first.
	namedAttempts = 10
	// triggeredSpacing is the least time between two further checks to an address that sends checks but does not answer
	// any. Each such check requires a check received from that address since the last one (RFC 8445 section 7.3.1.4). A
	// sender that forges the address of a third party therefore has to send as many checks as the third party receives.
	triggeredSpacing = time.Second
	// maxUnproven is the number of addresses that may have sent checks without having answered one. The agent checks
	// each of them from each of its own addresses every CheckInterval, at some 15 µs per check: 16 addresses take 0.5 %
	// of a core. A host has a few addresses of each family and answers from each within a round trip.
	maxUnproven = 16
	// unprovenLife is the time for which an address occupies an entry after checks that the agent did not accept.
	unprovenLife = time.Second
	// staleLife is the time without a check or an answer after which an address makes room for another one. Media is
	// not sent there any more: consent has expired (RFC 7675).
	staleLife = 30 * time.Second
	// maxReplaced is the number of addresses of one ICE generation that may have made room, of those that the agent
	// knows: Pion never forgets an address. Each takes the agent some 2 kB. A client that changes its address every
	// staleLife reaches the bound after four hours. It is then refused until ICE restarts.
	maxReplaced = 512
	// maxUnanswered bounds all checks of one ICE generation to addresses that have not answered a check. A host with 20
	// candidates is checked five times at each. A third party that candidates name receives at most 100 datagrams.
	maxUnanswered = 100
	// maxReplies bounds all responses of one ICE generation to addresses that have not answered a check. A host that is
	// reachable answers the check that its own first check triggers.
	maxReplies = 200
	// maxPending is the number of checks that wait for answers. ICE checks an address that answers every two seconds
	// and, while connecting, maxRemotes addresses every CheckInterval. An answer to an older check is ignored.
	maxPending = 4 * maxRemotes
)

// Checks to addresses from which nothing was received are paced for each agent (RFC 8445 section 14.2). The burst
// covers the candidates of a usual host: one IPv4 address, some IPv6 addresses, and a few of containers.
const (
	checkRate  = 50 // per second
	checkBurst = 16
)

// TransactionID identifies a STUN transaction (RFC 8489 section 5).
type TransactionID [12]byte

// checks decides which connectivity checks of one ICE agent may leave and which received checks are accepted, until the
// agent restarts. RFC 8445 alone would make the agent check all addresses that the remote peer names. checks is pure
// and not safe for concurrent use.
type checks struct {
	// unbounded is set for clients. A client trusts the server that its user chose to name its own addresses, and is
	// the first to send.
	unbounded bool
	// permits reports whether checks may go to an address from which nothing was received. affords reports whether the
	// rate limit of an address permits one more check, and counts the check.
	permits func(netip.AddrPort) bool
	affords func(netip.Addr, time.Time) bool

	// forget is called for an address that has made room for another one.
	forget func(netip.AddrPort)

	remotes map[netip.AddrPort]*remoteChecks
	// replaced counts the addresses that have made room.
	replaced int
	pace     ratelimit.Bucket
	// unanswered counts the checks to addresses that have not answered a check.
	unanswered int
	// replies counts the responses to addresses that have not answered a check.
	replies int
	// pending are the checks that wait for an answer. order has the identifiers of the latest checks, at most
	// maxPending. Once it is full, it is a ring, and next is the index of the oldest.
	pending map[TransactionID]pendingCheck
	order   []TransactionID
	next    int
}

// pendingCheck is a check that waits for its answer.
type pendingCheck struct {
	to netip.AddrPort
	at time.Time
}

// remoteChecks is the state of one remote address. attempts counts the checks sent.
type remoteChecks struct {
	attempts int
	// last is the time of the last attempt. due is the earliest time of the next.
	last, due time.Time
	// came is set once a check has come from the address, authentic or not, and cleared when the entry expires.
	// authentic is set once an authentic check has come from the address, answered once the address has answered a
	// check.
	came, authentic, answered bool
	// took is the time between the last answered check and its answer.
	took time.Duration
	// seenAt is the time at which a check last came from the address, authentic or not, answeredAt that of the last
	// answer.
	seenAt, answeredAt time.Time
	// unanswered and replies are the checks and the responses of this address in the counts of checks.
	unanswered, replies int
}

// stale reports whether for staleLife no check has come from the address, the address has answered none, and none was
// sent to it before its first answer.
func (r *remoteChecks) stale(now time.Time) bool {
	for _, at := range []time.Time{r.seenAt, r.answeredAt, r.last} {
		if now.Sub(at) < staleLife {
			return false
		}
	}
	return true
}

func newChecks(unbounded bool, permits func(netip.AddrPort) bool, affords func(netip.Addr, time.Time) bool) *checks {
	return &checks{
		unbounded: unbounded, permits: permits, affords: affords, forget: func(netip.AddrPort) {},
		remotes: make(map[netip.AddrPort]*remoteChecks), pending: make(map[TransactionID]pendingCheck),
		pace: ratelimit.NewBucket(checkRate, checkBurst),
	}
}

// remote returns the state of an address. It adds the address if there is room, and returns nil otherwise.
func (c *checks) remote(address netip.AddrPort, now time.Time) *remoteChecks {
	r := c.remotes[address]
	if r == nil && (c.unbounded || len(c.remotes) < maxRemotes || c.makeRoom(now)) {
		r = &remoteChecks{}
		c.remotes[address] = r
	}
	return r
}

// makeRoom removes an address that is stale, and reports whether there was one. The counts keep the checks and the
// responses that were sent there.
func (c *checks) makeRoom(now time.Time) bool {
	for address, r := range c.remotes {
		known := r.authentic || r.answered
		if !r.stale(now) || known && c.replaced >= maxReplaced {
			continue
		}
		if known {
			c.replaced++
		}
		delete(c.remotes, address)
		c.forget(address)
		return true
	}
	return false
}

// sends reports whether a check may leave for an address, and if so records its identifier. forgotten is the identifier
// of the check that no longer waits for an answer, zero if there is none.
func (c *checks) sends(to netip.AddrPort, id TransactionID, now time.Time) (forgotten TransactionID, allowed bool) {
	r := c.remote(to, now)
	if r == nil || !c.unbounded && !r.answered && !c.allows(r, to, now) {
		return TransactionID{}, false
	}
	if len(c.order) < maxPending {
		c.order = append(c.order, id)
	} else {
		forgotten = c.order[c.next]
		delete(c.pending, forgotten)
		c.order[c.next] = id
		c.next = (c.next + 1) % maxPending
	}
	c.pending[id] = pendingCheck{to, now}
	return forgotten, true
}

// allows reports whether a check may leave for an address that has not answered a check, and if so counts the check.
func (c *checks) allows(r *remoteChecks, to netip.AddrPort, now time.Time) bool {
	if c.unanswered >= maxUnanswered || !r.authentic && !c.permits(to) {
		return false
	}
	due := r.attempts < namedAttempts && !now.Before(r.due)
	triggered := r.authentic && r.seenAt.After(r.last) && now.Sub(r.last) >= triggeredSpacing
	if !due && !triggered {
		return false
	}
	if !r.authentic {
		if !c.pace.Has(now) || !c.affords(to.Addr(), now) {
			return false
		}
		c.pace.Take(now)
	}
	// The shift is bounded, so that the interval of many attempts does not overflow.
	doublings := min(max(0, r.attempts-2), namedAttempts)
	r.last, r.due = now, now.Add(CheckInterval<<doublings)
	r.attempts++
	r.unanswered++
	c.unanswered++
	return true
}

// accepts reports whether a check from an address is accepted. The check is not authenticated yet.
func (c *checks) accepts(from netip.AddrPort, now time.Time) bool {
	r := c.remotes[from]
	if r == nil || !r.came && !r.answered {
		if !c.unbounded && !c.hasRoom(now) {
			return false
		}
		if r = c.remote(from, now); r == nil {
			return false
		}
	}
	r.came, r.seenAt = true, now
	return true
}

// hasRoom reports whether checks may come from one more address. Addresses without an accepted check for unprovenLife
// are removed.
func (c *checks) hasRoom(now time.Time) bool {
	unproven := 0
	for address, r := range c.remotes {
		switch {
		case !r.came || r.answered:
		case r.authentic || now.Sub(r.seenAt) <= unprovenLife:
			unproven++
		case r.attempts == 0:
			delete(c.remotes, address)
		default:
			r.came = false
		}
	}
	return unproven < maxUnproven
}

// authenticated records an authentic check from an address. Unless an accomplice of the remote peer forges the address,
// the remote peer is there. Another check to the address is therefore due.
func (c *checks) authenticated(from netip.AddrPort, now time.Time) {
	if r := c.remote(from, now); r != nil && !r.authentic {
		r.authentic, r.attempts, r.due = true, 0, time.Time{}
	}
}

// repliesTo reports whether a response to a check may leave for an address. If the address has not answered a check,
// the response is counted. An accomplice of the remote peer may send checks with the address of a third party, or of a
// host that does not exist.
func (c *checks) repliesTo(to netip.AddrPort) bool {
	r := c.remotes[to]
	if c.unbounded || r != nil && r.answered {
		return true
	}
	if c.replies >= maxReplies {
		return false
	}
	c.replies++
	if r != nil {
		r.replies++
	}
	return true
}

// reached reports whether authentic checks or answers have come from an address.
func (c *checks) reached(address netip.AddrPort) bool {
	r := c.remotes[address]
	return r != nil && (r.authentic || r.answered)
}

// answers reports whether a response answers a check, and returns the time since the check left. The answer shows that
// the remote peer receives at that address.
func (c *checks) answers(from netip.AddrPort, id TransactionID, now time.Time) (took time.Duration, ok bool) {
	check, waits := c.pending[id]
	if !waits || check.to != from {
		return 0, false
	}
	delete(c.pending, id)
	took = now.Sub(check.at)
	if r := c.remotes[from]; r != nil {
		c.unanswered -= r.unanswered
		c.replies -= r.replies
		r.answered, r.took, r.answeredAt, r.unanswered, r.replies = true, took, now, 0, 0
	}
	return took, true
}
