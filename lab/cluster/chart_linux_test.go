package cluster

import (
	"strings"
	"testing"

	"github.com/volsfu/volsfu/lab"
)

// TestChartWithoutPrograms: without the programs of Kubernetes the claim is skipped, and the line names the command that
// builds the program.
func TestChartWithoutPrograms(t *testing.T) {
	t.Setenv("PATH", "")
	b := &bench{progress: lab.NewProgress(t.Output())}
	b.options.Kubernetes = t.TempDir()
	lines, err := newCheck(titles[13], b, measurements[14][:1]).Run(t.Context())
	if err != nil || len(lines) != 1 || !strings.Contains(lines[0].Skipped, "etcd-server") {
		t.Errorf("got %v, %v, expected one skipped line that names etcd-server", lines, err)
	}
}
