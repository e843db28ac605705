package cluster

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"github.com/volsfu/volsfu/internal/cluster/certificate"
)

// TestClusterCertificate: the nodes of a cluster trust each other, and later nodes belong to the same cluster.
func TestClusterCertificate(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "made")
	run := func(arguments ...string) (string, error) {
		var out bytes.Buffer
		cmd := Command()
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		cmd.SetOut(&out)
		cmd.SetArgs(append([]string{"certificate", "--directory", directory}, arguments...))
		return out.String(), cmd.Execute()
	}
	if _, err := run("--region", "eu", "a", "b"); err != nil {
		t.Fatal(err)
	}
	if _, err := run("--region", "us", "c"); err != nil {
		t.Fatal(err)
	}
	a, err := certificate.Load(filepath.Join(directory, "a"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := certificate.Load(filepath.Join(directory, "c"))
	if err != nil {
		t.Fatal(err)
	}
	if a.Region != "eu" || c.Region != "us" || c.Cluster != "volsfu" {
		t.Errorf("a is in %q, c in %q of %q", a.Region, c.Region, c.Cluster)
	}
	if name, err := a.Verify(c.Certificate().Certificate); name != "c" || err != nil {
		t.Errorf("the certificate of c is that of %q, %v", name, err)
	}
	if _, err := run("--name", "other", "d"); !errors.Is(err, certificate.ErrFile) {
		t.Errorf("another cluster in the same directory: the error is %v", err)
	}
	if _, err := run("../d"); !errors.Is(err, certificate.ErrName) {
		t.Errorf("a path as a name: the error is %v", err)
	}
	for _, arguments := range [][]string{{}, {"--valid-for", "0s", "d"}} {
		if _, err := run(arguments...); err == nil {
			t.Errorf("%v is accepted", arguments)
		}
	}
}
