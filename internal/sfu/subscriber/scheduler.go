package subscriber

import (
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// improvingShare is the share of its time that a room spends on decisions that are due sometime: with 20 objects of
	// 15 tiles each takes a millisecond, so that 20 receivers are followed ten times per second each.
	improvingShare = 0.25
	// largestDebt is the most that decisions that could not wait take from that share: decisions that are due sometime
	// follow again within refreshInterval.
	largestDebt = time.Duration(improvingShare * float64(refreshInterval))
	// tickLimit is how long a room decides at a stretch: a choice may have to wait so long.
	tickLimit = 5 * time.Millisecond
)

// Allocator decides what receivers are sent. Its result is valid until the next call.
type Allocator interface {
	Allocate(*allocate.Scene) allocate.Result
}

// Metrics is what decisions count.
type Metrics interface {
	// Allocated takes the time that one allocation took and the budget that it was made with.
	Allocated(time.Duration, volumetric.Bitrate)
	// Decided counts a decision about a slot that changed the slot.
	Decided(signal.Reason)
}

// Scheduler is what the subscribers of a room have in common: the allocator, the changes around them, and the time that
// their decisions may take.
type Scheduler struct {
	Allocator Allocator
	Metrics   Metrics
	// Clock measures what decisions cost.
	Clock func() time.Time
	// Interval is the interval between two ticks, each of which looks whether decisions are due.
	Interval time.Duration
	Changes  Changes

	// credit is the time that may be spent on decisions that are due sometime, as of the tick at ticked. began is when
	// the decisions of the tick began.
	credit        time.Duration
	ticked, began time.Time
}

// Tick adds to the credit the time that has passed since the last tick.
func (s *Scheduler) Tick(now time.Time) {
	share := time.Duration(improvingShare * float64(s.Interval))
	s.credit = min(max(s.credit, -largestDebt)+time.Duration(improvingShare*float64(now.Sub(s.ticked))), share)
	s.ticked = now
}

// Begin begins the decisions of a tick.
func (s *Scheduler) Begin() { s.began = s.Clock() }

// InTime reports whether the decisions of a tick may go on.
func (s *Scheduler) InTime() bool { return s.Clock().Sub(s.began) < tickLimit }

// spend counts what a decision took.
func (s *Scheduler) spend(took time.Duration, granted volumetric.Bitrate) {
	s.credit -= took
	s.Metrics.Allocated(took, granted)
}
