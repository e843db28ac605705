package netem_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
)

const second = time.Second

// upAndDown has 8 Mbit/s for 1 s, an outage of 1 s, and 4 Mbit/s for 2 s.
func upAndDown(loop bool) netem.RateTrace {
	return netem.RateTrace{Steps: []netem.RateStep{{0, 8_000_000}, {second, 0}, {2 * second, 4_000_000}},
		Duration: 4 * second, Loop: loop}
}

func TestRateTraceFigures(t *testing.T) {
	trace := upAndDown(false)
	if mean, highest := trace.Mean(), trace.Max(); mean != 4_000_000 || highest != 8_000_000 {
		t.Errorf("mean %d, max %d; expected 4 and 8 Mbit/s", mean, highest)
	}
	tests := []struct {
		at         time.Duration
		held, loop int
		bitsHeld   float64 // until then
		bitsLoop   float64
	}{
		{0, 8e6, 8e6, 0, 0},
		{second / 2, 8e6, 8e6, 4e6, 4e6},
		{second, 0, 0, 8e6, 8e6},
		{2*second - 1, 0, 0, 8e6, 8e6},
		{3 * second, 4e6, 4e6, 12e6, 12e6},
		{4 * second, 4e6, 8e6, 16e6, 16e6},
		{9*second + second/2, 4e6, 0, 38e6, 40e6},
	}
	looping := upAndDown(true)
	for _, test := range tests {
		if held, loop := trace.RateAt(test.at), looping.RateAt(test.at); held != test.held || loop != test.loop {
			t.Errorf("rate at %v is %d held and %d looping, expected %d and %d", test.at, held, loop,
				test.held, test.loop)
		}
		held, loop := trace.Bits(0, test.at), looping.Bits(0, test.at)
		if math.Abs(held-test.bitsHeld) > 1 || math.Abs(loop-test.bitsLoop) > 1 {
			t.Errorf("%g bits until %v held and %g looping, expected %g and %g", held, test.at, loop, test.bitsHeld,
				test.bitsLoop)
		}
	}
	if bits := looping.Bits(3*second, 5*second); bits != 12e6 {
		t.Errorf("%g bits from 3 to 5 s, expected 12e6", bits)
	}
}

func TestOutages(t *testing.T) {
	trace := netem.RateTrace{Duration: 10 * second, Steps: []netem.RateStep{
		{0, 0}, {second, netem.OutageBPS}, {2 * second, netem.OutageBPS - 1}, {3 * second, 0}, {4 * second, 5e6},
		{9 * second, 900_000},
	}}
	expected := []netem.Interval{{0, second}, {2 * second, 4 * second}, {9 * second, 10 * second}}
	if got := trace.Outages(); !slices.Equal(got, expected) {
		t.Errorf("outages %v, expected %v", got, expected)
	}
}

func TestValidateRateTrace(t *testing.T) {
	tests := []struct {
		part  string // of the message; empty = valid
		trace netem.RateTrace
	}{
		{"", upAndDown(true)},
		{"no steps", netem.RateTrace{Duration: second}},
		{"step 0 is -1 bit/s", netem.RateTrace{Duration: second, Steps: []netem.RateStep{{0, -1}}}},
		{"step 1 is 2000000000000 bit/s", netem.RateTrace{Duration: second,
			Steps: []netem.RateStep{{0, 1}, {1, 2e12}}}},
		{"begins at 1s", netem.RateTrace{Duration: 2 * second, Steps: []netem.RateStep{{second, 1}}}},
		{"step 2 is at 1s, expected a time after 1s",
			netem.RateTrace{Duration: 2 * second, Steps: []netem.RateStep{{0, 1}, {second, 1}, {second, 2}}}},
		{"duration is 1s, expected more than 1s",
			netem.RateTrace{Duration: second, Steps: []netem.RateStep{{0, 1}, {second, 1}}}},
		{"duration is 2000h", netem.RateTrace{Duration: 2000 * time.Hour, Steps: []netem.RateStep{{0, 1}}}},
		{"every rate is 0", netem.RateTrace{Duration: second, Loop: true, Steps: []netem.RateStep{{0, 0}}}},
		{"holds for ever", netem.RateTrace{Duration: 2 * second, Steps: []netem.RateStep{{0, 1}, {second, 0}}}},
		{"", netem.RateTrace{Duration: 2 * second, Loop: true, Steps: []netem.RateStep{{0, 1}, {second, 0}}}},
	}
	for _, test := range tests {
		err := test.trace.Validate()
		switch {
		case test.part == "" && err != nil:
			t.Errorf("%+v: %v", test.trace, err)
		case test.part != "" && (!errors.Is(err, netem.ErrTrace) || !strings.Contains(err.Error(), test.part)):
			t.Errorf("%+v: error %v, expected ErrTrace with %q", test.trace, err, test.part)
		}
		link := newLink(t, netem.DefaultConfig(), 1)
		if linkErr := link.SetRate(test.trace, epoch); (linkErr == nil) != (err == nil) {
			t.Errorf("%+v: SetRate returned %v, Validate %v", test.trace, linkErr, err)
		}
	}
	link := newLink(t, netem.Config{}, 1)
	if err := link.SetRate(upAndDown(true), epoch); !errors.Is(err, netem.ErrConfig) ||
		!strings.Contains(err.Error(), "queue_bytes") {
		t.Errorf("error %v for a link without a limit of its queue, expected ErrConfig", err)
	}
}

func setRate(t testing.TB, link *netem.Link, trace netem.RateTrace, now time.Time) {
	t.Helper()
	if err := link.SetRate(trace, now); err != nil {
		t.Fatal(err)
	}
}

// TestRateSteps is a trace computed by hand. A packet of 1,250 bytes is 10,000 bits.
func TestRateSteps(t *testing.T) {
	ms := time.Millisecond
	steps := []netem.RateStep{{0, 10_000_000}, {5 * ms / 2, 2_000_000}, {10 * ms, 0}, {20 * ms, 10_000_000}}
	tests := []struct {
		name     string
		trace    netem.RateTrace
		count    int
		expected []time.Duration
	}{
		// Two packets in 1 ms each; half of the third, its other half in 2.5 ms; one more in 5 ms. The fifth waits
		// until 20 ms.
		{"held", netem.RateTrace{Steps: steps, Duration: 30 * ms}, 16, []time.Duration{
			1 * ms, 2 * ms, 5 * ms, 10 * ms, 21 * ms, 22 * ms, 23 * ms, 24 * ms, 25 * ms, 26 * ms, 27 * ms, 28 * ms,
			29 * ms, 30 * ms, 31 * ms, 32 * ms,
		}},
		// At 21.5 ms the first step begins again: half of the sixth packet takes 0.5 ms before, half after, which
		// leaves 2 ms for two more. At 24 ms 2 Mbit/s begin, and at 31.5 ms the next outage: one packet and a half. It
		// lasts until 41.5 ms.
		{"looping", netem.RateTrace{Steps: steps, Duration: 43 * ms / 2, Loop: true}, 10, []time.Duration{
			1 * ms, 2 * ms, 5 * ms, 10 * ms, 21 * ms, 22 * ms, 23 * ms, 24 * ms, 29 * ms, 42 * ms,
		}},
	}
	for _, test := range tests {
		for _, stepped := range []bool{true, false} {
			link := newLink(t, with(func(c *netem.Config) { c.QueueBytes = 1_000_000 }), 1)
			setRate(t, link, test.trace, epoch)
			for i := range test.count {
				link.Send(&netem.Packet{Flow: uint64(i), Size: 1250}, epoch)
			}
			var arrivals []arrival
			if stepped {
				arrivals = drain(link)
			} else {
				arrivals = appendArrivals(nil, link.Deliver(at(time.Hour)))
			}
			var got []time.Duration
			for _, a := range arrivals {
				got = append(got, a.at)
			}
			if !slices.Equal(got, test.expected) {
				t.Errorf("%s, stepped %t: arrivals %v, expected %v", test.name, stepped, got, test.expected)
			}
		}
	}
}

// TestTraceIsExactOverManySteps keeps a link busy at odd rates for many rounds of a trace, and compares the carried
// bits with the trace.
func TestTraceIsExactOverManySteps(t *testing.T) {
	trace := netem.RateTrace{Loop: true, Duration: 97 * time.Millisecond, Steps: []netem.RateStep{
		{0, 7_000_003}, {13_000_007, 12_345_678}, {40_000_001, 0}, {50 * time.Millisecond, 999_999},
		{71 * time.Millisecond, 31_415_926},
	}}
	link := newLink(t, with(func(c *netem.Config) { c.QueueBytes, c.QueueDelay = 1<<30, 0 }), 1)
	setRate(t, link, trace, epoch)
	const count, size = 20_000, 1217
	for _, a := range run(link, count, size, 0) {
		// A step leaves at most a fraction of a nanosecond of work at the rate before it, which carries over: less than
		// 0.1 bit in all.
		sent := float64(a.number+1) * size * 8
		if can := trace.Bits(0, a.at); math.Abs(can-sent) > 0.1 {
			t.Fatalf("packet %d, bit %g, arrived at %v, when %g bits were possible", a.number, sent, a.at, can)
		}
	}
}

func TestOutageEndsEarly(t *testing.T) {
	for name, change := range map[string]func(l *netem.Link) error{
		"Reconfigure": func(l *netem.Link) error {
			return l.Reconfigure(with(func(c *netem.Config) { c.RateBPS = 10_000_000 }), at(3*second/2))
		},
		"SetRate": func(l *netem.Link) error {
			return l.SetRate(netem.RateTrace{Steps: []netem.RateStep{{0, 10_000_000}}, Duration: second},
				at(3*second/2))
		},
	} {
		link := newLink(t, netem.DefaultConfig(), 1)
		setRate(t, link, upAndDown(false), epoch)
		link.Send(&netem.Packet{Flow: 1, Size: 1250}, at(1200*time.Millisecond))
		link.Send(&netem.Packet{Flow: 2, Size: 1250}, at(1300*time.Millisecond))
		if next := link.Next(); !next.Equal(at(2 * second)) {
			t.Errorf("Next is %v during the outage, expected its end at 2s", next.Sub(epoch))
		}
		if err := change(link); err != nil {
			t.Fatal(err)
		}
		expected := []arrival{{1, 1501 * time.Millisecond}, {2, 1502 * time.Millisecond}}
		if got := drain(link); !slices.Equal(got, expected) {
			t.Errorf("%s during an outage: arrivals %v, expected %v", name, got, expected)
		}
	}
}

// TestQueueLimitOfTrace expects a limit in time to use the mean rate of the trace, 4 Mbit/s: 100 ms are 50,000 bytes.
func TestQueueLimitOfTrace(t *testing.T) {
	for _, discipline := range []string{netem.QueueFIFO, netem.QueueCoDel, netem.QueueFQ, netem.QueueFQCoDel} {
		link := newLink(t, with(func(c *netem.Config) { c.Queue, c.RateBPS = discipline, 1_000_000 }), 1)
		setRate(t, link, upAndDown(false), epoch)
		for range 100 {
			link.Send(&netem.Packet{Size: 1000}, epoch)
		}
		// One is in transmission, 50 wait.
		if s := link.Stats(); s.DroppedQueue != 49 {
			t.Errorf("%s: %d packets dropped of 100, expected 49", discipline, s.DroppedQueue)
		}
	}
}

func TestReconfigureChangesDiscipline(t *testing.T) {
	link := newLink(t, with(func(c *netem.Config) { c.RateBPS = 10_000_000 }), 1)
	for _, flow := range []uint64{1, 1, 1, 1, 2, 2} {
		link.Send(&netem.Packet{Flow: flow, Size: 1250}, epoch)
	}
	if err := link.Reconfigure(with(func(c *netem.Config) {
		c.RateBPS, c.Queue, c.QueueBytes = 10_000_000,
			netem.QueueFQ, 3*1250
	}), epoch); err != nil {
		t.Fatal(err)
	}
	var got []uint64
	for _, a := range drain(link) {
		got = append(got, a.number)
	}
	// The first is in transmission. Of the five that wait, three fit: of 1, 1, 1, 2, 2 two of flow 1, the longest each
	// time, are dropped.
	if expected := []uint64{1, 1, 2, 2}; !slices.Equal(got, expected) || link.Stats().DroppedQueue != 2 {
		t.Errorf("delivered %v and dropped %d, expected %v and 2", got, link.Stats().DroppedQueue, expected)
	}
}
