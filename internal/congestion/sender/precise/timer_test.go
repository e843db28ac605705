package precise

import (
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestNeverEarly resets a timer as soon as it has fired.
func TestNeverEarly(t *testing.T) {
	timer := NewTimer(time.Millisecond)
	defer timer.Stop()
	<-timer.C
	for d := time.Duration(0); d < 3*time.Millisecond; d += 170 * time.Microsecond {
		begun := time.Now()
		timer.Reset(d)
		<-timer.C
		if took := time.Since(begun); took < d {
			t.Errorf("it went off after %v, expected %v", took, d)
		}
	}
}

// TestResetReplaces sets a timer to earlier and to later times.
func TestResetReplaces(t *testing.T) {
	timer := NewTimer(time.Hour)
	defer timer.Stop()
	timer.Reset(time.Millisecond)
	<-timer.C
	timer.Reset(time.Millisecond)
	timer.Reset(time.Hour)
	select {
	case <-timer.C:
		t.Error("it went off though it was set for later")
	case <-time.After(20 * time.Millisecond):
	}
}

// TestOnTime expects that of many sleeps of an idle process, some are late by less than the rounding of Go's poller, on
// any machine.
func TestOnTime(t *testing.T) {
	if probe := newNudge(); !probe.works() {
		t.Skip("this system has no timers that wake Go's poller")
	} else {
		probe.close()
	}
	timer := NewTimer(time.Hour)
	defer timer.Stop()
	const d, enough = 300 * time.Microsecond, 50
	quick := 0
	for range 5000 {
		begun := time.Now()
		timer.Reset(d)
		<-timer.C
		if time.Since(begun) < 2*d {
			quick++
		}
		if quick == enough {
			return
		}
	}
	t.Errorf("%d of 5,000 sleeps of %v took less than %v, expected %d", quick, d, 2*d, enough)
}

// TestResetByAnother has one goroutine wait while another sets the timer, to an earlier time each time.
func TestResetByAnother(t *testing.T) {
	timer := NewTimer(time.Hour)
	defer timer.Stop()
	rung := make(chan struct{})
	go func() {
		defer close(rung)
		for range 50 {
			<-timer.C
			rung <- struct{}{}
		}
	}()
	for range 50 {
		timer.Reset(time.Hour)
		timer.Reset(200 * time.Microsecond)
		<-rung
	}
	<-rung
}

// TestManyTimers fires timers of several goroutines.
func TestManyTimers(t *testing.T) {
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			timer := NewTimer(time.Duration(n) * 100 * time.Microsecond)
			defer timer.Stop()
			<-timer.C
			for range 20 {
				timer.Reset(time.Duration(n) * 50 * time.Microsecond)
				<-timer.C
			}
		})
	}
	all.Wait()
}
