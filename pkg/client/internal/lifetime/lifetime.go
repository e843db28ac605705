// Package lifetime ends the goroutines of a session together: when the session is closed, when it fails, and when one
// of its goroutines panics.
package lifetime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
)

// ErrPanicked is wrapped with the value of a panic in a goroutine of a session.
var ErrPanicked = errors.New("panic in a goroutine of the session")

// Lifetime is the time from the beginning of a session to its end, and the goroutines that run during this time. Its
// methods are safe for concurrent use.
type Lifetime struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	running sync.WaitGroup
	log     *slog.Logger
}

// New returns a lifetime that has begun. log receives the stacks of panics.
func New(log *slog.Logger) *Lifetime {
	l := &Lifetime{log: log}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	return l
}

// Context returns the context that is cancelled at the end. Its cause is the reason.
func (l *Lifetime) Context() context.Context { return l.ctx }

// Done returns a channel that is closed at the end.
func (l *Lifetime) Done() <-chan struct{} { return l.ctx.Done() }

// Err returns the reason for the end, nil before the end.
func (l *Lifetime) Err() error { return context.Cause(l.ctx) }

// End ends the lifetime. Only the first reason counts.
func (l *Lifetime) End(why error) { l.cancel(why) }

// Go calls f on a goroutine. If f panics, the lifetime ends, and not the program.
func (l *Lifetime) Go(f func()) { l.running.Go(func() { l.Try(f) }) }

// Try calls f. If f panics, the lifetime ends, and Try returns.
func (l *Lifetime) Try(f func()) {
	defer func() {
		if value := recover(); value != nil {
			_ = l.Panicked(value, debug.Stack())
		}
	}()
	f()
}

// Panicked ends the lifetime after a panic in a goroutine of the session, and returns the reason.
func (l *Lifetime) Panicked(value any, stack []byte) error {
	err := fmt.Errorf("%w: %v", ErrPanicked, value)
	l.cancel(err)
	logPanic(l.log, value, stack)
	return err
}

// logPanic logs a panic. The logger belongs to the program and may itself panic.
func logPanic(log *slog.Logger, value any, stack []byte) {
	defer func() { _ = recover() }()
	log.Error("panic: the session ends; please report this", "panic", fmt.Sprint(value), "stack", string(stack))
}

// Wait waits for the end of all goroutines that Go has begun.
func (l *Lifetime) Wait() { l.running.Wait() }
