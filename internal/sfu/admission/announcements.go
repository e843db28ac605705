package admission

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/volsfu/volsfu/pkg/signal"
)

const (
	// announceRate is how many bytes per second one bearer may have each of the others in a room be told, by joining
	// and publishing, in the long run: 512 kbit/s, a hundredth of the media of a body at 50 Mbit/s. At once it is the
	// descriptions of a full room (rooms.description_bytes), which one bearer has if all of the room come again with
	// one token: after 24 s with the default the bearer has all of it again.
	announceRate = 64 << 10
	// AnnounceOverhead is what a join costs beside its descriptions: participant_joined and participant_left have 60
	// bytes each, and an identity of up to 128 bytes.
	AnnounceOverhead = 256
	// leastSweep keeps sweeps of the bearers' budgets rare in small rooms.
	leastSweep = 64
)

// Announcements bound how many bytes each bearer may have the others in one room be told. They belong to one goroutine.
type Announcements struct {
	// burst is the number of bytes at once.
	burst   int
	budgets map[Bearer]*rate.Limiter
	// sweep is the number of budgets at which the full ones are dropped.
	sweep int
}

// NewAnnouncements returns full budgets of so many bytes at once.
func NewAnnouncements(burst int) *Announcements {
	return &Announcements{burst: burst, budgets: make(map[Bearer]*rate.Limiter), sweep: leastSweep}
}

// Take takes the bytes that the others are told from the budget of a bearer, unless the budget has less.
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
		return refuse(signal.CodeLimit,
			"the others would be told %d bytes: by one token or address they are told %d bytes per second, and %d "+
				"at once",
			bytes, announceRate, a.burst)
	}
	return nil
}

// forget drops the budgets that are full, if there are twice as many as after the last time.
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
