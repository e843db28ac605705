package congestion

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
)

// hostilePacket is the number of input bytes for each packet.
const hostilePacket = 8

// hostile is an estimator with a receiver that sends arbitrary reports, while its limits and the wanted rate change.
type hostile struct {
	t         *testing.T
	estimator Estimator
	now       time.Time
	sequence  int64
	limits    Limits
	results   []feedback.PacketResult
}

// play sends a packet for every eight bytes and reports it, perhaps more than once, or later.
func (h *hostile) play(data []byte) {
	for ; len(data) >= hostilePacket; data = data[hostilePacket:] {
		elapsed, size := time.Duration(data[5])*time.Millisecond, int(data[6])*10
		h.now = h.now.Add(elapsed)
		h.sequence += int64(int8(data[6]))
		h.estimator.Sent(h.now, size)
		h.results = append(h.results, feedback.PacketResult{
			Sequence: h.sequence,
			Size:     size,
			Sent:     h.now.Add(-elapsed),
			// Up to ±136 years from four bytes.
			Arrived:  time.Duration(int32(binary.BigEndian.Uint32(data[1:5]))) * 2 * time.Second,
			Received: data[0]&1 != 0,
			Late:     data[0]&2 != 0,
			ECN:      ecn.Codepoint(data[0] >> 1 & 3),
			SentECN:  h.estimator.Stats().ECN,
			Probe:    int(data[0] >> 3),
		})
		h.change(data[7]&3, Bitrate(data[7]>>2))
		if data[0]&4 != 0 {
			h.estimator.Report(h.now, h.results)
			h.results = h.results[:0]
		}
		h.estimator.Step(h.now)
		h.check()
	}
	h.estimator.Report(h.now, h.results)
	h.check()
}

// change alters the other inputs of the estimator: its limits, from 30 kbit/s to 1 Gbit/s, with equal bounds in a
// quarter of all cases; the wanted rate; or the report, which is sent twice.
func (h *hostile) change(what byte, how Bitrate) {
	switch what {
	case 1:
		least := leastRate << (how & 15)
		h.limits = Limits{Min: least, Start: least, Max: least * (1 + how>>4)}
		h.estimator.SetLimits(h.now, h.limits)
	case 2:
		h.estimator.Want(h.now, how*20e6)
	case 3:
		if len(h.results) < 1<<10 {
			h.results = append(h.results, h.results...)
		}
	}
}

// check checks the outputs of the estimator, whatever its input was.
func (h *hostile) check() {
	h.t.Helper()
	e := h.estimator
	if rate := e.Estimate(); rate < h.limits.Min || rate > h.limits.Max {
		h.t.Fatalf("%T: the estimate is %v, its limits are %+v", e, rate, h.limits)
	}
	if next := e.Next(); !next.IsZero() && !next.After(h.now) {
		h.t.Fatalf("%T: the next step is due %v before now", e, h.now.Sub(next))
	}
	if c, ok := e.Probe(h.now); ok && (c.Rate <= 0 || c.Rate > h.limits.Max || c.MinBytes <= 0 || c.MinPackets <= 0 ||
		c.Duration <= 0) {
		h.t.Fatalf("%T: a probe %+v, the limits are %+v", e, c, h.limits)
	}
	s := e.Stats()
	if slices.ContainsFunc([]float64{s.Trend, s.Threshold, s.Loss, s.InherentLoss, s.Alpha},
		func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }) ||
		s.Alpha < 0 || s.Alpha > 1 ||
		s.Loss < 0 || s.Loss > 1 || s.InherentLoss < 0 || s.InherentLoss > 1 || s.RTT < 0 || s.Window < 0 ||
		s.Acknowledged < 0 {
		h.t.Fatalf("%T: %+v", e, s)
	}
}

// FuzzReport passes all estimators the results that a hostile receiver may cause: impossible times, duplicates,
// packets sent long ago, and any order, while limits and the wanted rate change.
func FuzzReport(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 0, 0, 0, 0, 1, 200, 0, 1, 0, 0, 1, 0, 1, 200, 1, 0, 255, 0, 0, 0, 0, 1, 2})
	f.Add([]byte{5, 255, 255, 255, 255, 255, 255, 49, 1, 127, 255, 255, 255, 2, 3, 3, 5, 128, 0, 0, 0, 255, 0, 254, 5,
		9, 9, 9, 9, 7, 7, 1})
	// A probe arrives faster than it was sent, in the same moment, and before it was sent; then the maximum falls below
	// the former minimum.
	f.Add(slices.Concat(
		slices.Repeat([]byte{13, 0, 0, 0, 1, 1, 250, 0}, 20),
		slices.Repeat([]byte{21, 255, 255, 255, 255, 1, 250, 3}, 5),
		slices.Repeat([]byte{4, 0, 0, 0, 0, 100, 250, 57}, 20),
		slices.Repeat([]byte{5, 0, 0, 0, 2, 3, 100, 1}, 20),
	))
	f.Fuzz(func(t *testing.T, data []byte) {
		for algorithm := GCC; algorithm <= Paper000; algorithm++ {
			e := New(algorithm, DefaultConfig(), start)
			h := &hostile{t: t, estimator: e, now: start, limits: DefaultConfig().Limits()}
			h.play(data)
		}
	})
}

// TestLimitsBoundProbes lowers the maximum estimate after the first probes were planned, at 24 and 48 Mbit/s.
func TestLimitsBoundProbes(t *testing.T) {
	for _, test := range []struct {
		most Bitrate
		want []Bitrate
	}{
		{100e6, []Bitrate{24e6, 48e6}}, {30e6, []Bitrate{24e6, 30e6}}, {24e6, []Bitrate{24e6}}, {10e6, []Bitrate{10e6}},
		{8e6, nil}, {2e6, nil},
	} {
		cfg := startingAt(8e6)
		for _, e := range []Estimator{newGCC(cfg, start), newReliable(cfg, start)} {
			e.Sent(start, 1000)
			e.Step(start)
			e.SetLimits(start, Limits{Min: 1e6, Start: min(8e6, test.most), Max: test.most})
			var got []Bitrate
			for c, ok := e.Probe(start); ok; c, ok = e.Probe(start) {
				if got = append(got, c.Rate); c.MinBytes != int(float64(c.Rate)*c.Duration.Seconds()/8) {
					t.Errorf("%T: %d bytes for %v at %v", e, c.MinBytes, c.Duration, c.Rate)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%T: with %v at most probes are of %v, expected %v", e, test.most, got, test.want)
			}
		}
	}
}

// TestLimitsWhileRunning narrows the limits of a flow that uses its link to one rate, and widens them again: the
// estimate follows at once, and recovers.
func TestLimitsWhileRunning(t *testing.T) {
	link := newTestLink(50 * mbit)
	f := newTestFlow(newGCC(DefaultConfig(), start), link, 7)
	wide := DefaultConfig().Limits()
	one := Limits{Min: 5 * mbit, Start: 5 * mbit, Max: 5 * mbit}
	simulate(link, 15*time.Second, func(now time.Duration) {
		switch now {
		case 5 * time.Second:
			f.estimator.SetLimits(start.Add(now), one)
		case 10 * time.Second:
			f.estimator.SetLimits(start.Add(now), wide)
		}
	}, f)
	if least, _, most := f.extremes(5*time.Second+10*time.Millisecond, 10*time.Second); least != 5*mbit ||
		most != 5*mbit {
		t.Errorf("estimates from %v to %v, expected 5 Mbit/s", Bitrate(least), Bitrate(most))
	}
	back, ok := f.reaches(10*time.Second, 0.8*50*mbit)
	if !ok {
		t.Fatal("the estimate never returned to 80 %")
	}
	atMost(t, "time until the estimate is back at 80 %", back-10*time.Second, 4*time.Second)
}
