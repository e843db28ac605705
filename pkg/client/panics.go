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

// panicked ends the session after a panic in one of its goroutines, and returns the error of the session.
func (s *Session) panicked(value any, stack []byte) error {
	err := fmt.Errorf("%w: %v", ErrPanicked, value)
	s.cancel(err)
	logPanic(s.log, value, stack)
	return err
}

// logPanic logs a panic. The logger belongs to the program and may itself panic.
func logPanic(log *slog.Logger, value any, stack []byte) {
	defer func() { _ = recover() }()
	log.Error("panic: the session ends; please report this", "panic", fmt.Sprint(value), "stack", string(stack))
}

// try calls f. If f panics, the session ends, and try returns.
func (s *Session) try(f func()) {
	defer s.confine()
	f()
}
