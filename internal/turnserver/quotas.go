package turnserver

import (
	"net/netip"
	"strings"
	"sync"

	"github.com/volsfu/volsfu/internal/transport/ratelimit"
)

// sessionAllocations is the number of allocations of one session: over UDP, TCP and TLS, in two address families, and
// the same again during an ICE restart.
const sessionAllocations = 12

// refusal is the reason why the server refuses a request or drops a packet. Its values are those of a label.
type refusal string

const (
	// refusedCredential: the credential is malformed or has a wrong password. refusedExpired: the credential has
	// expired. refusedSession: the credential's session has ended or is another server's.
	refusedCredential refusal = "credential"
	refusedExpired    refusal = "expired"
	refusedSession    refusal = "session"
	// refusedPeer: the other address is not the media port.
	refusedPeer refusal = "peer"
	// refusedAddressQuota, refusedSessionQuota and refusedTotal: the address, the session or the server has as many
	// allocations as it may have.
	refusedAddressQuota refusal = "address"
	refusedSessionQuota refusal = "quota"
	refusedTotal        refusal = "total"
	// refusedConnection: the address or the server has too many connections. refusedRate: an address sends too many
	// requests.
	refusedConnection refusal = "connections"
	refusedRate       refusal = "rate"
	// refusedMethod: malformed messages, and requests that the server does not offer.
	refusedMethod refusal = "method"
)

// refusals are all reasons.
var refusals = []refusal{refusedCredential, refusedExpired, refusedSession, refusedPeer, refusedAddressQuota,
	refusedSessionQuota, refusedTotal, refusedConnection, refusedRate, refusedMethod}

// user is a session at one address. Pion knows a user by its text.
type user struct {
	session string
	// source is empty for addresses without a limit.
	source string
}

// userAt returns the user of a session at an address.
func userAt(session string, address netip.Addr) user {
	source, limited := ratelimit.Source(address)
	if !limited {
		return user{session: session}
	}
	return user{session, source.String()}
}

// String returns the text of the user, from which parseUser reads it. A source has no space.
func (u user) String() string { return u.source + " " + u.session }

func parseUser(text string) (u user, ok bool) {
	u.source, u.session, ok = strings.Cut(text, " ")
	return u, ok
}

// quotas counts the allocations of sessions and addresses. quotas is safe for concurrent use.
type quotas struct {
	total, address int

	mu                  sync.Mutex
	open                int
	sessions, addresses map[string]int
}

func newQuotas(total, address int) *quotas {
	return &quotas{total: total, address: address, sessions: make(map[string]int), addresses: make(map[string]int)}
}

// refuses returns the reason why a user may have no further allocation, empty if it may.
func (q *quotas) refuses(u user) refusal {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.check(u)
}

// check is refuses for callers that hold the mutex.
func (q *quotas) check(u user) refusal {
	switch {
	case q.sessions[u.session] >= sessionAllocations:
		return refusedSessionQuota
	case u.source != "" && q.addresses[u.source] >= q.address:
		return refusedAddressQuota
	case q.open >= q.total:
		return refusedTotal
	}
	return ""
}

// take counts an allocation of a user, or returns the reason why the user may have none.
func (q *quotas) take(u user) refusal {
	q.mu.Lock()
	defer q.mu.Unlock()
	if refused := q.check(u); refused != "" {
		return refused
	}
	q.open++
	q.sessions[u.session]++
	if u.source != "" {
		q.addresses[u.source]++
	}
	return ""
}

// release ends an allocation of a user.
func (q *quotas) release(u user) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open--
	if q.sessions[u.session]--; q.sessions[u.session] == 0 {
		delete(q.sessions, u.session)
	}
	if u.source == "" {
		return
	}
	if q.addresses[u.source]--; q.addresses[u.source] == 0 {
		delete(q.addresses, u.source)
	}
}

// count returns the number of allocations.
func (q *quotas) count() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.open
}
