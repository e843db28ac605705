package egress

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/forward/turn"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/wait"
)

// virtualAlarm advances the clock instead of waiting, up to an end.
type virtualAlarm struct {
	mu      sync.Mutex
	now     time.Time
	due     time.Time
	end     time.Time
	reached chan struct{}
}

func (a *virtualAlarm) clock() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now
}

func (a *virtualAlarm) Set(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.due = a.now.Add(max(d, 0))
}

func (a *virtualAlarm) Wait(woken <-chan struct{}) bool {
	a.mu.Lock()
	if a.due.After(a.end) {
		a.mu.Unlock()
		select {
		case a.reached <- struct{}{}:
			<-woken
		case <-woken:
		}
		return true
	}
	a.now = a.due
	a.mu.Unlock()
	return false
}

func (a *virtualAlarm) Stop() {}

// TestWriterWakesForTicks runs a writer on an alarm in virtual time.
func TestWriterWakesForTicks(t *testing.T) {
	a := &virtualAlarm{now: time.Unix(1_000_000, 0), reached: make(chan struct{})}
	a.end = a.now
	cfg := defaultConfig()
	cfg.Writers = 1
	r := &rig{t: t, engine: newEngine(cfg, a.clock)}
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	s := r.subscribeAll(1, p)[0]
	p.Next()
	p.Send(a.now, p.Packets(42*1144)...)
	a.end = a.now.Add(20 * time.Millisecond)
	w := r.engine.writers[0]
	w.turn = turn.New(w, r.engine.clock, a)
	r.engine.running.Go(w.run)
	<-a.reached
	if n := len(s.outlet.sent()); n != 42 {
		t.Errorf("%d packets left, expected 42", n)
	}
	if runs := s.peer.takeRuns(); !slices.Equal(runs, []int{7, 7, 7, 7, 7, 7}) {
		t.Errorf("packets left in runs of %v", runs)
	}
	r.engine.Close()
}

// spreadOutlet records in real time when packets are queued.
type spreadOutlet struct {
	nullOutlet
	mu   sync.Mutex
	left []time.Time
}

func (o *spreadOutlet) Queue(*rtp.Header, []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.left = append(o.left, time.Now())
	return nil
}

// TestSpreadInRealTime sends a frame through an engine with its goroutines and timers.
func TestSpreadInRealTime(t *testing.T) {
	// A stall of this host must not end the frame.
	const unlimited = time.Hour
	r := live(t, func(c *rigConfig) {
		c.Pacing, c.MaxLag, c.QueueBudget, c.CacheAge = "spread:100ms", unlimited, unlimited, unlimited
	})
	p := r.publish(r.engine.NewIngress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	o := &spreadOutlet{nullOutlet: nullOutlet{1000}}
	flushes := 0
	r.engine.NewReceiver(&nullPeer{flushes: &flushes}, unlimited).AddSlot(o, volumetric.KindVideo).Select(p.track, 1,
		time.Now())
	wait.Until(t, "the writer follows", func() bool { return p.track.Followers() == 1 })
	p.Next()
	arrival := time.Now()
	p.Send(arrival, p.Packets(50*1144)...)
	count := func() int {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.left)
	}
	wait.Until(t, "all packets left", func() bool { return count() == 50 })
	// The plan counts from the frame's arrival: a late start of the writer shortens the rest, but no packet leaves
	// before its time.
	if took := o.left[49].Sub(arrival); took < 90*time.Millisecond {
		t.Errorf("the last packet left %v after the frame came, expected 98 ms, less a tick", took)
	}
}
