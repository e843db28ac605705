package duplication

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/experiment/claims"
)

// newShort returns a bench for short measurements, with a built volnet. It skips the test without root.
func newShort(t *testing.T) *bench {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("skipped: network namespaces and BPF programs take root")
	}
	folder := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(folder, "volnet"), "./cmd/volnet")
	build.Dir = filepath.Join("..", "..")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build volnet: %v: %s", err, said)
	}
	return &bench{options: claims.Options{Programs: folder}, short: true}
}

// TestShort measures with few packets. Counts that must be 0 are 0 on a machine of any speed; other targets may be
// missed.
func TestShort(t *testing.T) {
	b := newShort(t)
	for number, title := range titles {
		t.Run(fmt.Sprint(number+1), func(t *testing.T) {
			b.progress = lab.NewProgress(t.Output())
			lines, err := (&check{title, b, measurements[number]}).Run(t.Context())
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
