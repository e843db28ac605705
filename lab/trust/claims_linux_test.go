package trust

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/long"
	"github.com/volsfu/volsfu/test/program"
)

// newShort returns a bench for short measurements, with built programs of the product. It skips the test without root.
func newShort(t *testing.T, programs ...string) *bench {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("skipped: network namespaces take root")
	}
	b := &bench{options: DefaultOptions(), short: true}
	b.options.Programs = program.Static().Folder(t, programs...)
	return b
}

// measureShort measures claims. Counts that must be exact are exact on a machine of any speed, unless loaded lists
// their names; other targets may be missed.
func measureShort(t *testing.T, b *bench, loaded []string, numbers ...int) {
	t.Helper()
	for _, number := range numbers {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			b.progress = lab.NewProgress(t.Output())
			lines, err := newCheck(titles[number-1], b, measurements[number]).Run(t.Context())
			if err != nil {
				t.Error(err)
			}
			if len(lines) == 0 {
				t.Error("no lines")
			}
			for _, l := range lines {
				t.Log(l)
				if l.Failed != "" || l.Missed() && strings.HasPrefix(l.Target, "= ") && !isLoaded(l, loaded) {
					t.Errorf("a line that a busy machine does not explain: %v", l)
				}
			}
		})
	}
}

// isLoaded reports whether a busy machine may miss a line's target.
func isLoaded(l claim.Line, loaded []string) bool {
	for _, name := range loaded {
		if strings.Contains(l.Name, name) {
			return true
		}
	}
	return false
}

// TestShortAttack attacks a server once. Frames arrive late on a busy machine.
func TestShortAttack(t *testing.T) {
	long.Test(t)
	measureShort(t, newShort(t, "volsfu"), []string{"frames lost", "resumed"}, 11)
}

// TestShortFuzzing fuzzes the first test for a second.
func TestShortFuzzing(t *testing.T) {
	long.Test(t)
	b := &bench{options: DefaultOptions(), short: true}
	b.options.Fuzz.Inputs, b.options.Fuzz.Slice = 1, time.Second
	b.options.Fuzz.State = filepath.Join(t.TempDir(), "counts.json")
	measureShort(t, b, nil, 12)
}
