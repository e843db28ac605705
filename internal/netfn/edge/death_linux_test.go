package edge

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/netfn/edge/channel"
	"github.com/volsfu/volsfu/test/leftover"
	"github.com/volsfu/volsfu/test/wait"
)

// stalled is the longest disturbance of the machine at which tests expect edges to keep times. An edge that waits
// longer for a processor can miss the lease of a second or react late.
const stalled = 100 * time.Millisecond

// TestKilled kills both edges in turn while packets flow, starts them again, and takes off what a third death leaves.
func TestKilled(t *testing.T) {
	b := newBed(t, 3)
	receiver, sender := b.start("b", ""), b.start("a", "all")
	sender.untilCopied("path0", "path1", "path2")
	epoch := sender.status("").Epoch
	s := b.newStream()
	s.more(100)
	// A lease outlives a process by a second. A busy machine may need longer, and then packets leave plain for a
	// moment.
	inTime := true
	began := time.Now()
	sender.end(syscall.SIGKILL)
	s.more(100)
	again := time.Now()
	sender = b.start("a", "all")
	t.Logf("the sender was readopted after %v", time.Since(again))
	status := sender.status("")
	if !status.Readopted || status.Epoch != epoch {
		t.Errorf("readopted is %v, epoch is %d, before %d", status.Readopted, status.Epoch, epoch)
	}
	wait.Until(t, "reports reach the sender", func() bool { return sender.status("").Control.ReportsReceived > 0 })
	inTime = inTime && time.Since(began) < channel.AliveFor
	s.more(100)
	began = time.Now()
	receiver.end(syscall.SIGKILL)
	s.more(100)
	again = time.Now()
	receiver = b.start("b", "")
	t.Logf("the receiver was readopted after %v", time.Since(again))
	before := sender.status("").Control.ReportsReceived
	wait.Until(t, "reports reach the sender", func() bool {
		return sender.status("").Control.ReportsReceived > before
	})
	inTime = inTime && time.Since(began) < channel.AliveFor
	s.more(1200)
	if plain := sender.status("").Sent.Plain; plain > 0 && inTime {
		t.Errorf("%d packets left plain although both edges came back within a second", plain)
	}
	s.stop()

	var err error
	b.hosts["b"].Do(func() { err = Detach(mustLoad(t, b.config("b", ""))) })
	if !errors.Is(err, ErrRunning) {
		t.Errorf("detaching a running edge: %v", err)
	}
	sender.end(syscall.SIGKILL)
	receiver.end(syscall.SIGKILL)
	for name, h := range b.hosts {
		if h.left(t) == nil {
			t.Errorf("the edge %s left nothing to detach", name)
		}
		var objects leftover.Objects
		h.Do(func() { objects, err = leftover.Loaded(filepath.Join(h.state, "bpf", name)) })
		if err != nil || objects.Count() == 0 || len(objects.Left()) != objects.Count() {
			t.Errorf("the edge %s has %d objects in the kernel, and left %v, %v", name, objects.Count(), objects.Left(),
				err)
		}
		for range 2 {
			h.Do(func() { err = Detach(mustLoad(t, b.config(name, "all"))) })
			if err != nil {
				t.Error(err)
			}
		}
		if left := h.left(t); left != nil {
			t.Errorf("detaching the edge %s left %v", name, left)
		}
		wait.Until(t, "the kernel has freed the objects", func() bool { return objects.Left() == nil })
	}
}

// TestKilledInTrouble kills a sender whose rule copies because the primary path loses packets. Its successor copies on.
// No path is late within the longest deadline, so that the order starts copies on all paths.
func TestKilledInTrouble(t *testing.T) {
	b := newBed(t, 2)
	b.deadline = maxDeadline
	b.start("b", "")
	sender := b.start("a", "auto")
	sender.untilCopied("path0")
	// A path that is not up yet does not join, and an order that follows copies in vain starts none.
	wait.Until(t, "an order starts copies", func() bool {
		return len(sender.status(`{"trigger": "start"}`).Rules[0].Set) == 2
	})
	// The stream starts afterwards: without losses, its packets would let the other path leave.
	sender.end(syscall.SIGKILL)
	s := b.newStream()
	s.more(20)
	sender = b.start("a", "auto")
	wait.Until(t, "the sender has decided", func() bool { return sender.status("").Control.HellosSent > 0 })
	// The other path may have left again, since no packet is lost.
	if reason := sender.status("").Rules[0].Reason; !strings.Contains(reason, "path1") {
		t.Errorf("after the restart, the last change of the set is %q, expected one of path1", reason)
	}
	s.more(20)
	s.stop()
}

func mustLoad(t *testing.T, file string) *Config {
	c, err := Load(file)
	if err != nil {
		t.Error(err)
	}
	return c
}

// TestReceiverDies kills the receiver for good: packets leave plain after a second. Then it starts and leaves properly:
// packets leave plain at once. No packet is lost.
func TestReceiverDies(t *testing.T) {
	b, stalls := newBed(t, 2), wait.WatchStalls(t)
	receiver, sender := b.start("b", ""), b.start("a", "all")
	sender.untilCopied("path0", "path1")
	s := b.newStream()
	s.more(100)
	receiver.end(syscall.SIGKILL)
	began := time.Now()
	wait.Until(t, "packets leave plain", func() bool { return sender.status("").Sent.Plain > 0 })
	if took := time.Since(began); took > 1500*time.Millisecond && stalls.Longest() <= stalled {
		t.Errorf("packets left plain %v after the receiver had died, the limit is 1.5 s", took)
	}
	s.more(100)
	receiver = b.start("b", "")
	wait.Until(t, "the sender copies again", func() bool { return sender.status("").PeerAlive })
	plain := sender.status("").Sent.Plain
	s.more(100)
	if now := sender.status("").Sent.Plain; now > plain+20 && stalls.Longest() <= stalled {
		t.Errorf("%d packets left plain after the receiver had come back", now-plain)
	}
	receiver.end(syscall.SIGTERM)
	s.more(100)
	s.stop()
	if left := b.hosts["b"].left(t); left != nil {
		t.Errorf("the receiver left %v", left)
	}
}
