package redundancy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/internal/redundancy"
	"github.com/volsfu/volsfu/test/race"
)

// wifi and cellular are the two links of a laptop: a fast one that fails, and a slower one with a longer delay.
func wifi() netem.Config {
	c := netem.DefaultConfig()
	c.Delay, c.Jitter, c.Loss, c.RateBPS = 8*time.Millisecond, 2*time.Millisecond, 0.005, 40_000_000
	return c
}

func cellular() netem.Config {
	c := netem.DefaultConfig()
	c.Delay, c.Jitter, c.Loss, c.RateBPS = 25*time.Millisecond, 4*time.Millisecond, 0, 12_000_000
	return c
}

// dead returns a link that loses everything.
func dead(c netem.Config) netem.Config {
	c.Loss = 1
	return c
}

// interval is an outage of a path.
type interval struct {
	path     int
	from, to time.Duration
}

// outages are those of a minute: of the WiFi, once of the cellular link, and never of both.
var outages = []interval{
	{0, 8 * time.Second, 9 * time.Second},
	{0, 16 * time.Second, 16*time.Second + 300*time.Millisecond},
	{1, 24 * time.Second, 25 * time.Second},
	{0, 32 * time.Second, 33 * time.Second},
	{0, 33*time.Second + 150*time.Millisecond, 33*time.Second + 400*time.Millisecond},
	{0, 44 * time.Second, 47 * time.Second},
}

// conference adds audio, two tiles of the lowest quality, and two of a high quality: 8.1 Mbit/s.
func conference(w *world) (audio *stream, lowest, high []*stream) {
	audio = w.add(&stream{class: redundancy.Audio, every: 20 * time.Millisecond, count: 1, size: 200})
	const interval, spread = time.Second / 30, 13 * time.Millisecond
	for range 2 {
		lowest = append(lowest, w.add(&stream{
			class: redundancy.Lowest, every: interval, spread: spread, count: 2, size: 1000,
		}))
		high = append(high, w.add(&stream{
			class: redundancy.Other, every: interval, spread: spread, count: 12, size: 1200,
		}))
	}
	return audio, lowest, high
}

// result is the result of a run.
type result struct {
	audio, lowest, high outcome
	cost                float64
	stats               redundancy.Stats
}

// run runs a minute over links with outages. The seed determines losses and jitter.
func run(t *testing.T, selector *redundancy.Selector, seed uint64) result {
	w := newWorld(t, selector, seed, wifi(), cellular())
	audio, lowest, high := conference(w)
	for range int(time.Minute / tick) {
		for _, i := range outages {
			perfect := []netem.Config{wifi(), cellular()}[i.path]
			switch w.now.Sub(start) {
			case i.from:
				w.impair(i.path, dead(perfect))
			case i.to:
				w.impair(i.path, perfect)
			}
		}
		w.step()
	}
	r := result{audio: audio.outcome(w.now, undoubled), cost: float64(w.total) / float64(w.sent)}
	for _, tile := range lowest {
		r.lowest = join(r.lowest, tile.outcome(w.now, unprotected))
	}
	for _, tile := range high {
		r.high = join(r.high, tile.outcome(w.now, unprotected))
	}
	if selector != nil {
		r.stats = selector.Stats()
	}
	return r
}

// undoubled is the beginning of the outage of the second path, before audio leaves twice on the first one.
func undoubled(begun time.Time) bool {
	at := begun.Sub(start)
	return at > 24*time.Second-deadline && at < 24*time.Second+120*time.Millisecond
}

// unprotected is the outage of the second path, in which losses of video on the first one are not covered.
func unprotected(begun time.Time) bool {
	at := begun.Sub(start)
	return at > 24*time.Second-deadline && at < 25*time.Second+deadline
}

func join(a, b outcome) outcome {
	return outcome{a.frames + b.frames, a.lost + b.lost, max(a.gap, b.gap)}
}

// seeds is the number of minutes with selected copies.
const seeds = 20

// TestOutages runs a conference over WiFi and a cellular link, with outages of 0.25 to 3 s. Without copies everything
// is lost in an outage. With the selected copies no audio and no frame of the lowest quality is, at less than a quarter
// more traffic, whatever the losses and the jitter are.
func TestOutages(t *testing.T) {
	race.SkipSequential(t)
	off := run(t, nil, 0)
	off.log(t, "off")
	if off.audio.lost < 200 || off.lowest.lost < 200 || off.lowest.gap < time.Second {
		t.Errorf("without copies %d packets of audio and %d frames are lost, gap %v: the links are too good",
			off.audio.lost, off.lowest.lost, off.lowest.gap)
	}
	all := run(t, redundancy.New(redundancy.All, start), 0)
	all.log(t, "all")
	all.verify(t)
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint("selective ", seed), func(t *testing.T) {
			selective := run(t, redundancy.New(redundancy.Auto, start), seed)
			selective.log(t, "selective")
			selective.verify(t)
			if selective.cost > 1.25 {
				t.Errorf("cost is %.3f, expected 1.25 at most", selective.cost)
			}
			if want := uint64(4); selective.stats.Outages < want || selective.stats.Outages > want+3 {
				t.Errorf("%d outages noticed, expected %d", selective.stats.Outages, want)
			}
		})
	}
}

// verify checks that no audio and no frame of the lowest quality is lost.
func (r *result) verify(t *testing.T) {
	t.Helper()
	if r.audio.lost > 0 || r.lowest.lost > 0 {
		t.Errorf("%d packets of audio and %d frames of the lowest quality are lost, expected none", r.audio.lost,
			r.lowest.lost)
	}
	if gap := max(r.audio.gap, r.lowest.gap); gap > 100*time.Millisecond {
		t.Errorf("longest gap is %v, expected 100 ms at most", gap)
	}
}

// log shows the result.
func (r *result) log(t *testing.T, name string) {
	t.Helper()
	t.Logf("%-9s audio %d of %d lost, gap %v; lowest quality %d of %d lost, gap %v; high %d of %d lost, gap %v; "+
		"cost %.3f; %d outages noticed", name, r.audio.lost, r.audio.frames, r.audio.gap, r.lowest.lost,
		r.lowest.frames, r.lowest.gap, r.high.lost, r.high.frames, r.high.gap, r.cost, r.stats.Outages)
}
