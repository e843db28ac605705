package subscriber

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// improvingShare is the share of a room's time for decisions that are due sometime. With 20 objects of 15 tiles a
	// decision takes a millisecond, so each of 20 receivers gets ten decisions per second.
	improvingShare = 0.25
	// largestDebt bounds the debt that urgent decisions cause, so that decisions that are due sometime resume within
	// refreshInterval.
	largestDebt = time.Duration(improvingShare * float64(refreshInterval))
	// tickLimit is the maximum duration of the decisions of one tick. tickLimit is also the maximum delay of a choice.
	tickLimit = 5 * time.Millisecond
)

// Allocator decides the qualities of a scene. The result is valid until the next call.
type Allocator interface {
	Allocate(*allocate.Scene) allocate.Result
}

// Metrics counts decisions.
type Metrics interface {
	// Allocated records the duration and the budget of one allocation.
	Allocated(time.Duration, volumetric.Bitrate)
	// Decided counts a decision that changed a slot.
	Decided(signal.Reason)
}

// Scheduler has the state that the subscribers of a room share: the allocator, the counts of changes, and the time
// budget of decisions.
type Scheduler struct {
	Allocator Allocator
	Metrics   Metrics
	// Clock measures the duration of decisions.
	Clock func() time.Time
	// Interval is the interval between two ticks. Each tick checks whether decisions are due.
	Interval time.Duration
	Changes  Changes

	// credit is the time that may be spent on decisions that are due sometime, as of the tick at ticked. began is the
	// start of the decisions of the tick.
	credit        time.Duration
	ticked, began time.Time
	// offersDue is the time at which the changes of offered tracks beyond the limits take effect, zero if there are
	// none.
	offersDue time.Time
}

// Tick adds the share of the time since the last tick to the credit.
func (s *Scheduler) Tick(now time.Time) {
	share := time.Duration(improvingShare * float64(s.Interval))
	s.credit = min(max(s.credit, -largestDebt)+time.Duration(improvingShare*float64(now.Sub(s.ticked))), share)
	s.ticked = now
}

// Begin starts the decisions of a tick.
func (s *Scheduler) Begin() { s.began = s.Clock() }

// InTime reports whether the tick has time for further decisions.
func (s *Scheduler) InTime() bool { return s.Clock().Sub(s.began) < tickLimit }

// spend charges the duration of a decision.
func (s *Scheduler) spend(took time.Duration, granted volumetric.Bitrate) {
	s.credit -= took
	s.Metrics.Allocated(took, granted)
}

const (
	// offerRate and offerBurst limit the changes of one publisher's given-up tracks after which all receivers decide,
	// per second and at once. A client sends up to ten reports per second, so that the burst is two seconds of an
	// uplink that varies. A decision takes up to a millisecond: in a room of 100 receivers, a publisher that alternates
	// its reports uses 0.4 s of the room's goroutine per second, half of them by changes at once.
	offerRate, offerBurst = 2, 20
	// offerDelay is the time after which the changes beyond the rate take effect together.
	offerDelay = time.Second / offerRate
)

// OfferLimit limits the changes of one publisher's given-up tracks after which all subscribers decide at once.
type OfferLimit struct{ limiter *rate.Limiter }

// NewOfferLimit returns the limit of one publisher.
func NewOfferLimit() *OfferLimit { return &OfferLimit{rate.NewLimiter(offerRate, offerBurst)} }

// OffersChanged makes subscribers decide because a publisher sends other tracks than before: at the next tick or,
// beyond the publisher's limit, after offerDelay. Then due is the time of the next SettleOffers, otherwise due is zero.
func (s *Scheduler) OffersChanged(now time.Time, limit *OfferLimit) (due time.Time) {
	if limit.limiter.AllowN(now, 1) {
		s.Changes.Offered++
		return time.Time{}
	}
	if s.offersDue.IsZero() {
		s.offersDue = now.Add(offerDelay)
	}
	return s.offersDue
}

// SettleOffers makes subscribers decide if the changes of OffersChanged are due. due is the time of the next call, zero
// if no change remains.
func (s *Scheduler) SettleOffers(now time.Time) (due time.Time) {
	if !s.offersDue.IsZero() && !now.Before(s.offersDue) {
		s.offersDue = time.Time{}
		s.Changes.Offered++
	}
	return s.offersDue
}
