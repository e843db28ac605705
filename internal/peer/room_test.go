package peer

import (
	"errors"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/client"
)

func TestClockSettings(t *testing.T) {
	for _, test := range []struct {
		source, offset string
		shift          time.Duration
		fails          bool
	}{
		{"", "", 0, false},
		{"ptp", "", 0, false},
		{"estimated", "-1.5s", -1500 * time.Millisecond, false},
		{"sundial", "", 0, true},
		{"", "soon", 0, true},
	} {
		t.Setenv(clockOffsetVariable, test.offset)
		source, shift, err := clockSettings(test.source)
		if (err != nil) != test.fails || !test.fails && (string(source) != test.source || shift != test.shift) {
			t.Errorf("%q moved by %q: got %q, %v, %v", test.source, test.offset, source, shift, err)
		}
	}
	t.Setenv(clockOffsetVariable, "")
	if _, _, err := clockSettings("sundial"); !errors.Is(err, errClock) {
		t.Errorf("error is %v, expected errClock", err)
	}
}

// TestUnusableInterfaceIsNamed joins with an interface that does not exist.
func TestUnusableInterfaceIsNamed(t *testing.T) {
	room := Room{Server: "ws://127.0.0.1:1", Name: "lab", Identity: "ada", Interfaces: "lo,none-of-this-name"}
	_, err := room.Join(t.Context(), client.Config{})
	const want = `--interfaces: unusable network interface: this host has no interface "none-of-this-name"`
	if err == nil || err.Error() != want {
		t.Errorf("error is %v, expected: %s", err, want)
	}
}
