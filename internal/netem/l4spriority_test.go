package netem_test

import (
	"math"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/test/race"
)

// paper000 is a link of 200 Mbit/s with the queue of the paper.
func paper000() netem.Config {
	return with(func(c *netem.Config) {
		c.RateBPS, c.Queue, c.QueueDelay = 200_000_000, netem.QueuePaper000, 100*time.Millisecond
	})
}

// flow is packets of 1,250 bytes at a constant rate: 10,000 bits each.
type flow struct {
	number uint64
	ecn    ecn.Codepoint
	mbps   int
}

// offer sends flows through a link for some seconds, and returns for each flow of the last second: the received Mbit/s,
// and the share of received packets that is marked.
func offer(link *netem.Link, seconds int, flows ...flow) (mbps, marked map[uint64]float64) {
	mbps, marked = make(map[uint64]float64), make(map[uint64]float64)
	last := at(time.Duration(seconds-1) * second)
	take := func(packets []*netem.Packet) {
		for _, p := range packets {
			if p.Arrival.Before(last) {
				continue
			}
			mbps[p.Flow] += 0.01
			if p.ECN == ecn.CE {
				marked[p.Flow] += 0.01
			}
		}
	}
	sent := make([]int, len(flows))
	for tick := range seconds * 100_000 { // of 10 µs, in which a flow of 100 Mbit/s sends a tenth of a packet
		now := at(time.Duration(tick) * 10 * us)
		for i, f := range flows {
			if sent[i]*1000 <= tick*f.mbps {
				link.Send(&netem.Packet{Flow: f.number, Size: 1250, ECN: f.ecn}, now)
				sent[i]++
			}
		}
		take(link.Deliver(now))
	}
	for flow := range marked {
		marked[flow] /= mbps[flow]
	}
	return mbps, marked
}

func TestL4SPriority(t *testing.T) {
	race.SkipSequential(t)
	for _, test := range []struct {
		name         string
		flows        []flow
		mbps, marked []float64 // of each flow
	}{
		{"L4S below half of the rate", []flow{{1, ecn.ECT1, 95}}, []float64{95}, []float64{0}},
		{"a third of L4S is too much", []flow{{1, ecn.ECT1, 150}}, []float64{150}, []float64{1. / 3}},
		{"L4S above the rate", []flow{{1, ecn.ECT1, 250}}, []float64{200}, []float64{0.5}},
		{"marked packets are L4S", []flow{{1, ecn.CE, 250}}, []float64{200}, []float64{1}},
		{"classic is neither marked nor policed", []flow{{1, ecn.ECT0, 190}}, []float64{190}, []float64{0}},
		{"L4S goes first", []flow{{1, ecn.ECT1, 150}, {2, ecn.NotECT, 150}}, []float64{150, 50},
			[]float64{1. / 3, 0}},
		{"classic flows share", []flow{{1, ecn.ECT1, 80}, {2, ecn.NotECT, 300}, {3, ecn.ECT0, 100}},
			[]float64{80, 60, 60}, []float64{0, 0, 0}},
		{"the limits are those of all L4S flows", []flow{{1, ecn.ECT1, 80}, {2, ecn.ECT1, 80}}, []float64{80, 80},
			[]float64{0.375, 0.375}},
	} {
		t.Run(test.name, func(t *testing.T) {
			mbps, marked := offer(newLink(t, paper000(), 1), 2, test.flows...)
			share := 0.0
			for i, f := range test.flows {
				if math.Abs(mbps[f.number]-test.mbps[i]) > 1 {
					t.Errorf("flow %d gets %.2f Mbit/s, expected %.0f", f.number, mbps[f.number], test.mbps[i])
				}
				share += (marked[f.number] - test.marked[i]) * mbps[f.number]
			}
			// The interleaving of the packets decides which of several flows is marked.
			if math.Abs(share) > 1 {
				t.Errorf("%.2f Mbit/s more marked than expected: %v, expected %v", share, marked, test.marked)
			}
		})
	}
}

// TestL4SPriorityTakesFrames sends frames as paper 000's own sender does, 90 Mbit/s in 30 frames a second, each within
// 20 ms and so at 150 Mbit/s: there are no marks.
func TestL4SPriorityTakesFrames(t *testing.T) {
	link := newLink(t, paper000(), 1)
	for frame := range 30 {
		for i := range 300 { // packets of 1,250 bytes: 375 kB
			link.Send(&netem.Packet{Size: 1250, ECN: ecn.ECT1},
				at(time.Duration(frame)*second/30+time.Duration(i)*20*time.Millisecond/300))
		}
	}
	link.Deliver(at(2 * second))
	if s := link.Stats(); s.Marked != 0 || s.Delivered != 9000 {
		t.Errorf("%+v, expected all delivered and none marked", s)
	}
}

// TestL4SPriorityFollowsTheRate changes the rate of a link: the meters change with it.
func TestL4SPriorityFollowsTheRate(t *testing.T) {
	cfg := paper000()
	link := newLink(t, cfg, 1)
	cfg.RateBPS = 400_000_000
	if err := link.Reconfigure(cfg, epoch); err != nil {
		t.Fatal(err)
	}
	if mbps, marked := offer(link, 2, flow{1, ecn.ECT1, 190}); marked[1] != 0 || math.Abs(mbps[1]-190) > 1 {
		t.Errorf("%v Mbit/s, %v marked, expected 190 and none", mbps, marked)
	}
}
