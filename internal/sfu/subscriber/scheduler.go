package subscriber

import (
	"time"

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
