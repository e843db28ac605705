// Package panics confines a panic in a goroutine that serves one client to that client: a Guard counts and reports the
// panic and ends the client, and the process continues for the others. A room counts as a client here: the goroutine of
// the room serves only the room's participants, and all participants are ended.
//
// A goroutine may be guarded only if it meets all of these conditions. The guard cannot check them.
//
//   - Only its client depends on the goroutine. Goroutines shared by many clients (readers of sockets, writers) are not
//     guarded: the shared state may be inconsistent after a panic, and the server cannot continue without these
//     goroutines. If a client's goroutine does some of this work, that work defers Shared.
//   - Its state belongs to its client only, or is changed under a mutex that is released by defer and in one step, so
//     that others find either the old state or the new one.
//   - The client can be ended from outside without the goroutine.
//
// State that the goroutine shares with a reader of sockets counts as shared, too, even if the state belongs to one
// client: the reader must not continue with an inconsistent state. Such state has a flag while it is being changed, and
// is not used if the change has not ended (forward.Ingress).
//
// If Recover cannot end a client, the process ends, as without a guard: probably a mutex is held and never released,
// and every goroutine that waits for that mutex would wait for ever.
//
// Calls made by a goroutine of a library are guarded by Try: the client ends, and the library gets an error if the
// interface has one. No guard helps against panics in the library itself: the library's input is validated before. A
// guard does not help either against errors that Go does not recover (concurrent access to a map, an exhausted stack or
// memory).
package panics

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// endTime bounds the time for ending a client. Ending a peer connection takes a message to the room and the end of
	// the connection's goroutines, which are milliseconds; a loaded machine may take a thousand times as long.
	endTime = 10 * time.Second
	// reportInterval is the minimum time between two reports of one place: a client that can cause one panic can cause
	// many, and each has a stack of some kB. At 16 kB and twelve places the log is 192 kB per second at most.
	reportInterval = time.Second
	// maxStack bounds the stack in a report, in bytes: about 100 calls.
	maxStack = 16 << 10
)

// Other is the place of panics with an unknown place.
const Other = "other"

// Report is one panic.
type Report struct {
	// Where is the place.
	Where string
	// Value is the value of the panic.
	Value any
	// Stack is the stack of the goroutine, cut to 16 kB.
	Stack []byte
	// Unreported is the number of panics of this place that were counted and not reported since the last report.
	Unreported uint64
}

// Guard recovers from panics. The methods are safe for concurrent use. A nil Guard recovers nothing, so that a panic
// ends the program, as in most tests.
type Guard struct {
	report func(Report)
	places map[string]*place
	names  []string
	// clock and fatal are time.Now and a panic, except in tests.
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

// NewGuard returns a guard for the named places, each of which is a kind of goroutine. report is called for a panic at
// most once per place and second; report must not wait for the goroutine that panicked.
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

// shared is a panic during a change of shared state. shared is an error, so that the runtime prints its text when the
// program ends.
type shared struct {
	value any
	stack []byte
}

// Error implements error.
func (s shared) Error() string {
	return fmt.Sprintf("while something was changed that many clients share: %v\n\n%s", s.value, s.stack)
}

// Shared is deferred by work on state shared by many clients. No Guard recovers from a panic in that work, in any
// goroutine.
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

// Recover is deferred by a goroutine that serves one client. If the goroutine panics, Recover counts and reports the
// panic, and another goroutine calls end, which ends the client. Recover does not wait for end, which may therefore
// wait for the goroutine that panicked.
//
// Deferred calls run in reverse order: calls that release resources needed by end are deferred after Recover.
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

// confine counts and reports a recovered panic, and returns the stack. A panic in shared work continues.
func (g *Guard) confine(where string, value any) (stack []byte) {
	if _, is := value.(shared); is {
		panic(value)
	}
	stack = debug.Stack()
	g.Note(where, value, stack)
	return stack
}

// Try calls f, and reports whether f returned. If f panics, Try counts and reports the panic. With a nil guard the
// panic continues.
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
		g.fatal(fmt.Sprintf("the client of %q was not ended within %v after a panic: %v\n\n%s", where, endTime,
			value, stack))
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

// due reports whether a panic is to be reported now, and the number of unreported panics since the last report.
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

// Places returns all places, in the order of NewGuard, and Other.
func (g *Guard) Places() []string { return g.names }

// Count returns the number of panics of a place, 0 for unknown places.
func (g *Guard) Count(where string) uint64 {
	if p := g.places[where]; p != nil {
		return p.count.Load()
	}
	return 0
}
