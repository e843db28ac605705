package duplication

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/experiment/claims"
	"github.com/volsfu/volsfu/test/long"
	"github.com/volsfu/volsfu/test/program"
)

// newShort returns a bench for short measurements, with a built volnet. It skips the test without root.
func newShort(t *testing.T) *bench {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("skipped: network namespaces and BPF programs take root")
	}
	return &bench{options: claims.Options{Programs: program.Static().Folder(t, "volnet")}, short: true}
}

// TestShort measures the claims on packets with few of them. Counts that must be 0 are 0 on a machine of any speed;
// other targets may be missed.
func TestShort(t *testing.T) { measureShort(t, 1, 2, 3, 4) }

// TestShortOutages is TestShort for the claims on paths that change and programs that die.
func TestShortOutages(t *testing.T) {
	long.Test(t)
	measureShort(t, 7, 8, 9)
}

func measureShort(t *testing.T, numbers ...int) {
	t.Helper()
	b := newShort(t)
	for _, number := range numbers {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			b.progress = lab.NewProgress(t.Output())
			lines, err := newCheck(titles[number-1], b, measurements[number-1]).Run(t.Context())
			if err != nil {
				t.Error(err)
			}
			if len(lines) == 0 {
				t.Error("no lines")
			}
			for _, l := range lines {
				t.Log(l)
				if l.Failed != "" || l.Missed() && strings.HasPrefix(l.Target, "= ") {
					t.Errorf("a line that a busy machine does not explain: %v", l)
				}
			}
		})
	}
}
