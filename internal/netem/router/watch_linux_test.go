package router

import (
	"testing"
	"time"
)

func TestWatchCountsWhatAPauseSwallows(t *testing.T) {
	w := &watch{}
	due := w.woke(watchInterval, watchInterval+time.Millisecond)
	if due != 2*watchInterval {
		t.Fatalf("the next wake-up is due at %v, expected %v", due, 2*watchInterval)
	}
	// A pause of 21 ms: wake-ups that were due at its beginning and 5, 10, 15 and 20 ms later happen at its end.
	due = w.woke(due, due+21*time.Millisecond)
	late := w.lateness()
	if due != 7*watchInterval || late.Count() != 6 || late.Quantile(1) < 20*time.Millisecond {
		t.Errorf("due at %v, %d wake-ups, the latest by %v; expected %v, 6 and 21 ms", due, late.Count(),
			late.Quantile(1), 7*watchInterval)
	}
	if due = w.woke(due, due-1); due != 7*watchInterval {
		t.Errorf("a sleep that ended early was counted: due at %v", due)
	}
	w.restart()
	if late := w.lateness(); late.Count() != 0 {
		t.Errorf("%d wake-ups after a restart", late.Count())
	}
}

func TestWatchWakesUp(t *testing.T) {
	w := startWatch()
	defer w.close()
	if !w.prior {
		t.Skip("the kernel gives no real-time priority here (SCHED_FIFO)")
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(watchInterval) {
		if late := w.lateness(); late.Count() >= 3 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the watch has not woken up three times in 10 s")
		}
	}
}
