package turn

import (
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/forward/packetlog"
)

// worker has pending work until Work, which takes no time. Its next work is due at due.
type worker struct {
	pending bool
	at, due time.Duration
}

func (w *worker) Pending() bool { return w.pending }

func (w *worker) Work(time.Duration) (packets int, done bool) {
	w.pending = false
	return 0, true
}

func (w *worker) Idle() (at, idle time.Duration) { return w.at, w.due - w.at }

// workers returns turns of n sleeping workers.
func workers(n int) (turns []*Turn) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	clock := packetlog.NewClock(func() time.Time { return now })
	for range n {
		t := New(&worker{due: time.Hour}, clock, NewTimer())
		t.armed.Store(int64(Forever))
		turns = append(turns, t)
	}
	return turns
}

// runTo lets a reader serve sleeping workers, and returns which of them were woken.
func runTo(turns []*Turn, packets int) (woken []bool) {
	for _, t := range turns {
		t.work.(*worker).pending = true
		t.Release()
	}
	RunInline(slices.Clone(turns), packets)
	for _, t := range turns {
		woken = append(woken, t.Receive())
	}
	return woken
}

// TestAReaderChoosesWriters checks that a reader does the first writer's work regardless of its expected cost, and the
// work of others while the sum is within InlineTime.
func TestAReaderChoosesWriters(t *testing.T) {
	const packets = 50
	for _, test := range []struct {
		// costs are the expected costs of the burst, in multiples of InlineTime.
		costs []float64
		woken []bool
	}{
		{[]float64{0, 0, 0}, []bool{false, false, false}},
		{[]float64{3, 0.1}, []bool{false, true}},
		{[]float64{0.6, 0.3}, []bool{false, false}},
		{[]float64{0.6, 0.5, 0.3}, []bool{false, true, false}},
		{[]float64{0.1, 2, 0.4, 0.6}, []bool{false, true, false, true}},
	} {
		turns := workers(len(test.costs))
		for n, w := range turns {
			w.cost.Store(int64(test.costs[n] * float64(InlineTime) / packets))
		}
		if woken := runTo(turns, packets); !slices.Equal(woken, test.woken) {
			t.Errorf("of writers that cost %v a reader woke %v, expected %v", test.costs, woken, test.woken)
		}
	}
}

// TestADearWriterIsTriedAgain checks that a writer that looks expensive, perhaps because of a short preemption, is
// served again some bursts later.
func TestADearWriterIsTriedAgain(t *testing.T) {
	const packets = 50
	turns := workers(2)
	turns[1].cost.Store(2 * int64(InlineTime) / packets)
	bursts := 0
	for runTo(turns, packets)[1] {
		if bursts++; bursts > 100 {
			t.Fatal("it is never served again")
		}
	}
	// (7/8)^6 of 2 are less than 1.
	if bursts != 6 {
		t.Errorf("it was left to itself for %d bursts, expected 6", bursts)
	}
}

// setAlarm is an alarm that records its settings.
type setAlarm struct {
	Alarm
	settings []time.Duration
}

func (a *setAlarm) Set(d time.Duration) { a.settings = append(a.settings, d) }

// TestAReaderSetsTheAlarm checks that a reader that has done a writer's work sets the writer's alarm if work is due
// before the alarm, or if the alarm was due meanwhile.
func TestAReaderSetsTheAlarm(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		armed, at, due time.Duration
		want           []time.Duration
	}{
		{armed: 20 * ms, at: 5 * ms, due: 6 * ms, want: []time.Duration{ms}},
		{armed: 6 * ms, at: 5 * ms, due: 20 * ms},
		{armed: 5 * ms, at: 5 * ms, due: 20 * ms, want: []time.Duration{15 * ms}},
		{armed: 4 * ms, at: 5 * ms, due: 6 * ms, want: []time.Duration{ms}},
	} {
		turns, alarm := workers(1), &setAlarm{}
		turns[0].armed.Store(int64(test.armed))
		turns[0].alarm = alarm
		w := turns[0].work.(*worker)
		w.at, w.due = test.at, test.due
		if woken := runTo(turns, 1); woken[0] || !slices.Equal(alarm.settings, test.want) {
			t.Errorf("%+v: the alarm was set to %v, the writer woken: %t", test, alarm.settings, woken[0])
		}
	}
}
