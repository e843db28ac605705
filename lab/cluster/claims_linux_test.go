package cluster

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/long"
	"github.com/volsfu/volsfu/test/program"
	"github.com/volsfu/volsfu/test/wait"
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

// loaded are parts of the names of lines with exact counts that a machine may miss while a goroutine without other work
// is late by busy or more: frames that a late process drops, and requests for packets that are late. A drain loses no
// frame on any machine.
var loaded = []string{"lost", "requested from publishers"}

const busy = 20 * time.Millisecond

// measureShort measures a claim in a short time. A line fails the test only if its target is an exact count that a busy
// machine does not explain. vollab check cluster judges every line.
func measureShort(t *testing.T, number int) {
	t.Helper()
	if !inOwnNetwork() {
		t.Skip("skipped: network namespaces take root")
	}
	stalls := wait.WatchStalls(t)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
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
		explained := stalls.Longest() >= busy && !strings.HasPrefix(l.Name, "drain") &&
			slices.ContainsFunc(loaded, func(name string) bool { return strings.Contains(l.Name, name) })
		if l.Failed != "" || l.Missed() && strings.HasPrefix(l.Target, "= ") && !explained {
			t.Errorf("a line that stalls of %v do not explain: %v", stalls.Longest(), l)
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

// TestShortViewers has 20 viewers at five nodes receive a publication.
func TestShortViewers(t *testing.T) {
	long.Test(t)
	measureShort(t, 11)
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
