package icemux

import (
	"net/netip"
	"time"

	"github.com/volsfu/volsfu/internal/description"
	"github.com/volsfu/volsfu/internal/transport/ratelimit"
)

const (
	// maxRemotes is how many remote addresses one ICE generation takes, as many as a description may have candidates:
	// those that were named, and those that checks have come from. ICE pairs each with its own addresses and has it
	// checked.
	maxRemotes = description.MaxCandidates
	// namedAttempts is how many checks go to an address that was named and has not been heard from. RFC 8445 leaves the
	// number to RFC 8489, whose Rc is 7. The attempts are spaced by CheckInterval three times, and then by twice as
	// much each time, and wait for the next StepInterval: the tenth leaves some 7 s after the first.
	namedAttempts = 10
	// heardSpacing is the least time between two further checks to an address that checks come from, but that answers
	// none. Each takes a check from there that has come since the last one (RFC 8445 section 7.3.1.4): whoever forges
	// the address of a third party sends as much.
	heardSpacing = time.Second
	// maxUnproven is how many addresses may have sent checks and answered none at once. The agent has each checked from
	// each of its own addresses every CheckInterval, at some 15 µs: 16 come to 0.5 % of a core. A host has a few
	// addresses of each family, and answers from each within a round trip.
	maxUnproven = 16
	// unprovenLife is how long an address has a place that has sent checks which the agent did not accept.
	unprovenLife = time.Second
	// maxUnanswered bounds the checks of one ICE generation to addresses that have answered none, in all. A host with
	// 20 candidates is checked five times at each, and a third party that candidates name receives 100 datagrams.
	maxUnanswered = 100
	// maxReplies bounds the responses of one ICE generation to addresses that have answered no check, in all. A host
	// that is there answers the check that its own first one makes due.
	maxReplies = 200
	// maxPending is how many checks wait for their answers. ICE checks an address that answers every two seconds, and
	// while it connects maxRemotes addresses every CheckInterval; an answer to an older check counts no more.
	maxPending = 4 * maxRemotes
)

// Checks that leave for addresses which have not been heard from are paced for each agent (RFC 8445 section 14.2). The
// candidates of a usual host are checked at once: an address of IPv4, some of IPv6, and a few of containers.
const (
	checkRate  = 50 // per second
	checkBurst = 16
)

// TransactionID identifies a STUN transaction (RFC 8489 section 5).
type TransactionID [12]byte

// checks decides which connectivity checks of one ICE agent leave and which are taken, until the agent restarts. An
// agent's own rules (RFC 8445) have it check whatever addresses the remote peer names. It is pure and not safe for
// concurrent use.
type checks struct {
	// unbounded is set for agents whose remote peer is trusted to name its own addresses: those of clients, which
	// connect to the server of their user's choice and have to be the first to send.
	unbounded bool
	// permits reports whether checks may go to an address that has not been heard from; affords reports whether one
	// more check may, and counts it.
	permits func(netip.AddrPort) bool
	affords func(netip.Addr, time.Time) bool

	remotes map[netip.AddrPort]*remoteChecks
	pace    ratelimit.Bucket
	// unanswered counts the checks to addresses that have answered none.
	unanswered int
	// replies counts the responses to addresses that have answered none.
	replies int
	// pending are the checks that wait for an answer; order is a ring of their identifiers, next its oldest.
	pending map[TransactionID]pendingCheck
	order   [maxPending]TransactionID
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
	// last is when the last attempt left, and due when the next may.
	last, due time.Time
	// came is set once a check has come from the address, authentic or not, until that is forgotten; heard once the
	// remote peer has sent a check from there, answered once it has answered one.
	came, heard, answered bool
	// took is how long the address has taken to answer a check.
	took time.Duration
	// seenAt is when a check last came from the address, authentic or not.
	seenAt time.Time
}

func newChecks(unbounded bool, permits func(netip.AddrPort) bool, affords func(netip.Addr, time.Time) bool) *checks {
	return &checks{
		unbounded: unbounded, permits: permits, affords: affords,
		remotes: make(map[netip.AddrPort]*remoteChecks), pending: make(map[TransactionID]pendingCheck),
		pace: ratelimit.NewBucket(checkRate, checkBurst),
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
func (c *checks) sends(to netip.AddrPort, id TransactionID, now time.Time) (forgotten TransactionID, allowed bool) {
	r := c.remote(to)
	if r == nil || !c.unbounded && !r.answered && !c.allows(r, to, now) {
		return TransactionID{}, false
	}
	forgotten = c.order[c.next]
	delete(c.pending, forgotten)
	c.order[c.next], c.pending[id] = id, pendingCheck{to, now}
	c.next = (c.next + 1) % maxPending
	return forgotten, true
}

// allows reports whether a check may leave for an address that has answered none, and counts it if so.
func (c *checks) allows(r *remoteChecks, to netip.AddrPort, now time.Time) bool {
	if c.unanswered >= maxUnanswered || !r.heard && !c.permits(to) {
		return false
	}
	due := r.attempts < namedAttempts && !now.Before(r.due)
	triggered := r.heard && r.seenAt.After(r.last) && now.Sub(r.last) >= heardSpacing
	if !due && !triggered {
		return false
	}
	if !r.heard {
		if !c.pace.Has(now) || !c.affords(to.Addr(), now) {
			return false
		}
		c.pace.Take(now)
	}
	// The shift is bounded, so that the spacing of many attempts does not overflow.
	doublings := min(max(0, r.attempts-2), namedAttempts)
	r.last, r.due = now, now.Add(CheckInterval<<doublings)
	r.attempts++
	c.unanswered++
	return true
}

// hears reports whether a check from an address is taken, which is not known to be authentic.
func (c *checks) hears(from netip.AddrPort, now time.Time) bool {
	r := c.remotes[from]
	if r == nil || !r.came && !r.answered {
		if !c.unbounded && !c.hasRoom(now) {
			return false
		}
		if r = c.remote(from); r == nil {
			return false
		}
	}
	r.came, r.seenAt = true, now
	return true
}

// hasRoom reports whether checks may come from one more address. Addresses that have sent none for unprovenLife that
// the agent accepted are forgotten.
func (c *checks) hasRoom(now time.Time) bool {
	unproven := 0
	for address, r := range c.remotes {
		switch {
		case !r.came || r.answered:
		case r.heard || now.Sub(r.seenAt) <= unprovenLife:
			unproven++
		case r.attempts == 0:
			delete(c.remotes, address)
		default:
			r.came = false
		}
	}
	return unproven < maxUnproven
}

// heard notes that a check from an address was authentic. The remote peer is there, unless it knows somebody who forges
// that address, so another check to the address is due.
func (c *checks) heard(from netip.AddrPort) {
	if r := c.remote(from); r != nil && !r.heard {
		r.heard, r.attempts, r.due = true, 0, time.Time{}
	}
}

// repliesTo reports whether a response to a check may leave for an address, and counts it if the address has answered
// none. A remote peer may know somebody who sends checks under the address of a third party, or of a host that is not
// there.
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
func (c *checks) answers(from netip.AddrPort, id TransactionID, now time.Time) bool {
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
