package client

import (
	"fmt"
	"log/slog"
	"runtime/debug"
)

// confine is deferred by a goroutine of the session. If the goroutine panics, the session ends, and not the program.
func (s *Session) confine() {
	if value := recover(); value != nil {
		_ = s.panicked(value, debug.Stack())
	}
}

// panicked ends the session after a panic in a goroutine that serves it, and returns the error that it ends with.
func (s *Session) panicked(value any, stack []byte) error {
	err := fmt.Errorf("%w: %v", ErrPanicked, value)
	s.cancel(err)
	logPanic(s.log, value, stack)
	return err
}

// logPanic logs a panic. The log is the program's, and may be what panics.
func logPanic(log *slog.Logger, value any, stack []byte) {
	defer func() { _ = recover() }()
	log.Error("panic: the session ends; please report this", "panic", fmt.Sprint(value), "stack", string(stack))
}

// try calls f. A panic ends the session, and does not keep the caller from what it does next.
func (s *Session) try(f func()) {
	defer s.confine()
	f()
}
