package sfu

import (
	"fmt"
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// SuppressionPolicy says which tracks publishers are asked for.
type SuppressionPolicy string

// The policies.
const (
	// SuppressionWarm asks for everything.
	SuppressionWarm SuppressionPolicy = "warm"
	// SuppressionNeighbours asks for what somebody takes and one step beside it, and for the rest until it has been out of use for a while.
	SuppressionNeighbours SuppressionPolicy = "neighbours"
	// SuppressionStrict asks for what somebody takes.
	SuppressionStrict SuppressionPolicy = "strict"
)

// SuppressionConfig says what publishers need not send.
type SuppressionConfig struct {
	Policy SuppressionPolicy `yaml:"policy" help:"what publishers that can pause tracks are asked for: warm (everything), neighbours (what someone takes and one step beside it), strict (what someone takes)"`
	// Hold: whoever looks away and back within two seconds finds what was there. Sending a quality for two seconds more costs less than
	// the start of an encoder for each glance.
	Hold time.Duration `yaml:"hold" help:"how long a track goes on that has got out of use, under the policy neighbours"`
}

// Validate reports the first key that is wrong.
func (c SuppressionConfig) Validate() error {
	if !slices.Contains([]SuppressionPolicy{SuppressionWarm, SuppressionNeighbours, SuppressionStrict}, c.Policy) {
		return fmt.Errorf("%w: suppression.policy is %q: expected %s, %s or %s",
			ErrConfig, c.Policy, SuppressionWarm, SuppressionNeighbours, SuppressionStrict)
	}
	if c.Hold < 0 {
		return fmt.Errorf("%w: suppression.hold is %v: expected 0 or more", ErrConfig, c.Hold)
	}
	return nil
}

// listed has the qualities of a set in ascending order.
func listed(set allocate.QualitySet) []volumetric.Quality {
	return slices.AppendSeq(make([]volumetric.Quality, 0, set.Len()), set.Each)
}

// demand counts what the slots of all receivers need of one publication.
type demand struct {
	qualities int
	// taken counts by track, tile × qualities + quality, the slots that take it, or that it feeds until another has begun.
	taken []int
	// near counts by tile the slots that carry nothing of it for now, though their receivers may want it: it is out of sight, or their links are too narrow.
	near []int
}

func newDemand(tiles, qualities int) demand {
	return demand{qualities: qualities, taken: make([]int, tiles*qualities), near: make([]int, tiles)}
}

// takenOf are the qualities of a tile that somebody takes.
func (d *demand) takenOf(tile int) allocate.QualitySet {
	var set allocate.QualitySet
	for q := range d.qualities {
		if d.taken[tile*d.qualities+q] > 0 {
			set |= 1 << q
		}
	}
	return set
}

// suppression decides which tracks of one publication its publisher is asked for. It is pure: time is what step is given.
type suppression struct {
	config    SuppressionConfig
	qualities int
	// wanted are the qualities of each tile that the publisher is asked for.
	wanted []allocate.QualitySet
	// idle is by track since when a wanted one has been out of use, zero while it is not.
	idle []time.Time
	// due is when the next track will have been out of use for long enough, zero where none is.
	due time.Time
	// resumed are the tracks that the last step began to ask for again, dismissed those that it ceased to ask for.
	resumed, dismissed []int
}

// newSuppression begins with everything wanted, as publishers do.
func newSuppression(config SuppressionConfig, tiles, qualities int) *suppression {
	s := &suppression{config: config, qualities: qualities, wanted: make([]allocate.QualitySet, tiles), idle: make([]time.Time, tiles*qualities)}
	for tile := range s.wanted {
		s.wanted[tile] = allocate.Lowest(qualities)
	}
	return s
}

// step takes what is needed now, and reports whether the wanted tracks have changed. What is needed is wanted at once.
func (s *suppression) step(now time.Time, d *demand) (changed bool) {
	s.due, s.resumed, s.dismissed = time.Time{}, s.resumed[:0], s.dismissed[:0]
	for tile := range s.wanted {
		needed := s.needed(tile, d)
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
			case s.expired(idle, now):
				wanted &^= 1 << q
				s.dismissed = append(s.dismissed, tile*s.qualities+q)
			}
		}
		changed = changed || wanted != s.wanted[tile]
		s.wanted[tile] = wanted
	}
	return changed
}

// expired reports whether a track that is not needed has not been for long enough, and notes when it will have been.
func (s *suppression) expired(idle *time.Time, now time.Time) bool {
	if idle.IsZero() {
		*idle = now
	}
	var hold time.Duration
	if s.config.Policy != SuppressionStrict {
		hold = s.config.Hold
	}
	end := idle.Add(hold)
	if !now.Before(end) {
		return true
	}
	if s.due.IsZero() || end.Before(s.due) {
		s.due = end
	}
	return false
}

// needed are the qualities of a tile that the policy asks for. One step beside nothing is the lowest quality.
func (s *suppression) needed(tile int, d *demand) allocate.QualitySet {
	taken, all := d.takenOf(tile), allocate.Lowest(s.qualities)
	switch s.config.Policy {
	case SuppressionWarm:
		return all
	case SuppressionStrict:
		return taken
	}
	beside := taken<<1 | taken>>1
	if d.near[tile] > 0 {
		beside |= 1
	}
	return (taken | beside) & all
}

// paused tells whether the publisher is not asked for a track.
func (s *suppression) paused(tile int, q volumetric.Quality) bool { return !s.wanted[tile].Has(q) }

// pausedCount is the number of tracks that the publisher is not asked for.
func (s *suppression) pausedCount() int {
	n := len(s.idle)
	for _, wanted := range s.wanted {
		n -= wanted.Len()
	}
	return n
}
