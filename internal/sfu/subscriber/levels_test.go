package subscriber

import (
	"fmt"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestRatesThatAreNotKnown(t *testing.T) {
	for name, test := range map[string]struct {
		change func(l *Levels)
		want   string
	}{
		"nothing is known": {func(*Levels) {}, "[3000000 6000000 12000000 3000000 6000000 12000000]"},
		"one level is declared": {func(l *Levels) { l.description.Qualities[1].Bitrate = 4e6 },
			"[2000000 4000000 8000000 2000000 4000000 8000000]"},
		"one track is measured": {func(l *Levels) { l.measured[0] = 5e6 },
			"[5000000 10000000 20000000 5000000 6000000 12000000]"},
		"measured beats declared": {func(l *Levels) { l.description.Qualities[2].Bitrate, l.measured[2] = 9e6, 7e6 },
			"[1750000 3500000 7000000 2250000 4500000 9000000]"},
		"another codec": {func(l *Levels) { l.description.Codec.MIMEType = volumetric.MIMEVP8 },
			"[312500 625000 1250000 312500 625000 1250000]"},
		"absurd declarations": {func(l *Levels) {
			q := l.description.Qualities
			q[0].Bitrate, q[2].Bitrate = -5, 1<<62
		}, "[250000000000 500000000000 1000000000000 250000000000 500000000000 1000000000000]"},
		"loud audio": {func(l *Levels) {
			l.description.Kind = volumetric.KindAudio
			l.description.Qualities[2].Bitrate = 90e6
		}, "[384000 768000 1536000 384000 768000 1536000]"},
		"a guess beyond the maximum": {func(l *Levels) { l.measured[0] = 9e11 },
			"[900000000000 1000000000000 1000000000000 900000000000 6000000 12000000]"},
	} {
		l := newLevels(described(2, 3, volumetric.ModeAlternatives))
		test.change(l)
		l.fill()
		plain := make([]int64, len(l.rates))
		for i, rate := range l.rates {
			plain[i] = int64(rate)
		}
		if got := fmt.Sprint(plain); got != test.want {
			t.Errorf("%s: got %s, expected %s", name, got, test.want)
		}
	}
}

// TestRatesMove checks that rates change beyond the tolerance after a sufficient time of measurement, and that a paused
// track keeps its rate.
func TestRatesMove(t *testing.T) {
	l := newLevels(described(1, 2, volumetric.ModeAlternatives))
	low, high := playedMeter(0), playedMeter(0)
	l.meters = []Meter{&low, &high}
	asked := true
	for _, step := range []struct {
		at    time.Duration
		meter playedMeter
		asked bool
		want  volumetric.Bitrate
		news  bool
	}{
		{0, 90e6, true, 12e6, false},
		{299 * time.Millisecond, 1e6, true, 12e6, false},
		{300 * time.Millisecond, 1e6, true, 1e6, true},
		{1200 * time.Millisecond, 1_040_000, true, 1e6, false},
		{1300 * time.Millisecond, 1_060_000, true, 1_060_000, true},
		// The track becomes silent, and the first measurements after that do not count.
		{3 * time.Second, 0, true, 1_060_000, false},
		{4 * time.Second, 90e6, true, 1_060_000, false},
		{5000 * time.Millisecond, 90e6, true, 1_060_000, false},
		{5100 * time.Millisecond, 2e6, true, 2e6, true},
		// The publisher is asked to pause, which the meter does not show for a while.
		{6 * time.Second, 500e3, false, 2e6, false},
		{7 * time.Second, 500e3, true, 2e6, false},
		{8 * time.Second, 500e3, true, 2e6, false},
		{8100 * time.Millisecond, 500e3, true, 500e3, true},
	} {
		low, asked = step.meter, step.asked
		news := l.measure(start.Add(step.at), func(int, volumetric.Quality) bool { return asked })
		if got := l.Rate(0, 0); got != step.want || news != step.news {
			t.Errorf("after %v: %v, news is %v, expected %v, %v", step.at, got, news, step.want, step.news)
		}
	}
}

// burstMeter is a meter of a track that has resumed after a pause.
type burstMeter struct {
	playedMeter
	resumed time.Time
	now     time.Time
}

// Steady implements Meter.
func (m *burstMeter) Steady() time.Duration { return m.now.Sub(m.resumed) }

// TestPauseBetweenMeasurements checks that the rate of a burst of frames does not count if the pause before the burst
// began and ended between two measurements: the room's goroutine or the publisher's host may stall.
func TestPauseBetweenMeasurements(t *testing.T) {
	l := newLevels(described(1, 2, volumetric.ModeAlternatives))
	m := &burstMeter{playedMeter: 2e6, resumed: start}
	l.meters = []Meter{m, nil}
	measure := func(at time.Duration, rate playedMeter, want volumetric.Bitrate) {
		t.Helper()
		m.now, m.playedMeter = start.Add(at), rate
		l.measure(m.now, func(int, volumetric.Quality) bool { return true })
		if got := l.Rate(0, 0); got != want {
			t.Errorf("after %v: %v, expected %v", at, got, want)
		}
	}
	measure(0, 2e6, 12e6)
	measure(400*time.Millisecond, 2e6, 2e6)
	measure(3*time.Second, 2e6, 2e6)
	m.resumed = start.Add(4090 * time.Millisecond)
	measure(4100*time.Millisecond, 1e9, 2e6)
	measure(4500*time.Millisecond, 10e6, 2e6)
	measure(5200*time.Millisecond, 3e6, 3e6)
}

func TestSubstitutesOfGivenUpTracks(t *testing.T) {
	l := newLevels(described(1, 4, volumetric.ModeAlternatives))
	for _, test := range []struct {
		gaveUp  allocate.QualitySet
		q, want volumetric.Quality
	}{
		{0, 2, 2},
		{allocate.Qualities(3), 3, 2},
		{allocate.Qualities(2, 3), 3, 1},
		{allocate.Qualities(0, 1), 1, 2},
		{allocate.Qualities(0, 1, 2, 3), 1, 1},
		{allocate.Qualities(0), volumetric.QualityOff, volumetric.QualityOff},
	} {
		l.GiveUp([]allocate.QualitySet{test.gaveUp})
		if got := l.available(0, test.q); got != test.want {
			t.Errorf("without %v, %d becomes %d, expected %d", test.gaveUp, test.q, got, test.want)
		}
	}
}

func TestLevelsThatWereGivenUp(t *testing.T) {
	l := newLevels(described(1, 4, volumetric.ModeAlternatives))
	for q := range l.measured {
		l.measured[q] = 1e6 << q
	}
	l.fill()
	for gaveUp, want := range map[allocate.QualitySet]string{
		0:                        "[1000000 2000000 4000000 8000000]",
		allocate.Qualities(3):    "[1000000 2000000 4000000 4000000]",
		allocate.Qualities(0, 1): "[4000000 4000000 4000000 8000000]",
		allocate.Qualities(0, 2): "[2000000 2000000 2000000 8000000]",
	} {
		l.GiveUp([]allocate.QualitySet{gaveUp})
		into := make([]allocate.Level, 4)
		l.describe(0, into, func(int, volumetric.Quality) bool { return false })
		var got []int64
		for _, level := range into {
			got = append(got, int64(level.Rate))
		}
		if fmt.Sprint(got) != want {
			t.Errorf("without %v the levels cost %v, expected %s", gaveUp, got, want)
		}
	}
}
