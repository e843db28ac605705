package failover

import (
	"errors"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
)

// maxRetryAfter bounds the wait that servers ask for.
const maxRetryAfter = 10 * time.Second

// Round judges the replies to the attempts of one round to resume a session. It is pure. The web client has the same
// rules (clients/web/src/signal/refusals.ts). pkg/client/testdata/failover.json tests both.
type Round struct {
	// Several is set if the round has more than one server.
	Several           bool
	attempts, refused int
	// wait is the least time until the next round.
	wait time.Duration
}

// Failed adds an attempt that failed, and reports whether the session has ended: other servers would refuse, too. If
// the server did not reply, err wraps no *signal.Error.
func (r *Round) Failed(err error) (ended bool) {
	r.attempts++
	var e *signal.Error
	errors.As(err, &e)
	switch {
	case e == nil:
	case e.RetryAfterMS > 0:
		r.wait = max(r.wait, min(time.Duration(e.RetryAfterMS)*time.Millisecond, maxRetryAfter))
	case e.Code == signal.CodeKicked, e.Code == signal.CodeRevoked, e.Code == signal.CodeClosed,
		e.Code == signal.CodeReplaced:
		return true
	case e.Code == signal.CodeDraining && r.Several:
	default:
		r.refused++
	}
	return false
}

// Refused reports whether every server of the round has refused the session.
func (r *Round) Refused() bool { return r.refused == r.attempts }

// Wait returns the least time until the next round, as servers have asked.
func (r *Round) Wait() time.Duration { return r.wait }
