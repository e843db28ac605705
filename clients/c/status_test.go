//go:build cgo

package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/clients/c/internal/guest"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
)

// The tests below name statuses as volsfu.h does, by number: files of tests cannot name them otherwise.

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
		// What wraps another error says more than that.
		{fmt.Errorf("%w: %w", guest.ErrArgument, signal.NewError(signal.CodeInvalid, "name")), -4},
		{fmt.Errorf("%w: %w", client.ErrLost, refused), -22},
		{refused, -117},
	}
	for _, test := range tests {
		if got := int(statusOf(test.err)); got != test.want {
			t.Errorf("%v is %d, expected %d", test.err, got, test.want)
		}
	}
}

func TestPanicsAreContained(t *testing.T) {
	var nothing []int
	err := contained(func() error { return fmt.Errorf("%d", nothing[len(nothing)]) })
	if !errors.Is(err, errPanic) || !strings.Contains(err.Error(), "index out of range") || statusOf(err) != -31 {
		t.Errorf("got %v, expected the panic as an error", err)
	}
}
