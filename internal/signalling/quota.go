package signalling

import (
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// quota knows how many websockets are open by each token or from each address, and how many were opened of late. A
// member that opens websockets without end has others be told of joins without end, has the server keep what each
// websocket may send before it is looked at, and leaves nobody else a place. It is safe for concurrent use.
type quota[K comparable] struct {
	limits quotaLimits

	mu      sync.Mutex
	members map[K]*member
	// sweep is how many members may be known before those are forgotten of whom there is nothing to know.
	sweep int
}

// quotaLimits are what one member may do.
type quotaLimits struct {
	// open is how many websockets may be open at once, perSecond how many may be opened in the long run, and burst at
	// once.
	open      int
	perSecond float64
	burst     int
	// what is counted; of says what a member is, and keys name the two limits of the configuration.
	what, of          string
	openKey, rateKeys string
}

// member is a token, or an address, that is counted by itself.
type member struct {
	open   int
	opened *rate.Limiter
	// answers bounds the answers to refusals, nil before the first.
	answers *rate.Limiter
}

// quotaError says which limit a websocket exceeds, and after which time it may be tried again.
type quotaError struct {
	reason refusal
	text   string
	after  time.Duration
}

// Error implements error.
func (e *quotaError) Error() string { return e.text }

const (
	// leastSweep keeps sweeps rare while there are few members.
	leastSweep = 64
	// maxMembers bounds what a quota keeps, at some 200 bytes each: as many as there are descriptors for websockets
	// by the unit of systemd. A client that comes from ever other addresses (an IPv6 prefix of 48 bits has as many of
	// 64) makes members be forgotten early that have nothing open.
	maxMembers = 1 << 16
	// evictionTries is how many members are looked at, at random, for one to forget when there are as many as may be.
	evictionTries = 64
	// openAgain is after which time whoever has too many open may try again: when one ends, nobody knows.
	openAgain = 5 * time.Second
)

const (
	// answerRate is the number of refusals per second that one member is answered, as long as none waits for longer
	// than the bounds below. A refused request or join costs 0.25 to 1 ms with its connection, so 10 per second are
	// at most 1 % of a core.
	answerRate = 10
	// answerBurst is the number of refusals that one member is answered without a delay: one for each participant of a
	// full room behind one NAT, whose resumes a restarted server refuses.
	answerBurst = 100
	// maxRequestWait bounds how long a refused request waits. The 1024 connections that one address may have by default
	// (server.address_connections) are then answered 128 times per second, some 3 % of a core. Clients of this project
	// give up after 10 s.
	maxRequestWait = 8 * time.Second
	// maxJoinWait bounds how long a refused join waits. A websocket may try maxRefusedJoins within the join timeout (10
	// s). A request for a websocket of VR2Gather's dialect is a join.
	maxJoinWait = 1500 * time.Millisecond
)

// answerWait returns the delay of the answer to a refusal, so much at most. There is none for the zero key, which
// stands for this host's own addresses, and for members beyond maxMembers.
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

// enter counts a websocket that is about to be opened, unless there are too many: then the error, which is an
// *quotaError, says so.
func (q *quota[K]) enter(key K, now time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	m, err := q.member(key, now)
	if err != nil {
		return err
	}
	if m.open >= q.limits.open {
		text := fmt.Sprintf("%d websockets are open %s, the limit is %d (%s)", m.open, q.limits.of, q.limits.open,
			q.limits.openKey)
		return &quotaError{refusedOpen, text, openAgain}
	}
	if err := q.take(m, 1, now); err != nil {
		return err
	}
	m.open++
	return nil
}

// spend takes units of the rate of a member, unless there are fewer: then the error, which is an *quotaError, says so.
// More than the burst count as the burst.
func (q *quota[K]) spend(key K, units int, now time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	m, err := q.member(key, now)
	if err != nil {
		return err
	}
	return q.take(m, min(units, q.limits.burst), now)
}

// member finds a member, and begins to count one that is not known. The caller holds the mutex, here and below.
func (q *quota[K]) member(key K, now time.Time) (*member, error) {
	m := q.members[key]
	if m == nil {
		if len(q.members) >= q.sweep {
			q.forget(now)
		}
		if len(q.members) >= maxMembers && !q.evict() {
			return nil, &quotaError{refusedOpen, fmt.Sprintf("%d others are counted already", maxMembers), openAgain}
		}
		m = &member{opened: rate.NewLimiter(rate.Limit(q.limits.perSecond), q.limits.burst)}
		q.members[key] = m
	}
	return m, nil
}

// take takes units of the rate of a member.
func (q *quota[K]) take(m *member, units int, now time.Time) error {
	if m.opened.AllowN(now, units) {
		return nil
	}
	missing := float64(units) - m.opened.TokensAt(now)
	text := fmt.Sprintf("%g %s per second are the limit %s, and %d at once (%s)",
		q.limits.perSecond, q.limits.what, q.limits.of, q.limits.burst, q.limits.rateKeys)
	return &quotaError{refusedRate, text,
		time.Duration(min(missing/q.limits.perSecond, maxRetryAfter.Seconds()) * float64(time.Second))}
}

// maxRetryAfter bounds what a client is told to wait, however slow a rate is configured.
const maxRetryAfter = time.Hour

// retryAfter is that time as HTTP has it (RFC 9110, section 10.2.3): whole seconds, at least one.
func (e *quotaError) retryAfter() int { return max(1, int(math.Ceil(e.after.Seconds()))) }

// leave counts a websocket that has ended.
func (q *quota[K]) leave(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.members[key].open--
}

// forget drops members who have nothing open, and long enough so for them to be as anybody new.
func (q *quota[K]) forget(now time.Time) {
	for key, m := range q.members {
		answered := m.answers == nil || m.answers.TokensAt(now) >= answerBurst
		if answered && m.open == 0 && m.opened.TokensAt(now) >= float64(q.limits.burst) {
			delete(q.members, key)
		}
	}
	q.sweep = max(leastSweep, 2*len(q.members))
}

// evict drops a member who has nothing open, and tells whether one was found.
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
