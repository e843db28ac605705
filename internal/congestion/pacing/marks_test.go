package pacing

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/netem"
)

// TestMarks sends the frames of three publishers, 97 % of the estimate in all, through a DualPI2 queue, at the same
// time and one after another. On a smooth path almost no packet is marked up to an estimate of the rate of the link;
// with the usual bursts many are if the frames come at the same time and the estimate is 0.4 of the link.
func TestMarks(t *testing.T) {
	for _, test := range []struct {
		link, estimate int64
		smooth         bool
		phase          time.Duration
		least, most    float64
	}{
		{20_000_000, 20_000_000, true, 0, 0, 0.01},
		{20_000_000, 20_000_000, true, 11 * ms, 0, 0.01},
		{100_000_000, 98_000_000, true, 0, 0, 0.01},
		{100_000_000, 98_000_000, true, 11 * ms, 0, 0.01},
		{100_000_000, 100_000_000, true, 0, 0, 0.05},
		// Above the rate of the link the queue marks.
		{100_000_000, 102_000_000, true, 11 * ms, 0.5, 1},
		{100_000_000, 40_000_000, false, 0, 0.1, 1},
		{100_000_000, 98_000_000, false, 11 * ms, 0.5, 1},
	} {
		got := marked(t, test.link, Path{Estimate: test.estimate, Smooth: test.smooth}, test.phase)
		if got < test.least || got > test.most {
			t.Errorf("%+v: %.3f of the packets are marked", test, got)
		}
	}
}

// marked returns the share of packets that are marked.
func marked(t *testing.T, rate int64, known Path, phase time.Duration) float64 {
	t.Helper()
	const interval = time.Second / 30
	epoch := time.Unix(1_000_000, 0)
	link, err := netem.NewLink(netem.Config{}, 1, netem.NewDualPI2(2_000_000))
	if err != nil {
		t.Fatal(err)
	}
	trace := netem.RateTrace{Steps: []netem.RateStep{{RateBPS: int(rate)}}, Duration: time.Hour}
	if err := link.SetRate(trace, epoch); err != nil {
		t.Fatal(err)
	}
	p, random := newPath(t, Default, 3), rand.New(rand.NewPCG(1, 29))
	p.pacer.SetPath(known, 0)
	each := 0.97 * float64(known.Estimate) / 8 / 30 / 3
	for frame := range int64(60) {
		for flow := range p.flows {
			p.until(time.Duration(frame)*interval + time.Duration(flow)*phase)
			packets := int(each * (0.8 + 0.4*random.Float64()) / float64(p.bytes))
			for i := range packets {
				p.arrive(flow, framed(frame, i, packets))
			}
		}
	}
	p.until(time.Hour)
	marks, delivered := 0, 0
	count := func(packets []*netem.Packet) {
		for _, packet := range packets {
			delivered++
			if packet.ECN == ecn.CE {
				marks++
			}
		}
	}
	for _, s := range p.out {
		count(link.Deliver(epoch.Add(s.left)))
		link.Send(&netem.Packet{Size: p.bytes, ECN: ecn.ECT1}, epoch.Add(s.left))
	}
	count(link.Deliver(epoch.Add(time.Hour)))
	if delivered != len(p.out) {
		t.Fatalf("%d of %d packets arrive", delivered, len(p.out))
	}
	return float64(marks) / float64(delivered)
}
