package panics

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// recorder records reports.
type recorder struct {
	mu      sync.Mutex
	reports []Report
}

func (r *recorder) take(report Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reports = append(r.reports, report)
}

func TestRecoverEndsTheClient(t *testing.T) {
	var r recorder
	g := NewGuard(r.take, "connection")
	ended := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		// The client's end may wait for the goroutine that panicked.
		defer g.Recover("connection", func() { running.Wait(); close(ended) })
		var nothing *struct{ field int }
		nothing.field++
	})
	running.Wait()
	<-ended
	if g.Count("connection") != 1 || g.Count(Other) != 0 || len(r.reports) != 1 {
		t.Fatalf("%d panics and %+v, expected one of each", g.Count("connection"), r.reports)
	}
	report := r.reports[0]
	if _, is := report.Value.(error); !is || report.Where != "connection" ||
		!strings.Contains(string(report.Stack), "TestRecoverEndsTheClient") {
		t.Errorf("the report is %+v, with the stack\n%s", report, report.Stack)
	}
}

func TestRecoverWithoutPanic(t *testing.T) {
	var r recorder
	g := NewGuard(r.take, "connection")
	func() {
		defer g.Recover("connection", func() { t.Error("a client whose goroutine returned is ended") })
	}()
	if g.Count("connection") != 0 || len(r.reports) != 0 {
		t.Errorf("%d panics and %+v, expected none", g.Count("connection"), r.reports)
	}
}

func TestNilGuardRecoversNothing(t *testing.T) {
	var g *Guard
	cause := errors.New("cause")
	defer func() {
		if got := recover(); got != cause {
			t.Errorf("the panic is %v, expected %v to go on", got, cause)
		}
	}()
	g.Note("connection", cause, nil)
	defer g.Recover("connection", func() { t.Error("a client is ended without a guard") })
	panic(cause)
}

// TestSharedWorkIsNotRecovered has a client's goroutine panic in shared work, nested in other shared work.
func TestSharedWorkIsNotRecovered(t *testing.T) {
	g := NewGuard(func(Report) {}, "connection")
	defer func() {
		err, is := recover().(error)
		if !is || g.Count("connection") != 0 {
			t.Fatalf("the panic is %v, counted %d times, expected it to go on uncounted", err, g.Count("connection"))
		}
		if text := err.Error(); strings.Count(text, "many clients share") != 1 || !strings.Contains(text, "cause") ||
			!strings.Contains(text, "TestSharedWorkIsNotRecovered") {
			t.Errorf("the panic is %q, expected the cause and its stack, once", text)
		}
	}()
	defer g.Recover("connection", func() { t.Error("the client is ended") })
	func() {
		defer Shared()
		func() {
			defer Shared()
			panic("cause")
		}()
	}()
}

func TestSharedWithoutPanic(t *testing.T) {
	func() {
		defer Shared()
	}()
}

// TestClientThatCannotBeEnded has a goroutine panic with a lock that it does not release, and that the client's end
// needs.
func TestClientThatCannotBeEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		g := NewGuard(r.take, "connection")
		died := make(chan string, 1)
		g.fatal = func(text string) { died <- text }
		lock := make(chan struct{}, 1)
		began := time.Now()
		func() {
			defer g.Recover("connection", func() { lock <- struct{}{} })
			lock <- struct{}{}
			panic("with the lock held")
		}()
		text := <-died
		if took := time.Since(began); took != endTime {
			t.Errorf("the process ends after %v, expected %v", took, endTime)
		}
		for _, part := range []string{"connection", "with the lock held", "TestClientThatCannotBeEnded"} {
			if !strings.Contains(text, part) {
				t.Errorf("the process ends with %q, expected %q in it", text, part)
			}
		}
		<-lock
	})
}

// TestClientThatIsEndedInTime: the process survives an end that takes almost the maximum time.
func TestClientThatIsEndedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGuard(func(Report) {}, "connection")
		g.fatal = func(text string) { t.Errorf("the process ends: %s", text) }
		func() {
			defer g.Recover("connection", func() { time.Sleep(endTime - 1) })
			panic("slowly")
		}()
		time.Sleep(time.Hour)
	})
}

func TestReportsAreBounded(t *testing.T) {
	var r recorder
	now := time.Unix(1000, 0)
	g := NewGuard(r.take, "connection", "request")
	g.clock = func() time.Time { return now }
	for range 5 {
		g.Note("connection", "first", make([]byte, 10*maxStack))
	}
	g.Note("request", "of another place", nil)
	now = now.Add(reportInterval)
	g.Note("connection", "second", nil)
	now = now.Add(reportInterval)
	g.Note("connection", "third", nil)
	var got []uint64
	for _, report := range r.reports {
		if report.Where == "connection" {
			got = append(got, report.Unreported)
		}
		if len(report.Stack) > maxStack {
			t.Errorf("a report has a stack of %d bytes, expected at most %d", len(report.Stack), maxStack)
		}
	}
	if want := []uint64{0, 4, 0}; !slices.Equal(got, want) || len(r.reports) != 4 {
		t.Errorf("reports of a place stand for %v others, of %d, expected %v, of 4", got, len(r.reports), want)
	}
	if n := g.Count("connection"); n != 7 {
		t.Errorf("%d panics are counted, expected 7", n)
	}
}

func TestPlacesAreBounded(t *testing.T) {
	places := []string{"connection", "request", "connection"}
	g := NewGuard(func(Report) {}, places...)
	for _, where := range []string{"no place", "neither", "request"} {
		g.Note(where, "value", nil)
	}
	if want := []string{"connection", "request", Other}; !slices.Equal(g.Places(), want) {
		t.Errorf("places are %q, expected %q", g.Places(), want)
	}
	if g.Count(Other) != 2 || g.Count("request") != 1 || g.Count("no place") != 0 {
		t.Errorf("counts are %d, %d and %d, expected 2, 1 and 0", g.Count(Other), g.Count("request"),
			g.Count("no place"))
	}
}
