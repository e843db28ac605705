package precise

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fallback returns an alarm as on systems without a nudge.
func fallback() *Alarm {
	a := &Alarm{timer: time.NewTimer(time.Hour)}
	a.timer.Stop()
	return a
}

// bothAlarms runs a test with an alarm of this system, and with one of other systems.
func bothAlarms(t *testing.T, test func(t *testing.T, a *Alarm)) {
	for name, make := range map[string]func() *Alarm{"system": NewAlarm, "fallback": fallback} {
		t.Run(name, func(t *testing.T) {
			a := make()
			test(t, a)
			a.Stop()
			a.Set(0)
			a.Stop()
		})
	}
}

// TestAlarmIsNotEarly sets an alarm again as soon as it has rung, and to times that have passed.
func TestAlarmIsNotEarly(t *testing.T) {
	bothAlarms(t, func(t *testing.T, a *Alarm) {
		for d := time.Duration(-1); d < 3*time.Millisecond; d += 170 * time.Microsecond {
			begun := time.Now()
			a.Set(d)
			a.Wait()
			if took := time.Since(begun); took < d {
				t.Errorf("it rang after %v, expected %v", took, d)
			}
		}
	})
}

// TestAlarmSetAgain replaces times that have passed, and that have not.
func TestAlarmSetAgain(t *testing.T) {
	bothAlarms(t, func(t *testing.T, a *Alarm) {
		const d = 5 * time.Millisecond
		a.Set(0)
		time.Sleep(time.Millisecond)
		begun := time.Now()
		a.Set(time.Hour)
		a.Set(d)
		a.Wait()
		if took := time.Since(begun); took < d {
			t.Errorf("it rang after %v, expected %v", took, d)
		}
	})
}

// TestAlarmSetByOthers has several goroutines set an alarm for which one waits.
func TestAlarmSetByOthers(t *testing.T) {
	bothAlarms(t, func(t *testing.T, a *Alarm) {
		const rings = 200
		var rung atomic.Int64
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for rung.Load() < rings {
					a.Set(time.Hour)
					a.Set(20 * time.Microsecond)
					time.Sleep(50 * time.Microsecond)
				}
			})
		}
		for range rings {
			a.Wait()
			rung.Add(1)
		}
		all.Wait()
	})
}

func TestAlarmDoesNotAllocate(t *testing.T) {
	a := NewAlarm()
	defer a.Stop()
	if n := testing.AllocsPerRun(100, func() {
		a.Set(0)
		a.Wait()
	}); n != 0 {
		t.Errorf("%v allocations, expected none", n)
	}
}
