package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/test/long"
)

// TestDebian builds the Debian package as make release does, and installs, runs, upgrades and purges it.
func TestDebian(t *testing.T) {
	long.Test(t)
	if os.Geteuid() != 0 || runtime.GOOS != "linux" {
		t.Skip("skipped: the package is installed in namespaces of Linux, which need root")
	}
	for _, name := range []string{"dpkg-deb", "unshare", "chroot"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("skipped: there is no %s", name)
		}
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	run := func(name string, arguments ...string) string {
		t.Helper()
		command := exec.Command(name, arguments...)
		command.Dir, command.Env = root, append(os.Environ(), "CGO_ENABLED=0")
		said, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", name, err, said)
		}
		return string(said)
	}
	folder := t.TempDir()
	server, client, notices := filepath.Join(folder, "volsfu"), filepath.Join(folder, "volpeer"),
		filepath.Join(folder, "NOTICES")
	for program, source := range map[string]string{server: "./cmd/volsfu", client: "./cmd/volpeer"} {
		run("go", "build", "-buildvcs=false", "-ldflags", "-X main.version=v1.2.3-4-gabcdef", "-o", program, source)
	}
	if err := os.WriteFile(notices, []byte("notices\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run("scripts/deb.sh", "v1.2.3-4-gabcdef", runtime.GOARCH, server, client, notices, folder)
	file := filepath.Join(folder, "volsfu_1.2.3+4.gabcdef_"+runtime.GOARCH+".deb")
	said := run("scripts/deb-try.sh", file)
	for _, line := range []string{"volsfu v1.2.3-4-gabcdef", "frames decoded", "keeps the configuration",
		"purging removes"} {
		if !strings.Contains(said, line) {
			t.Errorf("the trial does not print %q: %s", line, said)
		}
	}
}
