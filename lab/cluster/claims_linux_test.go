package cluster

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/long"
	"github.com/volsfu/volsfu/test/program"
)

// TestMain runs the tests in a network namespace of their own.
func TestMain(m *testing.M) {
	if os.Geteuid() == 0 {
		if err := enterOwnNetwork(); err != nil {
			fmt.Fprintln(os.Stderr, "tests of clusters:", err)
		}
	}
	os.Exit(program.Main(m))
}

// loaded are parts of the names of lines that a busy machine may miss, although their targets are exact counts: frames
// that a late process drops, and requests for packets that are late. A drain also loses frames on an idle machine
// (docs/cluster.md). vollab check cluster judges them.
var loaded = []string{"frames lost", "requested from publishers"}

// measureShort measures a claim in a short time. A line fails the test only if its target is an exact count, and
// loaded does not have a part of its name: a busy machine may miss the others.
func measureShort(t *testing.T, number int) {
	t.Helper()
	if !inOwnNetwork() {
		t.Skip("skipped: network namespaces take root")
	}
	defer goleak.VerifyNone(t)
	b := &bench{short: true, progress: lab.NewProgress(t.Output())}
	b.options.Programs = program.Static().Folder(t, "volsfu")
	lines, err := newCheck(titles[number-1], b, measurements[number]).Run(t.Context())
	if err != nil {
		t.Error(err)
	}
	if len(lines) == 0 {
		t.Error("no lines")
	}
	for _, l := range lines {
		t.Log(l)
		if l.Failed != "" || l.Missed() && strings.HasPrefix(l.Target, "= ") &&
			!slices.ContainsFunc(loaded, func(name string) bool { return strings.Contains(l.Name, name) }) {
			t.Errorf("a line that a busy machine does not explain: %v", l)
		}
	}
}

// TestShortSpread: four participants at three nodes receive each other's frames.
func TestShortSpread(t *testing.T) { measureShort(t, 1) }

// TestShortTrunk counts the packets of one second on a trunk.
func TestShortTrunk(t *testing.T) {
	long.Test(t)
	measureShort(t, 2)
}

// TestShortRelay measures the latency that a relay adds, for a second.
func TestShortRelay(t *testing.T) {
	long.Test(t)
	measureShort(t, 3)
}

// TestShortLosses counts the frames over trunks that lose packets, for two seconds each.
func TestShortLosses(t *testing.T) {
	long.Test(t)
	measureShort(t, 5)
}

// TestShortOutage ends the NATS server for some seconds.
func TestShortOutage(t *testing.T) {
	long.Test(t)
	measureShort(t, 8)
}

// TestShortPartition separates a node for some seconds.
func TestShortPartition(t *testing.T) {
	long.Test(t)
	measureShort(t, 9)
}

// TestShortIdle measures servers alone and in a cluster.
func TestShortIdle(t *testing.T) {
	long.Test(t)
	measureShort(t, 12)
	measureShort(t, 13)
}

// TestShortCost measures the processor time of a relay with 10 Mbit/s.
func TestShortCost(t *testing.T) {
	long.Test(t)
	measureShort(t, 4)
}

// TestShortFailures has a node fail once in each way.
func TestShortFailures(t *testing.T) {
	long.Test(t)
	measureShort(t, 6)
}

// TestShortDrain drains a node once.
func TestShortDrain(t *testing.T) {
	long.Test(t)
	measureShort(t, 7)
}
