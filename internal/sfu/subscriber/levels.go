package subscriber

import (
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Meter measures the rate of a track, over whole frames.
type Meter interface {
	// Rate is in bits of RTP payload per second. It is not ok while too little has come.
	Rate() (volumetric.Bitrate, bool)
}

// The rates that are assumed of a track of which nothing is known, until it has been measured for a second.
const (
	// guessedVolumetric is shared by the tiles of an object at its highest quality: 40,000 points of 20 bits each at 30
	// frames per second.
	guessedVolumetric volumetric.Bitrate = 24e6
	// guessedVideo is a camera at 1280 × 720 and 30 frames per second.
	guessedVideo volumetric.Bitrate = 2_500_000
	// guessedAudio is Opus in stereo.
	guessedAudio volumetric.Bitrate = 96_000
	// guessedStep is how much more a quality costs than the one below it: the usual ladders have factors of 1.5 to 4.
	guessedStep = 2.0
)

// The time that a track has to come before its measurement counts. A measurement is over the last second: a track that
// paused within it has too low a rate, and two frames that arrived close together give any rate. For a track that was
// never measured, a third of a second is better than a guess.
const (
	steadyAfter     = 1100 * time.Millisecond
	firstRateSettle = 300 * time.Millisecond
)

// rateTolerance is how far a rate moves from the rate of the last allocation before that counts as a change: frame
// sizes vary by some percent with the scene.
const rateTolerance = 0.05

// Levels are the rates of a publication's tracks, and which of them its publisher has given up.
type Levels struct {
	description *volumetric.Publication
	// meters and the lists that follow are by track, tile × qualities + quality. Meters are nil before there are
	// tracks.
	meters []Meter
	// coming is the time since which the track has come without a pause, zero if it does not come.
	coming []time.Time
	// measured are the last measurements, 0 before the first. A track that pauses keeps its own.
	measured []volumetric.Bitrate
	// rates are the rates of allocations: measured, else declared, else guessed.
	rates []volumetric.Bitrate
	// gaveUp is by tile the qualities that the publisher's uplink does not carry.
	gaveUp []allocate.QualitySet
}

func newLevels(description *volumetric.Publication) *Levels {
	n := description.TrackCount()
	l := &Levels{
		description: description,
		meters:      make([]Meter, n),
		coming:      make([]time.Time, n),
		measured:    make([]volumetric.Bitrate, n),
		rates:       make([]volumetric.Bitrate, n),
		gaveUp:      make([]allocate.QualitySet, len(description.Tiles)),
	}
	l.fill()
	return l
}

// SetMeter gives a track what measures its rate.
func (l *Levels) SetMeter(track int, m Meter) { l.meters[track] = m }

// measure reads the meters of the tracks that come, and reports whether any rate has moved by more than the tolerance.
// asked reports which tracks the publisher is asked for.
func (l *Levels) measure(now time.Time, asked func(tile int, q volumetric.Quality) bool) bool {
	moved, qualities := false, len(l.description.Qualities)
	for i, m := range l.meters {
		if m == nil {
			continue
		}
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

// steady reports whether the measurement of a track counts.
func (l *Levels) steady(i int, now time.Time) bool {
	if l.measured[i] == 0 {
		return now.Sub(l.coming[i]) >= firstRateSettle
	}
	return now.Sub(l.coming[i]) >= steadyAfter
}

// fill computes the rates.
func (l *Levels) fill() {
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
func (l *Levels) known(i int) volumetric.Bitrate {
	if l.measured[i] > 0 {
		return l.measured[i]
	}
	most := maxRate
	if l.description.Kind == volumetric.KindAudio {
		most = maxAudio
	}
	return min(max(l.description.Qualities[i%len(l.description.Qualities)].Bitrate, 0), most)
}

// guess goes by the nearest quality of the tile whose rate is known, else by the same quality of other tiles, else by
// experience.
func (l *Levels) guess(tile, q int) volumetric.Bitrate {
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

// scaled returns a rate that many qualities higher, or lower if steps is negative.
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
	// maxAudio is the most that audio may declare, PCM in stereo: its rate is not there for video, also if the
	// publisher is silent.
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

// GiveUp notes the qualities that the publisher cannot send, by tile, and reports whether that is a change.
func (l *Levels) GiveUp(gaveUp []allocate.QualitySet) bool {
	if slices.Equal(l.gaveUp, gaveUp) {
		return false
	}
	l.gaveUp = gaveUp
	return true
}

// Rate returns the rate of one track.
func (l *Levels) Rate(tile int, q volumetric.Quality) volumetric.Bitrate {
	return l.rates[tile*len(l.description.Qualities)+int(q)]
}

// available returns the quality to send if q is chosen: q itself, else the next lower one that the publisher sends,
// else the next higher one. If all have been given up it is q, which comes when the publisher can send it.
func (l *Levels) available(tile int, q volumetric.Quality) volumetric.Quality {
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

// leastStep is how much more a quality is worth at least than the one below it, whatever the two cost: qualities ascend
// with fidelity, and a publisher may have two that cost the same.
const leastStep = 1.02

// describe fills in the levels of one tile for an allocation. The rate of a quality stands for its number of points.
// Qualities that were given up are as good as, and cost as much as, the quality that would be sent in their place.
// paused reports which tracks the publisher is not asked for.
func (l *Levels) describe(tile int, into []allocate.Level, paused func(tile int, q volumetric.Quality) bool) {
	if l.description.Mode == volumetric.ModeDescriptions {
		for i := range into {
			into[i] = allocate.Level{}
			if q := volumetric.Quality(i); !l.gaveUp[tile].Has(q) {
				into[i] = allocate.Level{Rate: l.Rate(tile, q), Paused: paused(tile, q)}
			}
		}
		return
	}
	worth := 0.0
	for i := range into {
		q := volumetric.Quality(i)
		worth = max(float64(l.Rate(tile, q)), worth*leastStep)
		into[i] = allocate.Level{Rate: l.Rate(tile, q), Detail: worth, Paused: paused(tile, q)}
	}
	for i := range into {
		into[i].Detail /= max(worth, 1)
	}
	if l.gaveUp[tile] == 0 {
		return
	}
	// From above, so that a level that is copied from below has not been overwritten.
	for i := len(into) - 1; i >= 0; i-- {
		into[i] = into[l.available(tile, volumetric.Quality(i))]
	}
}
