package lifetime

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// TestAPanicEndsTheLifetime of all goroutines, and is logged with its stack.
func TestAPanicEndsTheLifetime(t *testing.T) {
	var log bytes.Buffer
	l := New(slog.New(slog.NewTextHandler(&log, nil)))
	l.Go(func() { <-l.Done() })
	l.Go(func() { panic("a defect") })
	l.Wait()
	if err := l.Err(); !errors.Is(err, ErrPanicked) || !strings.Contains(err.Error(), "a defect") {
		t.Errorf("ended with %v, expected the panic", err)
	}
	if text := log.String(); !strings.Contains(text, "a defect") || !strings.Contains(text, "lifetime_test.go") {
		t.Errorf("the log is %q, expected the panic with its stack", text)
	}
}

// TestTheFirstReasonCounts, also as the cause of the context.
func TestTheFirstReasonCounts(t *testing.T) {
	l := New(slog.New(slog.DiscardHandler))
	if l.Err() != nil {
		t.Errorf("%v before the end", l.Err())
	}
	first := errors.New("first")
	l.End(first)
	l.Try(func() { panic("later") })
	if l.Err() != first || context.Cause(l.Context()) != first {
		t.Errorf("ended with %v, expected %v", l.Err(), first)
	}
}
