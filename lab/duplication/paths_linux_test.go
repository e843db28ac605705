package duplication

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab/experiment/paper003"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/traffic"
)

// verdicts returns the names of the lines that miss their targets.
func verdicts(lines []claim.Line) (missed []string) {
	for _, l := range lines {
		if l.Missed() {
			missed = append(missed, l.Name)
		}
	}
	return missed
}

// TestJudgePaths: a run within the targets meets them, and each fault misses one.
func TestJudgePaths(t *testing.T) {
	plan := []paper003.Variation{{Kind: paper003.VariationPacket, Begin: 5 * time.Second, End: 9 * time.Second}}
	packets := []traffic.Datagram{
		{Sent: 4 * time.Second, Arrived: 4*time.Second + 90*ms, Copies: 1},
		{Sent: 5 * time.Second, Arrived: 5*time.Second + 30*ms, Copies: 1},
		{Sent: 5*time.Second + 10*ms, Arrived: 5*time.Second + 51*ms, Copies: 1},
		{Sent: 5*time.Second + 11*ms},
	}
	if got := firstLate(packets, plan[0], 40*ms); got != 5*time.Second+10*ms {
		t.Errorf("the first late packet was sent at %v", got)
	}
	good := changes{{5080 * ms, 1, true}, {5080 * ms, 2, true}, {5290 * ms, 2, false}, {5400 * ms, 0, false},
		{10500 * ms, 0, true}, {11300 * ms, 1, false}}
	for name, test := range map[string]struct {
		change func(changes)
		missed int
	}{
		"good":          {func(changes) {}, 0},
		"late copies":   {func(c changes) { c[0].at, c[1].at = 5150*ms, 5150*ms }, 1},
		"useless path":  {func(c changes) { c[2].at = 5390 * ms }, 1},
		"late return":   {func(c changes) { c[4].at = 11200 * ms }, 1},
		"no copies":     {func(c changes) { clear(c) }, 2},
		"never returns": {func(c changes) { c[4].path = 3 }, 2},
	} {
		list := append(changes(nil), good...)
		test.change(list)
		lines := append(judgeStarts(list, plan, packets), judgeLeaves(list, plan, 20*time.Second)...)
		lines = append(lines, judgeReturns(list, plan)...)
		if missed := verdicts(lines); len(missed) != test.missed {
			t.Errorf("%s: %v missed, expected %d targets", name, missed, test.missed)
		}
	}
}

// TestVariations: the variations do not overlap, and both kinds occur.
func TestVariations(t *testing.T) {
	plan, end := variations(false)
	kinds := map[string]int{}
	last := time.Duration(0)
	for _, v := range plan {
		kinds[v.Kind]++
		if v.Begin < last+learning || v.End <= v.Begin {
			t.Errorf("variation %+v follows one that ends at %v", v, last)
		}
		last = v.End
	}
	if len(plan) < 20 || kinds[paper003.VariationPacket] != kinds[paper003.VariationDrift] || end < last+returnTarget {
		t.Errorf("%d variations, %v, until %v", len(plan), kinds, end)
	}
}

// TestGaps: the longest gap is between packets that arrived, in the order of their arrivals.
func TestGaps(t *testing.T) {
	packets := []traffic.Datagram{
		{Sent: 1000 * ms, Arrived: 1020 * ms, Copies: 1}, {Sent: 1001 * ms, Arrived: 1070 * ms, Copies: 2},
		{Sent: 1002 * ms, Arrived: 1022 * ms, Copies: 1}, {Sent: 1003 * ms}, {Sent: 1100 * ms, Arrived: 1120 * ms,
			Copies: 1}, {Sent: 2000 * ms, Arrived: 2020 * ms, Copies: 1},
	}
	if gap := longestGap(packets, 1000*ms, 2000*ms); gap != 50*ms {
		t.Errorf("the longest gap is %v, expected 50 ms", gap)
	}
}
