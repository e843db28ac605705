package demand

import (
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// AccountInterval is the interval at which the unsent bits of a publisher are added to the metrics.
const AccountInterval = time.Second

// saving counts the bits that a publisher does not send because its tracks are paused.
type saving struct {
	// tracks is the number of paused tracks, and rate the sum of their bit rates.
	tracks int
	rate   volumetric.Bitrate
	// accounted is the time of the last call of Account.
	accounted time.Time
}

// Saves reports whether the publisher has paused tracks with a known bit rate.
func (p *Publication) Saves() bool { return p.saving.rate > 0 }

// AccountDue returns the time of the next call of Account.
func (p *Publication) AccountDue() time.Time { return p.saving.accounted.Add(AccountInterval) }

// Account returns the number of bits that the publisher did not send since the last call.
func (p *Publication) Account(now time.Time) float64 {
	s := &p.saving
	elapsed := now.Sub(s.accounted)
	s.accounted = now
	if s.rate == 0 {
		return 0
	}
	return float64(s.rate) * elapsed.Seconds()
}

// CountPaused counts the tracks that are not wanted and sums their bit rates, which rateOf returns. CountPaused returns
// the difference from the last count.
func (p *Publication) CountPaused(rateOf func(tile int, q volumetric.Quality) volumetric.Bitrate) (difference int) {
	s := &p.saving
	before := s.tracks
	s.tracks, s.rate = p.suppression.pausedCount(), 0
	for tile := range p.tiles {
		for q := range p.qualities {
			if quality := volumetric.Quality(q); p.Paused(tile, quality) {
				s.rate += rateOf(tile, quality)
			}
		}
	}
	return s.tracks - before
}

// EndPausing ends the count of paused tracks when the publication ends. EndPausing returns the difference from the last
// count.
func (p *Publication) EndPausing() (difference int) {
	difference = -p.saving.tracks
	p.saving.tracks, p.saving.rate = 0, 0
	return difference
}
