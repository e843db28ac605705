//go:build unix

package turn

import (
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/internal/congestion/sender/precise"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
)

// channelAlarm is an alarm that waits for the channel of a timer.
type channelAlarm struct{ timer *precise.Timer }

func (a channelAlarm) Set(d time.Duration) { a.timer.Reset(d) }

func (a channelAlarm) Wait(woken <-chan struct{}) bool {
	select {
	case <-woken:
		return true
	case <-a.timer.C:
		return false
	}
}

func (a channelAlarm) Stop() { a.timer.Stop() }

// BenchmarkTicks measures the processor time of two workers with a tick every 0.5 ms without work: an operation is one
// tick of both. Workers share an alarm or have alarms apart, which wait for the kernel's timer in Go's poller, or for
// the channel of a timer. On a spaced path the ticks of one worker are 100 µs apart: packets of 1,200 bytes at 96
// Mbit/s.
func BenchmarkTicks(b *testing.B) {
	for _, kind := range []struct {
		name   string
		every  time.Duration
		shared bool
		alarm  func() Alarm
	}{
		{"shared", tick, true, NewTimer},
		{"apart", tick, false, NewTimer},
		{"channels", tick, false, func() Alarm { return channelAlarm{precise.NewTimer(time.Hour)} }},
		{"spaced", tick / 5, true, NewTimer},
	} {
		b.Run(kind.name, func(b *testing.B) {
			clock := packetlog.NewClock(time.Now)
			var turns []*Turn
			var tickers []*ticker
			for _, every := range []time.Duration{kind.every, tick} {
				w := &ticker{clock: clock, every: every}
				tickers, turns = append(tickers, w), append(turns, New(w, clock, kind.alarm()))
			}
			if kind.shared {
				Share(turns)
			}
			var running sync.WaitGroup
			for _, w := range turns {
				running.Go(w.Run)
			}
			before := processorTime(b)
			for tickers[0].ticks.Load() < int64(b.N) {
				time.Sleep(10 * time.Millisecond)
			}
			took := processorTime(b) - before
			done := float64(tickers[0].ticks.Load())
			for _, w := range turns {
				w.Stop()
			}
			running.Wait()
			b.ReportMetric(float64(took.Nanoseconds())/1e3/done, "cpu-µs/tick")
		})
	}
}

// processorTime returns the processor time of this process.
func processorTime(b *testing.B) time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(unix.TimevalToNsec(usage.Utime) + unix.TimevalToNsec(usage.Stime))
}
