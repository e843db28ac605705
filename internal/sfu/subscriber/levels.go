package subscriber

import (
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Meter measures the rate of a track, over whole frames.
type Meter interface {
	// Rate returns the bit rate of the RTP payload, in bit/s. Rate returns false if too few packets have arrived.
	Rate() (volumetric.Bitrate, bool)
	// Steady returns the time for which frames have arrived without a pause. A pause may begin and end between two
	// calls of Rate.
	Steady() time.Duration
}

// The assumed rates of unknown tracks, until the first measurement.
const (
	// guessedVolumetric is the rate of an object at its highest quality, shared by its tiles: 40,000 points of 20 bits
	// each at 30 frames per second.
	guessedVolumetric volumetric.Bitrate = 24e6
	// guessedVideo is a camera at 1280 × 720 and 30 frames per second.
	guessedVideo volumetric.Bitrate = 2_500_000
	// guessedAudio is Opus in stereo.
	guessedAudio volumetric.Bitrate = 96_000
	// guessedStep is the ratio of the rates of two adjacent qualities: usual ladders have ratios of 1.5 to 4.
	guessedStep = 2.0
)

// firstRateSettle is the time that a track without a measurement has to arrive without a pause before its first
// measurement counts, which is better than a guess. Later ones count after track.SteadyAfter.
const firstRateSettle = 300 * time.Millisecond

// rateTolerance is the relative change of a rate since the last allocation that counts as a change. Frame sizes vary by
// a few percent with the scene.
const rateTolerance = 0.05

// Levels has the rates of a publication's tracks and the tracks that its publisher has given up.
type Levels struct {
	description *volumetric.Publication
	// meters and the following slices are indexed by track, tile × qualities + quality. Meters are nil before there are
	// tracks.
	meters []Meter
	// coming has the time since which the track has arrived without a pause, zero if it does not arrive.
	coming []time.Time
	// measured has the last measurements, 0 before the first. A paused track keeps its measurement.
	measured []volumetric.Bitrate
	// rates has the rates for allocations: measured, else declared, else guessed.
	rates []volumetric.Bitrate
	// gaveUp has for each tile the qualities that the publisher's uplink cannot carry.
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

// SetMeter sets the meter of a track.
func (l *Levels) SetMeter(track int, m Meter) { l.meters[track] = m }

// measure reads the meters of the wanted tracks and reports whether any rate has changed by more than the tolerance.
// asked reports whether the publisher is asked for a track.
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
		if resumed := now.Add(-m.Steady()); resumed.After(l.coming[i]) {
			l.coming[i] = resumed
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
	return now.Sub(l.coming[i]) >= track.SteadyAfter
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

// known returns the measured or else the declared rate, 0 if there is none.
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

// guess returns the rate scaled from the nearest quality of the tile with a known rate, else the mean of the same
// quality of other tiles, else the assumed rate.
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

// scaled returns the rate for a quality that is higher by the given number of steps, or lower if steps is negative.
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
	// maxRate bounds guesses and declarations, so that sums do not overflow.
	maxRate volumetric.Bitrate = 1e12
	// maxAudio is the maximum declared rate of audio: PCM in stereo. The declared rate is reserved and not available to
	// video, even if the publisher is silent.
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

// SetMeasured stores the rates that another node, the publication's home, has measured. The meters are then not read:
// this node does not receive every track. A rate of 0 is unknown. SetMeasured reports whether any rate has changed by
// more than the tolerance. rates must have an entry for each track.
func (l *Levels) SetMeasured(rates []volumetric.Bitrate) bool {
	moved := false
	for i, rate := range rates {
		rate = min(max(rate, 0), maxRate)
		moved = moved || !near(rate, l.measured[i], rateTolerance)
		l.measured[i] = rate
	}
	clear(l.meters)
	l.fill()
	return moved
}

// Measured returns the last measurement of each track, 0 for unknown.
func (l *Levels) Measured() []volumetric.Bitrate { return slices.Clone(l.measured) }

// GaveUp returns the qualities that the publisher cannot send, by tile.
func (l *Levels) GaveUp() []allocate.QualitySet { return slices.Clone(l.gaveUp) }

// GiveUp stores the qualities that the publisher cannot send, by tile, and reports whether they have changed.
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

// available returns the quality to send if q is chosen: q itself, else the next lower quality that the publisher sends,
// else the next higher one. If all qualities have been given up, the result is q, which the publisher sends again when
// its uplink allows.
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

// Best returns the highest quality of a tile that the publisher sends.
func (l *Levels) Best(tile int) volumetric.Quality { return l.available(tile, l.description.Highest()) }

// leastStep is the minimum ratio of the detail of two adjacent qualities. Qualities ascend in fidelity, but a publisher
// may have two with the same rate.
const leastStep = 1.02

// pictureSize returns the pixels and the frame rate of a quality of a picture, 0 if unknown.
func pictureSize(d *volumetric.Publication, quality int) (pixels, frameRate float64) {
	level := &d.Qualities[quality]
	frameRate = level.FrameRate
	if frameRate == 0 {
		frameRate = d.FrameRate
	}
	return float64(level.Pixels()), frameRate
}

// describe sets the levels of one tile for an allocation. The rate of a quality stands for its number of points. A
// quality that was given up has the detail and the rate of the quality that is sent in its place. paused reports
// whether the publisher is not asked for a track.
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
		if l.description.Picture != nil {
			into[i].Pixels, into[i].FrameRate = pictureSize(l.description, i)
		}
	}
	for i := range into {
		into[i].Detail /= max(worth, 1)
	}
	if l.gaveUp[tile] == 0 {
		return
	}
	// The order is descending, so that a lower level is copied before it is overwritten.
	for i := len(into) - 1; i >= 0; i-- {
		into[i] = into[l.available(tile, volumetric.Quality(i))]
	}
}
