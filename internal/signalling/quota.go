package signalling

import (
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// quota counts the open and the recently opened websockets of each token or address. A client without a limit could
// flood rooms with joins, make the server buffer messages for many websockets, and leave no place for others. quota is
// safe for concurrent use.
type quota[K comparable] struct {
	limits quotaLimits

	mu      sync.Mutex
	members map[K]*member
	// sweep is the number of members at which idle members are removed.
	sweep int
}

// quotaLimits are the limits of one member.
type quotaLimits struct {
	// open is the maximum number of open websockets, perSecond the long-term rate of new websockets, and burst the
	// number that may be opened at once.
	open      int
	perSecond float64
	burst     int
	// what names the counted items and of the member, for error texts. openKey and rateKey name the configuration keys
	// of the two limits.
	what, of         string
	openKey, rateKey string
}

// member is a token or an address with its own counts.
type member struct {
	open   int
	opened *rate.Limiter
	// answers bounds the answers to refusals. answers is nil before the first refusal.
	answers *rate.Limiter
}

// quotaError names the exceeded limit and the time after which the client may try again.
type quotaError struct {
	reason refusal
	text   string
	after  time.Duration
}

// Error implements error.
func (e *quotaError) Error() string { return e.text }

const (
	// leastSweep keeps sweeps rare if there are few members.
	leastSweep = 64
	// maxMembers bounds the members of a quota, at some 200 bytes each. maxMembers equals the number of descriptors in
	// the systemd unit. A client with many addresses (an IPv6 prefix of 48 bits has 65,536 prefixes of 64 bits) causes
	// the early removal of members without an open websocket.
	maxMembers = 1 << 16
	// evictionTries is the number of random members that evict examines.
	evictionTries = 64
	// openAgain is the time after which a member with too many open websockets may try again. The time at which a
	// websocket ends is not known.
	openAgain = 5 * time.Second
)

const (
	// answerRate is the number of refusals per second that are answered for one member, as long as no answer waits
	// longer than the bounds below. A refused request or join costs 0.25 to 1 ms with its connection, so 10 per second
	// are at most 1 % of a core.
	answerRate = 10
	// answerBurst is the number of refusals that one member receives without a delay: one for each participant of a
	// full room behind one NAT, whose resumes a restarted server refuses.
	answerBurst = 100
	// maxRequestWait bounds the wait of a refused request. The 1024 connections that one address may have by default
	// (server.address_connections) are then answered 128 times per second, some 3 % of a core. Clients of this project
	// give up after 10 s.
	maxRequestWait = 8 * time.Second
	// maxJoinWait bounds the wait of a refused join. A websocket may try maxRefusedJoins within the join timeout (10
	// s). In the VR2Gather dialect, the request for a websocket is the join.
	maxJoinWait = 1500 * time.Millisecond
)

// answerWait returns the delay before a refusal is answered, at most the given duration. The delay is 0 for the zero
// key, which stands for addresses of this host, and if there are more than maxMembers members.
func (q *quota[K]) answerWait(key K, now time.Time, most time.Duration) time.Duration {
	var own K
	if key == own {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	m, err := q.member(key, now)
	if err != nil {
		return 0
	}
	if m.answers == nil {
		m.answers = rate.NewLimiter(answerRate, answerBurst)
	}
	turn := m.answers.ReserveN(now, 1)
	wait := turn.DelayFrom(now)
	if wait > most {
		turn.CancelAt(now)
		return most
	}
	return wait
}

func newQuota[K comparable](limits quotaLimits) *quota[K] {
	return &quota[K]{limits: limits, members: make(map[K]*member), sweep: leastSweep}
}

// enter counts a websocket that is about to be opened. enter returns a *quotaError if a limit is exceeded.
func (q *quota[K]) enter(key K, now time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	m, err := q.member(key, now)
	if err != nil {
		return err
	}
	if err := q.checkOpen(m); err != nil {
		return err
	}
	if err := q.take(m, 1, now); err != nil {
		return err
	}
	m.open++
	return nil
}

// hold is enter for a session that begins with a request that was counted: the session costs nothing of the rate.
func (q *quota[K]) hold(key K, now time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	m, err := q.member(key, now)
	if err == nil {
		err = q.checkOpen(m)
	}
	if err != nil {
		return err
	}
	m.open++
	return nil
}

// checkOpen returns a *quotaError if no further websocket may be open. The caller holds the mutex.
func (q *quota[K]) checkOpen(m *member) error {
	if m.open < q.limits.open {
		return nil
	}
	text := fmt.Sprintf("%d websockets are open %s, the limit is %d (%s)", m.open, q.limits.of, q.limits.open,
		q.limits.openKey)
	return &quotaError{refusedOpen, text, openAgain}
}

// spend charges units to the rate of a member. spend returns a *quotaError if the member has fewer units left. More
// units than the burst count as the burst.
func (q *quota[K]) spend(key K, units int, now time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	m, err := q.member(key, now)
	if err != nil {
		return err
	}
	return q.take(m, min(units, q.limits.burst), now)
}

// member returns the member of a key and adds the member if the key is new. The caller holds the mutex, here and below.
func (q *quota[K]) member(key K, now time.Time) (*member, error) {
	m := q.members[key]
	if m == nil {
		if len(q.members) >= q.sweep {
			q.forget(now)
		}
		if len(q.members) >= maxMembers && !q.evict() {
			text := fmt.Sprintf("the server counts the websockets of %d other tokens or addresses, the maximum",
				maxMembers)
			return nil, &quotaError{refusedOpen, text, openAgain}
		}
		m = &member{opened: rate.NewLimiter(rate.Limit(q.limits.perSecond), q.limits.burst)}
		q.members[key] = m
	}
	return m, nil
}

// take charges units to the rate of a member.
func (q *quota[K]) take(m *member, units int, now time.Time) error {
	if m.opened.AllowN(now, units) {
		return nil
	}
	missing := float64(units) - m.opened.TokensAt(now)
	text := fmt.Sprintf("the limit is %g %s per second %s, and %d at once (%s)",
		q.limits.perSecond, q.limits.what, q.limits.of, q.limits.burst, q.limits.rateKey)
	return &quotaError{refusedRate, text,
		time.Duration(min(missing/q.limits.perSecond, maxRetryAfter.Seconds()) * float64(time.Second))}
}

// maxRetryAfter bounds the retry time that is sent to a client if the configured rate is low.
const maxRetryAfter = time.Hour

// retryAfter returns the value of Retry-After (RFC 9110, section 10.2.3): whole seconds, at least 1.
func (e *quotaError) retryAfter() int { return max(1, int(math.Ceil(e.after.Seconds()))) }

// leave counts a websocket that has ended.
func (q *quota[K]) leave(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.members[key].open--
}

// forget removes the members without an open websocket whose rates have recovered completely.
func (q *quota[K]) forget(now time.Time) {
	for key, m := range q.members {
		answered := m.answers == nil || m.answers.TokensAt(now) >= answerBurst
		if answered && m.open == 0 && m.opened.TokensAt(now) >= float64(q.limits.burst) {
			delete(q.members, key)
		}
	}
	q.sweep = max(leastSweep, 2*len(q.members))
}

// evict removes one member without an open websocket and reports whether such a member was found.
func (q *quota[K]) evict() bool {
	tries := 0
	for key, m := range q.members {
		if m.open == 0 {
			delete(q.members, key)
			return true
		}
		if tries++; tries == evictionTries {
			break
		}
	}
	return false
}
