package firstlight

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/testbed"
)

// Churn makes participants join and leave a running room many times, and measures the resources that remain in use.
type Churn struct {
	Progress lab.Progress
	// Rounds is the number of joins and leaves; Warmup rounds come before the first measurement.
	Rounds, Warmup int
	Load           testbed.Load
	// HeapPerRound is the largest heap that each round may leave allocated, in bytes.
	HeapPerRound float64
	// Calm is the wait before the first measurement; Settle bounds the wait before the last.
	Calm, Settle time.Duration
}

// NewChurn returns the check of the claim. A participant that stays in memory costs some 650 kB (peer connections,
// slots, caches). 8 kB per round, 1.6 MB in total, are the noise of a heap with a running conference: caches of one
// second, and the lab's own records of 200 rounds. Caches of ended tracks are empty after one second, so that five
// seconds of settling are enough.
func NewChurn(progress lab.Progress) *Churn {
	return &Churn{
		Progress: progress, Rounds: 200, Warmup: 10, HeapPerRound: 8192, Calm: 5 * time.Second,
		Settle: 30 * time.Second,
		Load:   testbed.Load{Name: "body", Tiles: 4, Qualities: 3, FrameBytes: 5000, Rate: 30},
	}
}

// Name implements lab.Check.
func (c *Churn) Name() string { return fmt.Sprintf("%d joins and leaves", c.Rounds) }

// Run implements lab.Check.
func (c *Churn) Run(ctx context.Context) ([]claim.Line, error) {
	conference, err := testbed.NewConference(settings(), nil, zap.NewNop())
	if err != nil {
		return nil, err
	}
	defer conference.Close()
	resident, err := conference.Join(ctx, testbed.Part{Room: "room", Identity: "resident",
		Loads: []testbed.Load{c.Load}, MinUplink: testbed.Everything, Receive: true})
	if err != nil {
		return nil, err
	}
	if err := c.rounds(ctx, conference, resident, c.Warmup); err != nil {
		return nil, err
	}
	if err := lab.Pause(ctx, c.Calm); err != nil {
		return nil, err
	}
	known := goleak.IgnoreCurrent()
	before := takeInventory()
	began := time.Now()
	if err := c.rounds(ctx, conference, resident, c.Rounds); err != nil {
		return nil, err
	}
	took := time.Since(began)
	at := takeInventory()
	after, err := c.settled(ctx, before)
	if err != nil {
		return nil, err
	}
	lines := c.lines(before, at, after, took)
	if err := goleak.Find(known); err != nil {
		return lines, fmt.Errorf("goroutines are left: %w", err)
	}
	return lines, resident.Failure()
}

// rounds makes visitors join, receive, be received, and leave.
func (c *Churn) rounds(ctx context.Context, conference *testbed.Conference, resident *testbed.Peer, rounds int) error {
	for i := range rounds {
		if i > 0 && i%50 == 0 {
			c.Progress.Say("%d of %d", i, rounds)
		}
		if err := c.round(ctx, conference, resident); err != nil {
			return fmt.Errorf("round %d: %w", i+1, err)
		}
	}
	return nil
}

func (c *Churn) round(ctx context.Context, conference *testbed.Conference, resident *testbed.Peer) error {
	ctx, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	visitor, err := conference.Join(ctx, testbed.Part{Room: "room", Identity: "visitor", Loads: []testbed.Load{c.Load},
		MinUplink: testbed.Everything, Receive: true})
	if err != nil {
		return err
	}
	defer visitor.Leave()
	seen := resident.Tile(tileOf("visitor", c.Load.Name, 0)).Frames
	if err := awaitFrames(ctx, visitor, tilesOf("resident", c.Load.Name, c.Load.Tiles), 1); err != nil {
		return err
	}
	return awaitFrames(ctx, resident, tilesOf("visitor", c.Load.Name, 1), seen+1)
}

// settled waits until the resources of the process have returned to the values of before, or until Settle has passed.
func (c *Churn) settled(ctx context.Context, before inventory) (inventory, error) {
	deadline := time.Now().Add(c.Settle)
	for {
		now := takeInventory()
		if now.goroutines <= before.goroutines && now.descriptors <= before.descriptors &&
			float64(now.heap)-float64(before.heap) <= c.HeapPerRound*float64(c.Rounds) || time.Now().After(deadline) {
			return now, nil
		}
		if err := lab.Pause(ctx, time.Second); err != nil {
			return now, err
		}
	}
}

// inventory is the set of resources of a process.
type inventory struct {
	goroutines, descriptors int
	// heap is in bytes, after garbage collection.
	heap uint64
}

// takeInventory collects garbage and counts. Two collections empty sync.Pool.
func takeInventory() inventory {
	runtime.GC()
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return inventory{goroutines: runtime.NumGoroutine(), descriptors: countDescriptors(), heap: memory.HeapAlloc}
}

// countDescriptors returns the number of open file descriptors, or -1 if the system does not report the number.
func countDescriptors() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	// One descriptor belongs to the directory itself.
	return len(entries) - 1
}

func (c *Churn) lines(before, at, after inventory, took time.Duration) []claim.Line {
	perRound := (float64(after.heap) - float64(before.heap)) / float64(c.Rounds)
	return []claim.Line{
		claim.Information("goroutines before", float64(before.goroutines), ""),
		claim.AtMost("goroutines after", float64(after.goroutines), "", float64(before.goroutines)),
		claim.Information("file descriptors before", float64(before.descriptors), ""),
		claim.AtMost("file descriptors after", float64(after.descriptors), "", float64(before.descriptors)),
		claim.Information("heap before", float64(before.heap)/1e6, "MB"),
		claim.Information("heap right after the last leave", float64(at.heap)/1e6, "MB"),
		claim.Information("heap after", float64(after.heap)/1e6, "MB"),
		claim.AtMost("heap retained per join and leave", perRound, "bytes", c.HeapPerRound),
		claim.Information("join, see, be seen, leave", lab.Milliseconds(took)/float64(c.Rounds), "ms"),
	}
}
