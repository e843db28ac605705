package turn

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/test/wait"
)

// timedGroup returns n workers without goroutines that do each other's timed work, their alarms, and the time of their
// clock.
func timedGroup(n int) (turns []*Turn, alarms []*setAlarm, now *time.Duration) {
	now, turns = new(time.Duration), workers(n)
	started := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	clock := packetlog.NewClock(func() time.Time { return started.Add(*now) })
	for _, t := range turns {
		alarm := &setAlarm{}
		t.alarm, t.clock = alarm, clock
		alarms = append(alarms, alarm)
	}
	Share(turns)
	return turns, alarms, now
}

// group is timedGroup with a clock that stands still.
func group(n int) (turns []*Turn, alarms []*setAlarm) {
	turns, alarms, _ = timedGroup(n)
	return turns, alarms
}

// fallAsleep is the end of a round of Run: the worker is due at a time and its goroutine goes to sleep.
func (t *Turn) fallAsleep(due, now time.Duration) {
	t.arm(due, now)
	t.yield()
}

const tick = 500 * time.Microsecond

// TestWorkersRelyOnOneAlarm has three workers that are due together and one that is due later. One alarm rings for the
// three.
func TestWorkersRelyOnOneAlarm(t *testing.T) {
	turns, alarms, now := timedGroup(4)
	for _, due := range []struct{ worker, ticks int }{{0, 1}, {1, 1}, {2, 3}, {3, 1}} {
		turns[due.worker].fallAsleep(time.Duration(due.ticks)*tick, 0)
	}
	for n, want := range []time.Duration{tick, tick + guardTime, 3 * tick, tick + guardTime} {
		if got := alarms[n].settings; !slices.Equal(got, []time.Duration{want}) {
			t.Errorf("the alarm of worker %d was set to %v, expected %v", n, got, want)
		}
	}
	// The alarm of worker 0 rings.
	for _, w := range turns {
		w.work.(*worker).at, w.work.(*worker).due, w.work.(*worker).pending = tick, 3*tick, true
	}
	if !turns[0].take() {
		t.Fatal("the turn is taken")
	}
	turns[0].work.(*worker).pending = false
	turns[0].fallAsleep(3*tick, tick)
	*now = tick
	turns[0].workForOthers(tick)
	for n, pending := range []bool{false, false, true, false} {
		if w := turns[n].work.(*worker); w.pending != pending || !turns[n].Free() || turns[n].Receive() {
			t.Errorf("worker %d has pending work: %t, expected %t", n, w.pending, pending)
		}
	}
	// The alarm of worker 2 rings at their next tick. Those of workers 1 and 3 ring before.
	for n, want := range [][]time.Duration{{tick, 2*tick + guardTime}, {tick + guardTime}, {3 * tick},
		{tick + guardTime}} {
		if got := alarms[n].settings; !slices.Equal(got, want) {
			t.Errorf("the alarm of worker %d was set to %v, expected %v", n, got, want)
		}
	}
}

// TestAlarmsThatRingTogether has three workers with ticks at the same times. One of the alarms that ring at the next
// tick is set to a later time.
func TestAlarmsThatRingTogether(t *testing.T) {
	turns, alarms, now := timedGroup(3)
	for _, w := range turns {
		w.fallAsleep(tick, 0)
		w.work.(*worker).at, w.work.(*worker).due = tick, 2*tick
	}
	turns[0].take()
	turns[0].fallAsleep(2*tick, tick)
	*now = tick
	turns[0].workForOthers(tick)
	for n, want := range [][]time.Duration{{tick, tick + guardTime}, {tick + guardTime, tick + guardTime},
		{tick + guardTime}} {
		if got := alarms[n].settings; !slices.Equal(got, want) {
			t.Errorf("the alarm of worker %d was set to %v, expected %v", n, got, want)
		}
	}
}

// TestLateGoroutines lets a worker's goroutine do the work of a worker whose alarm has rung some time ago.
func TestLateGoroutines(t *testing.T) {
	turns, _ := group(2)
	for late, done := range map[time.Duration]bool{guardTime - 1: false, guardTime: true} {
		w := turns[1].work.(*worker)
		w.pending = false
		turns[1].free.Store(false)
		turns[1].fallAsleep(tick, 0)
		w.pending, w.at, w.due = true, tick+late, 3*tick
		turns[0].workForOthers(tick + late)
		if w.pending == done {
			t.Errorf("the work of a goroutine that is %v late was done: %t, expected %t", late, !w.pending, done)
		}
	}
}

// TestWorkersWithMuchWork checks that workers whose ticks take long have alarms of their own.
func TestWorkersWithMuchWork(t *testing.T) {
	for _, test := range []struct {
		costs  [2]time.Duration
		relies bool
	}{
		{[2]time.Duration{100 * time.Microsecond, 100 * time.Microsecond}, true},
		{[2]time.Duration{200 * time.Microsecond, 100 * time.Microsecond}, false},
		{[2]time.Duration{0, time.Millisecond}, false},
	} {
		turns, alarms := group(2)
		for n, w := range turns {
			w.tick.Store(int64(test.costs[n]))
			w.fallAsleep(tick, 0)
		}
		want := tick
		if test.relies {
			want += guardTime
		}
		if got := alarms[1].settings; !slices.Equal(got, []time.Duration{want}) {
			t.Errorf("%v: the alarm of the second worker was set to %v, expected %v", test.costs, got, want)
		}
	}
}

// TestPreemptedTicks checks that one tick that takes long does not end the sharing of alarms, and that many do.
func TestPreemptedTicks(t *testing.T) {
	turns, _ := group(2)
	turns[1].tick.Store(int64(100 * time.Microsecond))
	for n, short := range []bool{true, true, false} {
		if n > 0 {
			turns[0].learnTick(10*time.Millisecond, true)
		}
		if n == 2 {
			for range 10 {
				turns[0].learnTick(time.Millisecond, true)
			}
		}
		if got := turns[1].tick.Load()+turns[0].tick.Load() <= int64(tickTime); got != short {
			t.Errorf("after %d long ticks: ticks of %v, short %t, expected %t", n, time.Duration(turns[0].tick.Load()),
				got, short)
		}
	}
}

// TestAnAlarmOthersRelyOn checks that a worker whose own work is later keeps the time that another relies on.
func TestAnAlarmOthersRelyOn(t *testing.T) {
	turns, alarms := group(3)
	turns[0].fallAsleep(2*tick, 0)
	turns[1].fallAsleep(2*tick, 0)
	// The first is woken by a request, and is then due later.
	turns[0].take()
	turns[0].fallAsleep(20*tick, tick/2)
	if got := alarms[0].settings[1]; got != 2*tick-tick/2 {
		t.Errorf("the alarm was set to %v, expected the rest of two ticks", got)
	}
	// The third need not keep it as well.
	turns[2].fallAsleep(20*tick, tick/2)
	if got := alarms[2].settings[0]; got != 20*tick-tick/2 {
		t.Errorf("the third alarm was set to %v, expected its own time", got)
	}
}

// TestReadersKeepReliance lets a reader do a worker's work between two ticks: its alarm stays.
func TestReadersKeepReliance(t *testing.T) {
	turns, alarms := group(2)
	for _, w := range turns {
		w.fallAsleep(tick, 0)
		w.work.(*worker).due, w.work.(*worker).pending = tick, true
	}
	RunInline(slices.Clone(turns), 1)
	for n, want := range []time.Duration{tick, tick + guardTime} {
		if got := alarms[n].settings; !slices.Equal(got, []time.Duration{want}) {
			t.Errorf("the alarm of worker %d was set to %v, expected %v", n, got, want)
		}
	}
}

// TestWakeSoon leaves requests to a worker that is due soon.
func TestWakeSoon(t *testing.T) {
	turns, _ := group(1)
	for _, test := range []struct {
		due   time.Duration
		woken bool
	}{{guardTime, false}, {guardTime + 1, true}} {
		turns[0].fallAsleep(test.due, 0)
		turns[0].WakeSoon()
		if woken := turns[0].Receive(); woken != test.woken {
			t.Errorf("due in %v: woken %t, expected %t", test.due, woken, test.woken)
		}
		turns[0].free.Store(false)
	}
}

// ticker is a worker with work at every tick of the real clock, and with requests. Work takes some time.
type ticker struct {
	clock    *packetlog.Clock
	at, due  time.Duration
	requests atomic.Int64
	takes    time.Duration
	every    time.Duration // 0 is tick
	// working is set while a goroutine works.
	working     atomic.Bool
	ticks, done atomic.Int64
	late        atomic.Int64
	// block makes the next Work wait until release is closed.
	block   atomic.Bool
	release chan struct{}
}

func (w *ticker) Pending() bool { return w.requests.Load() > 0 }

func (w *ticker) read() { w.at = time.Duration(w.clock.Since(w.clock.Now())) }

func (w *ticker) Work(time.Duration) (packets int, finished bool) {
	if w.working.Swap(true) {
		panic("two goroutines have the turn of a worker")
	}
	if w.block.Swap(false) {
		<-w.release
	}
	w.read()
	w.done.Add(w.requests.Swap(0))
	if w.at >= w.due {
		w.ticks.Add(1)
		w.late.Store(max(w.late.Load(), int64(w.at-w.due)))
		for begun := w.at; w.at < begun+w.takes; {
			w.read()
		}
		every := cmp.Or(w.every, tick)
		w.due = (w.at/every + 1) * every
	}
	w.working.Store(false)
	return 0, true
}

func (w *ticker) Idle() (at, idle time.Duration) { return w.at, w.due - w.at }

// TestTickersInRealTime runs workers with ticks at the same times, and gives them requests meanwhile. All work is done,
// by one goroutine at a time.
func TestTickersInRealTime(t *testing.T) {
	clock := packetlog.NewClock(time.Now)
	var turns []*Turn
	var tickers []*ticker
	for n := range 4 {
		w := &ticker{clock: clock, takes: time.Duration(n) * 10 * time.Microsecond}
		tickers, turns = append(tickers, w), append(turns, New(w, clock, NewTimer()))
	}
	Share(turns)
	var running, asking sync.WaitGroup
	for _, w := range turns {
		running.Go(w.Run)
	}
	const requests = 300
	for n, w := range tickers {
		for _, wake := range []func(){turns[n].Wake, turns[n].WakeSoon, func() { RunInline([]*Turn{turns[n]}, 1) }} {
			asking.Go(func() {
				for range requests {
					w.requests.Add(1)
					wake()
					time.Sleep(70 * time.Microsecond)
				}
			})
		}
	}
	asking.Wait()
	for n, w := range tickers {
		wait.Until(t, "all requests are done", func() bool { return w.done.Load() == 3*requests })
		before := w.ticks.Load()
		wait.Until(t, "the ticks continue", func() bool { return w.ticks.Load() > before+20 })
		t.Logf("worker %d: %d ticks, at most %v late", n, w.ticks.Load(), time.Duration(w.late.Load()))
	}
	for _, w := range turns {
		w.Stop()
	}
	running.Wait()
}

// TestABlockedWorkerDelaysNoOther blocks the work of a worker on whose alarm others rely. They have their ticks from
// their own alarms.
func TestABlockedWorkerDelaysNoOther(t *testing.T) {
	clock := packetlog.NewClock(time.Now)
	release := make(chan struct{})
	var turns []*Turn
	var tickers []*ticker
	for range 3 {
		w := &ticker{clock: clock, release: release}
		tickers, turns = append(tickers, w), append(turns, New(w, clock, NewTimer()))
	}
	Share(turns)
	var running sync.WaitGroup
	for _, w := range turns {
		running.Go(w.Run)
	}
	wait.Until(t, "the workers share alarms", func() bool { return turns[1].relies() || turns[2].relies() })
	tickers[0].block.Store(true)
	wait.Until(t, "a worker is blocked", func() bool { return tickers[0].working.Load() && !tickers[0].block.Load() })
	for _, w := range tickers[1:] {
		before := w.ticks.Load()
		wait.Until(t, "the ticks continue", func() bool { return w.ticks.Load() > before+20 })
	}
	close(release)
	for _, w := range turns {
		w.Stop()
	}
	running.Wait()
}
