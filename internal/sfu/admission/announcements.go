package admission

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/volsfu/volsfu/pkg/signal"
)

const (
	// announceRate is the number of bytes per second that one bearer may cause each other participant of a room to
	// receive, by joins and publications, in the long run: 512 kbit/s, a hundredth of the media of a body at 50 Mbit/s.
	// The burst is the size of the descriptions of a full room (sfu.Config.DescriptionBytes). One bearer uses the burst
	// if all participants of the room return with one token; with the default the budget is full again after 24 s.
	announceRate = 64 << 10
	// AnnounceOverhead is the cost of a join in bytes beside its descriptions: participant_joined and participant_left
	// have 60 bytes each, and an identity has up to 128 bytes.
	AnnounceOverhead = 256
	// leastSweep keeps sweeps of the bearers' budgets rare in small rooms.
	leastSweep = 64
)

// Announcements bounds the bytes that each bearer causes the others in one room to receive. Announcements belongs to
// one goroutine.
type Announcements struct {
	// burst is the number of bytes at once.
	burst   int
	budgets map[Bearer]*rate.Limiter
	// sweep is the number of budgets at which full budgets are removed.
	sweep int
}

// NewAnnouncements returns full budgets with the given burst in bytes.
func NewAnnouncements(burst int) *Announcements {
	return &Announcements{burst: burst, budgets: make(map[Bearer]*rate.Limiter), sweep: leastSweep}
}

// Take charges bytes to the budget of a bearer. Take returns an error if the budget has less.
func (a *Announcements) Take(b Bearer, bytes int, now time.Time) *signal.Error {
	if b == "" {
		return nil
	}
	budget := a.budgets[b]
	if budget == nil {
		a.forget(now)
		budget = rate.NewLimiter(announceRate, a.burst)
		a.budgets[b] = budget
	}
	if !budget.AllowN(now, min(bytes, a.burst)) {
		return signal.Errorf(signal.CodeLimit,
			"the request would send %d bytes to the others: the limit of one token or address is %d bytes per second, "+
				"and %d at once",
			bytes, announceRate, a.burst)
	}
	return nil
}

// forget removes full budgets when the number of budgets has doubled since the last time.
func (a *Announcements) forget(now time.Time) {
	if len(a.budgets) < a.sweep {
		return
	}
	for b, budget := range a.budgets {
		if budget.TokensAt(now) >= float64(budget.Burst()) {
			delete(a.budgets, b)
		}
	}
	a.sweep = max(leastSweep, 2*len(a.budgets))
}
