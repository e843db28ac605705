// Package panics confines a panic in a goroutine that serves one client to that client: a Guard counts and reports the
// panic and ends the client, and the process goes on for the others. A room counts as a client here: its goroutine
// serves its participants alone, and all of them are ended.
//
// A goroutine may be guarded only if it meets all of these conditions. The guard cannot check them.
//   - Only its client depends on it. Goroutines that many clients share (readers of sockets, writers) are not guarded:
//     their half changed state is shared, and the server cannot go on without them. If a client's goroutine does some of
//     their work, that work defers Shared.
//   - Its state belongs to its client alone, or is changed with a mutex that is released by defer and in one step, so
//     that others find either the old state or the new one.
//   - The client can be ended from outside without the goroutine.
//
// State that the goroutine shares with a reader of sockets counts as shared, too, even if it is one client's: the
// reader must not go on with what is half changed. Such state says while it is being changed, and is left alone if that
// has not ended (forward.Ingress).
//
// If Recover cannot end a client, the process ends after all, as it would have without a guard: most likely a mutex is
// held that nobody releases, and whoever waits for that mutex would wait for ever.
//
// Calls that a goroutine of a library makes are guarded by Try: the client ends, and the library gets an error where it
// takes one. No guard helps against panics in the library itself: what it reads is validated before. Nor does one help
// against what Go does not let recover (concurrent access to a map, an exhausted stack or memory).
package panics

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// endTime is how long it may take to end a client. To end a peer connection takes a message to its room and the end of its goroutines, which are
	// milliseconds; a loaded machine may take a thousand times as long.
	endTime = 10 * time.Second
	// reportInterval is the least time between two reports of one place: who can cause one panic can cause many, and each has a stack of some kB.
	// At 16 kB and twelve places it is 192 kB of log per second at most.
	reportInterval = time.Second
	// maxStack bounds the stack in a report, in bytes: some 100 calls.
	maxStack = 16 << 10
)

// Other is the place that panics of unknown places count for.
const Other = "other"

// Report is one panic.
type Report struct {
	// Where is the place.
	Where string
	// Value is what the goroutine panicked with.
	Value any
	// Stack is the goroutine's, cut to 16 kB.
	Stack []byte
	// Unreported is how many panics of this place were counted and not reported since the last report.
	Unreported uint64
}

// Guard recovers from panics. Its methods are safe for concurrent use. A nil Guard recovers nothing, so that a panic
// ends the program: most tests have none.
type Guard struct {
	report func(Report)
	places map[string]*place
	names  []string
	// clock and fatal are time.Now and a panic but in tests.
	clock func() time.Time
	fatal func(string)
}

// place counts the panics of one place.
type place struct {
	count atomic.Uint64

	mu         sync.Mutex
	reportedAt time.Time
	unreported uint64
}

// NewGuard makes a guard for the places named, each of which is a kind of goroutine. Report takes each panic, but one per place and second at most;
// it must not wait for the goroutine that panicked.
func NewGuard(report func(Report), places ...string) *Guard {
	g := &Guard{
		report: report,
		places: make(map[string]*place, len(places)+1),
		clock:  time.Now,
		fatal:  func(text string) { panic(text) },
	}
	for _, name := range append(places[:len(places):len(places)], Other) {
		if g.places[name] == nil {
			g.places[name] = &place{}
			g.names = append(g.names, name)
		}
	}
	return g
}

// shared is a panic in work on what many clients share. It is an error, so that the runtime prints its text as the program ends.
type shared struct {
	value any
	stack []byte
}

// Error implements error.
func (s shared) Error() string {
	return fmt.Sprintf("while something was changed that many clients share: %v\n\n%s", s.value, s.stack)
}

// Shared is deferred by work on what many clients share. No Guard recovers from a panic in that work, whichever goroutine does it.
func Shared() {
	value := recover()
	if value == nil {
		return
	}
	if _, nested := value.(shared); !nested {
		value = shared{value, debug.Stack()}
	}
	panic(value)
}

// Recover is deferred by a goroutine that serves one client. If the goroutine panics, Recover counts and reports the panic, and has another
// goroutine call end, which ends the client. It does not wait for end, which may therefore wait for the goroutine that panicked.
//
// Deferred calls run in the reverse order: those that release what end needs are deferred after Recover.
//
//	defer guard.Recover("connection", func() { c.fail() })
func (g *Guard) Recover(where string, end func()) {
	if g == nil {
		return
	}
	value := recover()
	if value == nil {
		return
	}
	stack := g.confine(where, value)
	go g.finish(where, value, stack, end)
}

// confine counts and reports a panic that was recovered from, and returns the stack. A panic in shared work goes on.
func (g *Guard) confine(where string, value any) (stack []byte) {
	if _, is := value.(shared); is {
		panic(value)
	}
	stack = debug.Stack()
	g.Note(where, value, stack)
	return stack
}

// Try calls f, and reports whether f returned. If f panics, Try counts and reports the panic. With a nil guard the
// panic goes on.
func (g *Guard) Try(where string, f func()) (returned bool) {
	defer func() {
		if g != nil && !returned {
			g.confine(where, recover())
		}
	}()
	f()
	return true
}

// finish ends a client, and the process if that takes too long.
func (g *Guard) finish(where string, value any, stack []byte, end func()) {
	late := time.AfterFunc(endTime, func() {
		g.fatal(fmt.Sprintf("the client of %q was not ended within %v after a panic: %v\n\n%s", where, endTime, value, stack))
	})
	defer late.Stop()
	end()
}

// Note counts and reports a panic that the caller has recovered from. A nil guard does nothing.
func (g *Guard) Note(where string, value any, stack []byte) {
	if g == nil {
		return
	}
	p := g.places[where]
	if p == nil {
		p = g.places[Other]
	}
	p.count.Add(1)
	if unreported, due := p.due(g.clock()); due {
		g.report(Report{Where: where, Value: value, Stack: stack[:min(len(stack), maxStack)], Unreported: unreported})
	}
}

// due reports whether a panic is to be reported by now, and how many were not since the last one that was.
func (p *place) due(now time.Time) (unreported uint64, due bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reportedAt.IsZero() && now.Sub(p.reportedAt) < reportInterval {
		p.unreported++
		return 0, false
	}
	unreported, p.unreported, p.reportedAt = p.unreported, 0, now
	return unreported, true
}

// Places are all places, in the order in which they were named, and Other.
func (g *Guard) Places() []string { return g.names }

// Count is how many panics of a place there were. It is 0 for places that were not named.
func (g *Guard) Count(where string) uint64 {
	if p := g.places[where]; p != nil {
		return p.count.Load()
	}
	return 0
}
