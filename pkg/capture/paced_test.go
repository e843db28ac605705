package capture

import (
	"context"
	"errors"
	"testing"
	"time"
)

// numbered is content with the frame number in its only point. Each load takes time on the clock.
type numbered struct {
	clock  *handClock
	takes  time.Duration
	fails  error
	closed int
}

func (n *numbered) render(_ context.Context, number int64, into *Frame) error {
	n.clock.now = n.clock.now.Add(n.takes)
	into.Cloud.Reset()
	into.Cloud.Append([3]float32{float32(number)}, [3]uint8{})
	return n.fails
}

func (n *numbered) close() error {
	n.closed++
	return nil
}

func TestScheduleDoesNotDrift(t *testing.T) {
	start := time.Unix(1_700_000_000, 123)
	for _, rate := range []float64{0.1, 1, 23.976, 24, 29.97, 30, 60, 1000} {
		s := steady(rate)
		for _, number := range []int64{0, 1, 2, 3, 29, 30, 1000, 12_345_678} {
			due := s.due(start, number)
			if got := s.newest(start, due); got != number {
				t.Errorf("%g fps: newest at the deadline of frame %d is %d", rate, number, got)
			}
			if got := s.newest(start, due.Add(-1)); got != number-1 {
				t.Errorf("%g fps: newest just before the deadline of frame %d is %d", rate, number, got)
			}
		}
		hour := int64(3600 * rate)
		if off := s.due(start, hour).Sub(start) - time.Duration(float64(hour)/rate*1e9); off.Abs() > time.Microsecond {
			t.Errorf("%g fps: an hour is off by %v", rate, off)
		}
	}
}

func TestTimetable(t *testing.T) {
	start := time.Unix(1_700_000_000, 123)
	table := timetable{times: []time.Duration{0, 10, 10, 35}, period: 50}
	for number, due := range []time.Duration{0, 10, 10, 35, 50, 60, 60, 85, 100} {
		if got := table.due(start, int64(number)).Sub(start); got != due {
			t.Errorf("frame %d is due after %d ns, expected %d", number, got, due)
		}
	}
	for since, newest := range map[time.Duration]int64{-1: -1, 0: 0, 9: 0, 10: 2, 34: 2, 35: 3, 49: 3, 50: 4, 61: 6,
		5_000_000_085: 400_000_007} {
		if got := table.newest(start, start.Add(since)); got != newest {
			t.Errorf("after %d ns the newest frame is %d, expected %d", since, got, newest)
		}
	}
}

func TestPacedDeliversEveryFrameInTime(t *testing.T) {
	clock := newHandClock()
	source := newPaced(clock, &numbered{clock: clock, takes: 5 * time.Millisecond}, Info{FrameRate: 30})
	start := clock.now
	var frame Frame
	for number := range int64(300) {
		if err := source.Read(t.Context(), &frame); err != nil {
			t.Fatal(err)
		}
		due := start.Add(time.Duration(number) * time.Second / 30)
		if frame.Number != number || frame.Skipped != 0 || frame.Capture.Sub(due).Abs() > time.Nanosecond {
			t.Fatalf(
				"frame %d: number %d, skipped %d, captured %v from its deadline",
				number,
				frame.Number,
				frame.Skipped,
				frame.Capture.Sub(due),
			)
		}
		if frame.Cloud.Len() != 1 || frame.Cloud.Positions[0][0] != float32(number) {
			t.Fatalf("frame %d shows %v", number, frame.Cloud.Positions)
		}
	}
}

func TestPacedSkipsToTheNewestFrame(t *testing.T) {
	clock := newHandClock()
	source := newPaced(clock, &numbered{clock: clock}, Info{FrameRate: 10})
	start := clock.now
	steps := []struct {
		pause           time.Duration // before the Read
		number, skipped int64
		at              time.Duration // when Read returns
	}{
		{0, 0, 0, 0},
		{0, 1, 0, 100 * time.Millisecond},
		{40 * time.Millisecond, 2, 0, 200 * time.Millisecond},
		{130 * time.Millisecond, 3, 0, 330 * time.Millisecond}, // late, but no other frame is due
		{0, 4, 0, 400 * time.Millisecond},                      // and the next one is in time
		{250 * time.Millisecond, 6, 1, 650 * time.Millisecond},
		{0, 7, 0, 700 * time.Millisecond},
		{time.Hour, 36_007, 35_999, time.Hour + 700*time.Millisecond},
		{0, 36_008, 0, time.Hour + 800*time.Millisecond},
	}
	var frame Frame
	for i, step := range steps {
		clock.now = clock.now.Add(step.pause)
		if err := source.Read(t.Context(), &frame); err != nil {
			t.Fatal(err)
		}
		if frame.Number != step.number || frame.Skipped != step.skipped || clock.now.Sub(start) != step.at {
			t.Errorf("step %d: frame %d, %d skipped, at %v; expected %d, %d, %v",
				i, frame.Number, frame.Skipped, clock.now.Sub(start), step.number, step.skipped, step.at)
		}
		if due := time.Duration(step.number) * 100 * time.Millisecond; frame.Capture.Sub(start) != due {
			t.Errorf("step %d: captured at %v, expected %v", i, frame.Capture.Sub(start), due)
		}
	}
}

func TestPacedErrors(t *testing.T) {
	clock := newHandClock()
	broken := errors.New("broken frame")
	content := &numbered{clock: clock, fails: broken}
	source := newPaced(clock, content, Info{FrameRate: 10})
	var frame Frame
	if err := source.Read(t.Context(), &frame); !errors.Is(err, broken) {
		t.Errorf("Read of a broken frame: %v", err)
	}
	content.fails = nil
	if err := source.Read(t.Context(), &frame); err != nil || frame.Number != 1 {
		t.Errorf("Read after a broken frame: number %d, error %v; expected 1 and none", frame.Number, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := source.Read(ctx, &frame); !errors.Is(err, context.Canceled) {
		t.Errorf("Read with an ended context: %v", err)
	}
	if err := source.Read(t.Context(), &frame); err != nil || frame.Number != 2 {
		t.Errorf("Read after a cancelled wait: number %d, error %v; expected 2 and none", frame.Number, err)
	}
	for range 2 {
		if err := source.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if content.closed != 1 {
		t.Errorf("content closed %d times, expected once", content.closed)
	}
	if err := source.Read(t.Context(), &frame); !errors.Is(err, ErrClosed) {
		t.Errorf("Read after Close: %v", err)
	}
}
