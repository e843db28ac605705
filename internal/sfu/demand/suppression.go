package demand

import (
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// suppression decides which tracks of one publication are wanted.
type suppression struct {
	config    Config
	qualities int
	// wanted has the qualities of each tile that the publisher is asked for.
	wanted []allocate.QualitySet
	// idle has for each track the time since which a wanted track has been unused, zero while the track is used. The
	// time may be later than the present one (keepAll).
	idle []time.Time
	// due is the time at which the next track will have been unused for the hold time, zero if there is none.
	due time.Time
	// resumed are the tracks that became wanted in the last step, dismissed the tracks that ceased to be wanted.
	resumed, dismissed []int
}

// newSuppression returns a suppression in which every track is wanted, because publishers begin with all tracks.
func newSuppression(config Config, tiles, qualities int) *suppression {
	s := &suppression{
		config: config, qualities: qualities, wanted: make([]allocate.QualitySet, tiles),
		idle: make([]time.Time, tiles*qualities),
	}
	for tile := range s.wanted {
		s.wanted[tile] = allocate.Lowest(qualities)
	}
	return s
}

// keepAll makes every track count as used until Config.Hold has passed from now.
func (s *suppression) keepAll(now time.Time) {
	for track := range s.idle {
		s.idle[track] = now.Add(s.config.Hold - s.hold())
	}
}

// step applies the present needs and reports whether the wanted tracks have changed. A needed track is wanted at once.
func (s *suppression) step(now time.Time, needs *counts) (changed bool) {
	s.due, s.resumed, s.dismissed = time.Time{}, s.resumed[:0], s.dismissed[:0]
	for tile := range s.wanted {
		needed := s.needed(tile, needs)
		for q := range (needed &^ s.wanted[tile]).Each {
			s.resumed = append(s.resumed, tile*s.qualities+int(q))
		}
		wanted := s.wanted[tile] | needed
		for q := range s.qualities {
			idle := &s.idle[tile*s.qualities+q]
			switch {
			case needed.Has(volumetric.Quality(q)):
				*idle = time.Time{}
			case !wanted.Has(volumetric.Quality(q)):
			case expired(idle, now, s.hold(), &s.due):
				wanted &^= 1 << q
				s.dismissed = append(s.dismissed, tile*s.qualities+q)
			}
		}
		changed = changed || wanted != s.wanted[tile]
		s.wanted[tile] = wanted
	}
	return changed
}

// hold returns the time before an unused track is suppressed.
func (s *suppression) hold() time.Duration {
	if s.config.Policy == Strict {
		return 0
	}
	return s.config.Hold
}

// expired reports whether something unused has been unused for the hold time. idle is the time since which it has been
// unused, and is set to now if it is zero. If the hold time has not passed, expired moves due to its end if that is
// earlier.
func expired(idle *time.Time, now time.Time, hold time.Duration, due *time.Time) bool {
	if idle.IsZero() {
		*idle = now
	}
	end := idle.Add(hold)
	if !now.Before(end) {
		return true
	}
	*due = earliest(*due, end)
	return false
}

// needed returns the qualities of a tile that the policy asks for. The neighbour of no quality is the lowest quality.
func (s *suppression) needed(tile int, needs *counts) allocate.QualitySet {
	taken, all := needs.takenOf(tile), allocate.Lowest(s.qualities)
	switch s.config.Policy {
	case Warm:
		return all
	case Strict:
		return taken
	}
	beside := taken<<1 | taken>>1
	if needs.near[tile] > 0 {
		beside |= 1
	}
	return (taken | beside) & all
}

// paused reports whether a track is not wanted.
func (s *suppression) paused(tile int, q volumetric.Quality) bool { return !s.wanted[tile].Has(q) }

// pausedCount returns the number of tracks that are not wanted.
func (s *suppression) pausedCount() int {
	n := len(s.idle)
	for _, wanted := range s.wanted {
		n -= wanted.Len()
	}
	return n
}

// listed returns the qualities of a set in ascending order.
func listed(set allocate.QualitySet) []volumetric.Quality {
	return slices.AppendSeq(make([]volumetric.Quality, 0, set.Len()), set.Each)
}
