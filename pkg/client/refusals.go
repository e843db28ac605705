package client

import (
	"errors"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
)

// refusals judges the replies to the attempts of one round to resume a session. It is pure. The web client has the same
// rules (clients/web/src/signal/refusals.ts). testdata/failover.json tests both.
type refusals struct {
	// several is set if the round has more than one server.
	several           bool
	attempts, refused int
	// wait is the least time until the next round.
	wait time.Duration
}

// add adds an attempt that failed. e is the server's refusal, nil if the server did not reply. add reports whether the
// session has ended: other servers would refuse, too.
func (r *refusals) add(e *signal.Error) (ended bool) {
	r.attempts++
	switch {
	case e == nil:
	case e.RetryAfterMS > 0:
		r.wait = max(r.wait, min(time.Duration(e.RetryAfterMS)*time.Millisecond, maxRetryAfter))
	case e.Code == signal.CodeKicked, e.Code == signal.CodeRevoked, e.Code == signal.CodeClosed,
		e.Code == signal.CodeReplaced:
		return true
	case e.Code == signal.CodeDraining && r.several:
	default:
		r.refused++
	}
	return false
}

// all reports whether every server of the round has refused the session.
func (r *refusals) all() bool { return r.refused == r.attempts }

// refusal returns the refusal of a server in an error, nil for none.
func refusal(err error) *signal.Error {
	var refused *signal.Error
	errors.As(err, &refused)
	return refused
}
