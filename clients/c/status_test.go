//go:build cgo

package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/clients/c/internal/guest"
	"github.com/volsfu/volsfu/internal/voice/libopus"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
)

// The tests below use the numbers of statuses in volsfu.h, because test files cannot use their
// names.

func TestEveryCodeHasAStatus(t *testing.T) {
	seen := make(map[int]signal.Code)
	for _, code := range signal.Codes() {
		status := int(statusOf(fmt.Errorf("join: %w", signal.NewError(code, "no"))))
		if other, taken := seen[status]; taken || status >= -100 || status < -199 {
			t.Errorf("%s is %d, as is %q, expected a status of its own below -100", code, status, other)
		}
		seen[status] = code
	}
	if got := statusOf(signal.NewError("of tomorrow", "no")); got != -100 {
		t.Errorf("a code that nobody knows is %d, expected -100", got)
	}
}

func TestEveryKindHasANumber(t *testing.T) {
	seen := make(map[int]bool)
	for kind := range guest.Kinds {
		seen[int(kinds[guest.Kind(kind+1)])] = true
	}
	if len(seen) != guest.Kinds || seen[0] {
		t.Errorf("%d kinds of event have the numbers %v, expected as many different ones above 0", guest.Kinds, seen)
	}
}

func TestStatuses(t *testing.T) {
	refused := signal.NewError(signal.CodeResume, "gone")
	tests := []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("whatever"), -31},
		{fmt.Errorf("tile: %w", client.ErrNotPublished), -10},
		// The outer error is more specific than the wrapped one.
		{fmt.Errorf("%w: %w", guest.ErrArgument, signal.NewError(signal.CodeInvalid, "name")), -4},
		{fmt.Errorf("%w: %w", client.ErrLost, refused), -22},
		{fmt.Errorf("set limits: %w: test", client.ErrPanicked), -31},
		{refused, -117},
		{fmt.Errorf("decode: %w", libopus.ErrUnavailable), -12},
		{fmt.Errorf("voice: %w", guest.ErrNotSound), -14},
		{fmt.Errorf("send: %w", client.ErrDataBacklog), -27},
	}
	for _, test := range tests {
		if got := int(statusOf(test.err)); got != test.want {
			t.Errorf("%v is %d, expected %d", test.err, got, test.want)
		}
	}
}

// TestAPanicLeavesNoExportedFunction causes panics in functions called by C: their session is nil.
func TestAPanicLeavesNoExportedFunction(t *testing.T) {
	// These are the numbers of the first session and of the first publisher: test files cannot name
	// C's types.
	const broken, publishes = 1<<56 | 1, 2<<56 | 1
	if h := sessions.Add(&session{}); h != broken {
		t.Fatalf("the session is %#x, expected %#x", uint64(h), uint64(broken))
	}
	if h := publishers.Add(&publisher{}); h != publishes {
		t.Fatalf("the publisher is %#x, expected %#x", uint64(h), uint64(publishes))
	}
	for name, status := range map[string]int{
		"volsfu_set_limits":  int(volsfu_set_limits(broken, 0, 0)),
		"volsfu_get_room":    int(volsfu_get_room(broken, nil, 0, nil)),
		"volsfu_set_quality": int(volsfu_set_quality(broken, nil, 0)),
		"volsfu_wanted":      int(volsfu_wanted(publishes, 0, 0)),
		"volsfu_unpublish":   int(volsfu_unpublish(publishes)),
		"volsfu_close":       int(volsfu_close(broken)),
	} {
		if status != -31 {
			t.Errorf("%s returns %d, expected -31", name, status)
		}
	}
	if status := volsfu_close(broken); status != -3 {
		t.Errorf("the session is closed again with %d, expected -3", status)
	}
}

func TestPanicsAreContained(t *testing.T) {
	var nothing []int
	err := contained(func() error { return fmt.Errorf("%d", nothing[len(nothing)]) })
	if !errors.Is(err, errPanic) || !strings.Contains(err.Error(), "index out of range") || statusOf(err) != -31 {
		t.Errorf("got %v, expected the panic as an error", err)
	}
}
