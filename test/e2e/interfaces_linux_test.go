package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/namespace"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

// TestUnpluggedInterfaceLosesNoFrame: a publisher and a receiver on one host have two interfaces. The preferred
// interface goes down, or is removed, while frames leave. Every frame arrives.
func TestUnpluggedInterfaceLosesNoFrame(t *testing.T) {
	for _, mode := range []signal.Redundancy{signal.RedundancyAll, signal.RedundancyAuto} {
		for name, command := range map[string]string{"down": "ip link set n0 down", "removed": "ip link delete n0"} {
			t.Run(fmt.Sprintf("%s, %s", mode, name), func(t *testing.T) { unplugInterface(t, mode, command) })
		}
	}
}

func unplugInterface(t *testing.T, mode signal.Redundancy, command string) {
	const address = "10.9.9.1"
	here, there := namespace.New(t), namespace.New(t)
	namespace.TwoCables(t, here, there, address)
	settings := testbed.ConferenceConfig()
	unhurried(&settings)
	// The websockets use the other cable.
	settings.Server.Listen, settings.Admin.Listen, settings.Media.Address = "10.9.1.1:0", "", address
	token, err := testbed.RequireToken(&settings)
	if err != nil {
		t.Fatal(err)
	}
	var c *testbed.Conference
	there.Do(func() { c, err = testbed.NewConference(settings, nil, zap.NewNop()) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		goleak.VerifyNone(t, goleak.IgnoreTopFunction("github.com/volsfu/volsfu/test/namespace.New.func1"))
	})
	enter := func(config client.Config) (session *client.Session) {
		t.Helper()
		config.URL, config.Room, config.Token = c.Server.URL(), "lab", token
		config.Interfaces, config.Redundancy = []string{"n0", "n1"}, mode
		config.MinUplink, config.QueueBudget, config.Deadline = testbed.Everything, repairTime, repairTime
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		here.Do(func() { session, err = client.Join(ctx, config) })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = session.Close() })
		return session
	}
	watcher := enter(client.Config{Identity: "bob", Receive: true})
	speaker := enter(client.Config{
		Identity: "alice", Publications: []volumetric.Publication{body(1, 1).Publication()},
	})
	arrived, newest := make(map[int64]bool), int64(-1)
	sent, first := int64(0), int64(0)
	// step sends a frame of two packets every 33 ms, and reports whether the condition holds.
	var last time.Time
	step := func(condition func() bool) func() bool {
		return func() bool {
			for {
				select {
				case f := <-watcher.Frames():
					arrived[f.Number], newest = true, max(newest, f.Number)
					continue
				default:
				}
				break
			}
			if now := time.Now(); now.Sub(last) >= 33*time.Millisecond {
				last = now
				taken, _ := speaker.Publisher("body").WriteFrame(0, 0, client.OutgoingFrame{Number: uint32(sent),
					Capture: now, Codec: [4]byte{'t', 'e', 's', 't'}, Data: make([]byte, 2000)})
				if taken {
					sent++
				}
			}
			return condition()
		}
	}
	both := func() bool {
		received := watcher.Redundancy().Received
		copied := speaker.Redundancy().Copied
		return len(received) == 2 && received[1].First+received[1].Repeated >= 50 &&
			copied["lowest_quality"].Packets >= 50
	}
	wait.Until(t, "copies in both directions", step(both))
	first = sent
	here.Run(t, command)
	wait.Until(t, "three seconds of frames", step(func() bool { return sent >= first+90 }))
	end := sent
	wait.Until(t, "later frames", step(func() bool { return newest >= end+30 }))
	next := step(func() bool { return true })
	lost := repaired(func() (lost int64) {
		next()
		for number := first; number < end; number++ {
			if !arrived[number] {
				lost++
			}
		}
		return lost
	})
	if lost > 0 {
		t.Errorf("%d of %d frames were lost", lost, end-first)
	}
	for _, tile := range watcher.Stats() {
		if tile.Missing > 0 || tile.Undecodable > 0 || tile.DroppedByServer > 0 {
			t.Errorf("frames were lost: %+v", tile)
		}
	}
}
