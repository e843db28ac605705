package transport

import (
	"net/netip"
	"time"

	"github.com/volsfu/volsfu/internal/description"
)

const (
	// maxRemotes is how many remote addresses one ICE generation takes, as many as a description may have candidates: those
	// that were named, and those that checks have come from. ICE pairs each with its own addresses and has it checked.
	maxRemotes = description.MaxCandidates
	// namedAttempts is how many checks go to an address that was named and has not been heard from. RFC 8445 leaves the
	// number to RFC 8489, whose Rc is 7. The attempts are spaced by checkInterval three times, and then by twice as much
	// each time, and wait for the next consentInterval: the tenth leaves some 7 s after the first.
	namedAttempts = 10
	// heardAttempts is the same for an address that a check has come from, but that has answered none. The spacing ends at
	// heardSpacing, so that the attempts last for 37 s: longer than a peer is given to connect.
	heardAttempts = 40
	heardSpacing  = time.Second
	// unprovenLife is how long an address has a place that has sent checks which the agent did not accept.
	unprovenLife = time.Second
	// maxUnanswered bounds the checks of one ICE generation to addresses that have answered none, in all. A host with 20
	// candidates is checked five times at each, and a third party that candidates name receives 100 datagrams.
	maxUnanswered = 100
	// maxReplies bounds the responses of one ICE generation to addresses that have answered no check, in all. A host that
	// is there answers the check that its own first one makes due.
	maxReplies = 200
	// maxPending is how many checks wait for their answers. ICE checks an address that answers every two seconds, and
	// while it connects maxRemotes addresses every checkInterval; an answer to an older check counts no more.
	maxPending = 4 * maxRemotes
)

// Checks that leave for addresses which have not been heard from are paced for each agent (RFC 8445 section 14.2). The
// candidates of a usual host are checked at once: an address of IPv4, some of IPv6, and a few of containers.
const (
	checkRate  = 50 // per second
	checkBurst = 16
)

// transactionID identifies a STUN transaction (RFC 8489 section 5).
type transactionID [12]byte

// checks decides which connectivity checks of one ICE agent leave and which are taken, until the agent restarts. An
// agent's own rules (RFC 8445) have it check whatever addresses the remote peer names. It is pure and not safe for
// concurrent use.
type checks struct {
	// unbounded is set for agents whose remote peer is trusted to name its own addresses: those of clients, which
	// connect to the server of their user's choice and have to be the first to send.
	unbounded bool
	// permits reports whether checks may go to an address that has not been heard from.
	permits func(netip.AddrPort) bool

	remotes map[netip.AddrPort]*remoteChecks
	pace    bucket
	// unanswered counts the checks to addresses that have answered none.
	unanswered int
	// replies counts the responses to addresses that have answered none.
	replies int
	// pending are the checks that wait for an answer; order is a ring of their identifiers, next its oldest.
	pending map[transactionID]pendingCheck
	order   [maxPending]transactionID
	next    int
}

// pendingCheck is a check that waits for its answer.
type pendingCheck struct {
	to netip.AddrPort
	at time.Time
}

// remoteChecks is the state of one remote address.
type remoteChecks struct {
	attempts int
	due      time.Time
	// heard is set once the remote peer has sent a check from the address; answered once it has answered one.
	heard, answered bool
	// took is how long the address has taken to answer a check.
	took time.Duration
	// seenAt is when a check last came from the address, authentic or not.
	seenAt time.Time
}

func newChecks(unbounded bool, permits func(netip.AddrPort) bool) *checks {
	return &checks{
		unbounded: unbounded, permits: permits,
		remotes: make(map[netip.AddrPort]*remoteChecks), pending: make(map[transactionID]pendingCheck),
		pace: newBucket(checkRate, checkBurst),
	}
}

// remote finds the state of an address, and makes it if there is room. It is nil if there is none.
func (c *checks) remote(address netip.AddrPort) *remoteChecks {
	r := c.remotes[address]
	if r == nil && (c.unbounded || len(c.remotes) < maxRemotes) {
		r = &remoteChecks{}
		c.remotes[address] = r
	}
	return r
}

// sends reports whether a check may leave for an address, and notes its identifier if so. The identifier of the check
// whose answer counts no more is returned, zero if there is none.
func (c *checks) sends(to netip.AddrPort, id transactionID, now time.Time) (forgotten transactionID, allowed bool) {
	r := c.remote(to)
	if r == nil || !c.unbounded && !r.answered && !c.allows(r, to, now) {
		return transactionID{}, false
	}
	forgotten = c.order[c.next]
	delete(c.pending, forgotten)
	c.order[c.next], c.pending[id] = id, pendingCheck{to, now}
	c.next = (c.next + 1) % maxPending
	return forgotten, true
}

// allows reports whether a check may leave for an address that has answered none, and counts it if so.
func (c *checks) allows(r *remoteChecks, to netip.AddrPort, now time.Time) bool {
	attempts, longest := namedAttempts, time.Duration(1<<62)
	if r.heard {
		attempts, longest = heardAttempts, heardSpacing
	} else if !c.permits(to) {
		return false
	}
	if r.attempts >= attempts || c.unanswered >= maxUnanswered || now.Before(r.due) || !r.heard && !c.pace.take(now) {
		return false
	}
	// The shift is bounded, so that the spacing of many attempts does not overflow.
	doublings := min(max(0, r.attempts-2), namedAttempts)
	r.due = now.Add(min(checkInterval<<doublings, longest))
	r.attempts++
	c.unanswered++
	return true
}

// hears reports whether a check from an address is taken, which is not known to be authentic. If there is no room, the
// address takes the place of one that has been no more than that for unprovenLife.
func (c *checks) hears(from netip.AddrPort, now time.Time) bool {
	if r := c.remote(from); r != nil {
		r.seenAt = now
		return true
	}
	for address, r := range c.remotes {
		if !r.heard && !r.answered && r.attempts == 0 && now.Sub(r.seenAt) > unprovenLife {
			delete(c.remotes, address)
			c.remotes[from] = &remoteChecks{seenAt: now}
			return true
		}
	}
	return false
}

// heard notes that a check from an address was authentic. The remote peer is there, unless it knows somebody who forges
// that address, so another check to the address is due.
func (c *checks) heard(from netip.AddrPort) {
	if r := c.remote(from); r != nil && !r.heard {
		r.heard, r.attempts, r.due = true, 0, time.Time{}
	}
}

// repliesTo reports whether a response to a check may leave for an address, and counts it if the address has answered none.
// A remote peer may know somebody who sends checks under the address of a third party, or of a host that is not there.
func (c *checks) repliesTo(to netip.AddrPort) bool {
	if r := c.remotes[to]; c.unbounded || r != nil && r.answered {
		return true
	}
	c.replies++
	return c.replies <= maxReplies
}

// reached reports whether the remote peer has been heard from at an address.
func (c *checks) reached(address netip.AddrPort) bool {
	r := c.remotes[address]
	return r != nil && (r.heard || r.answered)
}

// answers reports whether a response answers a check, which shows that the remote peer receives at that address.
func (c *checks) answers(from netip.AddrPort, id transactionID, now time.Time) bool {
	check, waits := c.pending[id]
	if !waits || check.to != from {
		return false
	}
	delete(c.pending, id)
	if r := c.remotes[from]; r != nil {
		r.answered, r.took = true, now.Sub(check.at)
	}
	return true
}
