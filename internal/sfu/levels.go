package sfu

import (
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// meter measures what comes on a track, over whole frames.
type meter interface {
	// Rate is in bits of RTP payload per second. It is not ok while too little has come.
	Rate() (volumetric.Bitrate, bool)
}

// What a track is taken to cost of which nothing is known, until it has been measured for a second.
const (
	// guessedVolumetric is shared by the tiles of an object at its highest quality: 40,000 points of 20 bits each at 30 frames per second.
	guessedVolumetric volumetric.Bitrate = 24e6
	// guessedVideo is a camera at 1280 × 720 and 30 frames per second.
	guessedVideo volumetric.Bitrate = 2_500_000
	// guessedAudio is Opus in stereo.
	guessedAudio volumetric.Bitrate = 96_000
	// guessedStep is how much more a quality costs than the one below it: the usual ladders have factors of 1.5 to 4.
	guessedStep = 2.0
)

// How long a track has to come before its measurement counts. It is one over the last second: what paused within that has too low a rate, and two frames
// that arrived close together give any rate at all. Of a track that was never measured a third of a second is better than a guess.
const (
	steadyAfter     = 1100 * time.Millisecond
	firstRateSettle = 300 * time.Millisecond
)

// rateTolerance is how far a rate moves from what was last allocated with before that counts as news: frame sizes vary by some
// percent with what there is to see.
const rateTolerance = 0.05

// levels are the rates of a publication's tracks, and which of them its publisher has given up. The room's goroutine owns them.
type levels struct {
	description *volumetric.Publication
	// meters, once there are tracks, and what follows are by track, tile × qualities + quality.
	meters []meter
	// coming is since when the track has come without a pause, zero where it does not.
	coming []time.Time
	// measured are the last measurements, 0 before the first. A track that pauses keeps its own.
	measured []volumetric.Bitrate
	// rates are what allocations reckon with: measured, else declared, else guessed.
	rates []volumetric.Bitrate
	// gaveUp are by tile the qualities that the publisher's uplink does not carry.
	gaveUp []allocate.QualitySet
}

func newLevels(description *volumetric.Publication) *levels {
	n := description.TrackCount()
	l := &levels{
		description: description,
		coming:      make([]time.Time, n),
		measured:    make([]volumetric.Bitrate, n),
		rates:       make([]volumetric.Bitrate, n),
		gaveUp:      make([]allocate.QualitySet, len(description.Tiles)),
	}
	l.fill()
	return l
}

// measure reads the meters of the tracks that come, and reports whether any rate has moved by more than the tolerance. asked tells which tracks the publisher
// is asked for.
func (l *levels) measure(now time.Time, asked func(tile int, q volumetric.Quality) bool) bool {
	moved, qualities := false, len(l.description.Qualities)
	for i, m := range l.meters {
		rate, ok := m.Rate()
		switch {
		case !ok || !asked(i/qualities, volumetric.Quality(i%qualities)):
			l.coming[i] = time.Time{}
			continue
		case l.coming[i].IsZero():
			l.coming[i] = now
		}
		if l.steady(i, now) && !near(rate, l.measured[i], rateTolerance) {
			l.measured[i], moved = rate, true
		}
	}
	if moved {
		l.fill()
	}
	return moved
}

// steady says whether the measurement of a track counts.
func (l *levels) steady(i int, now time.Time) bool {
	if l.measured[i] == 0 {
		return now.Sub(l.coming[i]) >= firstRateSettle
	}
	return now.Sub(l.coming[i]) >= steadyAfter
}

// fill makes the rates anew.
func (l *levels) fill() {
	qualities := len(l.description.Qualities)
	for i := range l.rates {
		l.rates[i] = l.known(i)
	}
	for i, rate := range l.rates {
		if rate == 0 {
			l.rates[i] = l.guess(i/qualities, i%qualities)
		}
	}
}

// known is what was measured or declared, 0 if neither was.
func (l *levels) known(i int) volumetric.Bitrate {
	if l.measured[i] > 0 {
		return l.measured[i]
	}
	most := maxRate
	if l.description.Kind == volumetric.KindAudio {
		most = maxAudio
	}
	return min(max(l.description.Qualities[i%len(l.description.Qualities)].Bitrate, 0), most)
}

// guess goes by the nearest quality of the tile of which the rate is known, else by the same quality of other tiles, else by experience.
func (l *levels) guess(tile, q int) volumetric.Bitrate {
	qualities := len(l.description.Qualities)
	for distance := 1; distance < qualities; distance++ {
		for _, other := range []int{q - distance, q + distance} {
			if other < 0 || other >= qualities {
				continue
			}
			if rate := l.known(tile*qualities + other); rate > 0 {
				return scaled(rate, q-other)
			}
		}
	}
	var sum volumetric.Bitrate
	count := 0
	for other := range l.description.Tiles {
		if rate := l.known(other*qualities + q); rate > 0 {
			sum += rate
			count++
		}
	}
	if count > 0 {
		return sum / volumetric.Bitrate(count)
	}
	return scaled(guessedRate(l.description)/volumetric.Bitrate(len(l.description.Tiles)), q-(qualities-1))
}

// scaled is a rate that many qualities higher, or lower where steps is negative.
func scaled(rate volumetric.Bitrate, steps int) volumetric.Bitrate {
	factor := 1.0
	for ; steps > 0; steps-- {
		factor *= guessedStep
	}
	for ; steps < 0; steps++ {
		factor /= guessedStep
	}
	return volumetric.Bitrate(min(float64(rate)*factor, float64(maxRate)))
}

const (
	// maxRate keeps guesses and declarations from numbers that could not be summed.
	maxRate volumetric.Bitrate = 1e12
	// maxAudio is what audio may declare, PCM in stereo: what it takes is not there for video, also of a publisher that is silent.
	maxAudio volumetric.Bitrate = 1_536_000
)

func guessedRate(d *volumetric.Publication) volumetric.Bitrate {
	switch {
	case d.Kind == volumetric.KindAudio:
		return guessedAudio
	case d.Codec.Is(volumetric.MIMEH264), d.Codec.Is(volumetric.MIMEVP8):
		return guessedVideo
	default:
		return guessedVolumetric
	}
}

// giveUp notes what the publisher cannot send, by tile, and reports whether that is news.
func (l *levels) giveUp(gaveUp []allocate.QualitySet) bool {
	if slices.Equal(l.gaveUp, gaveUp) {
		return false
	}
	l.gaveUp = gaveUp
	return true
}

// rate is that of one track.
func (l *levels) rate(tile int, q volumetric.Quality) volumetric.Bitrate {
	return l.rates[tile*len(l.description.Qualities)+int(q)]
}

// available is the quality to send where q is chosen: q itself, else the next lower one that the publisher sends, else the next higher one. Where
// all have been given up it is q, which comes when the publisher can.
func (l *levels) available(tile int, q volumetric.Quality) volumetric.Quality {
	if q < 0 || !l.gaveUp[tile].Has(q) {
		return q
	}
	for lower := q - 1; lower >= 0; lower-- {
		if !l.gaveUp[tile].Has(lower) {
			return lower
		}
	}
	for higher := q + 1; higher <= l.description.Highest(); higher++ {
		if !l.gaveUp[tile].Has(higher) {
			return higher
		}
	}
	return q
}

// leastStep is how much more a quality is worth at least than the one below it, whatever the two cost: they ascend with fidelity, and publishers may well have
// two that cost the same.
const leastStep = 1.02

// describe fills in the levels of one tile for an allocation. What a quality costs is taken for its number of points. Qualities that were given up are as good as, and
// cost as much as, what would be sent in their place. paused tells which tracks the publisher is not asked for.
func (l *levels) describe(tile int, into []allocate.Level, paused func(tile int, q volumetric.Quality) bool) {
	if l.description.Mode == volumetric.ModeDescriptions {
		for i := range into {
			into[i] = allocate.Level{}
			if q := volumetric.Quality(i); !l.gaveUp[tile].Has(q) {
				into[i] = allocate.Level{Rate: l.rate(tile, q), Paused: paused(tile, q)}
			}
		}
		return
	}
	worth := 0.0
	for i := range into {
		q := volumetric.Quality(i)
		worth = max(float64(l.rate(tile, q)), worth*leastStep)
		into[i] = allocate.Level{Rate: l.rate(tile, q), Detail: worth, Paused: paused(tile, q)}
	}
	for i := range into {
		into[i].Detail /= max(worth, 1)
	}
	if l.gaveUp[tile] == 0 {
		return
	}
	// From above, so that what is copied from below is its own still.
	for i := len(into) - 1; i >= 0; i-- {
		into[i] = into[l.available(tile, volumetric.Quality(i))]
	}
}
