package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/long"
	"github.com/volsfu/volsfu/test/program"
)

// systemdTimeout bounds a run of systemd, which takes some seconds on an idle machine.
const systemdTimeout = 5 * time.Minute

// TestUnitsUnderSystemd runs the units of volnet and volsfu by systemd, in namespaces: both start in their sandbox, an
// edge that was killed is started again and takes its programs over, and a stopped edge leaves nothing.
func TestUnitsUnderSystemd(t *testing.T) {
	long.Test(t)
	for _, needed := range []string{"/lib/systemd/systemd", "/usr/bin/unshare", "/usr/bin/setpriv",
		"/usr/bin/python3"} {
		if _, err := os.Stat(needed); err != nil {
			t.Skipf("skipped: systemd does not run here: %v", err)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("skipped: systemd takes root")
	}
	folder := t.TempDir()
	results := filepath.Join(folder, "results")
	if err := os.Mkdir(results, 0o755); err != nil {
		t.Fatal(err)
	}
	files := filepath.Join(folder, "files")
	installUnits(t, files)
	ctx, cancel := context.WithTimeout(t.Context(), systemdTimeout)
	defer cancel()
	boot := exec.CommandContext(ctx, filepath.Join("testdata", "systemd", "boot.sh"), folder)
	out, err := boot.CombinedOutput()
	if entries, _ := os.ReadDir(results); len(entries) == 0 {
		t.Skipf("skipped: systemd does not boot in namespaces here: %v\n%s", err, out)
	}
	result := func(name string) string {
		text, err := os.ReadFile(filepath.Join(results, name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return string(text)
	}
	if result("volnet-started") == "" || result("volsfu-started") == "" {
		t.Errorf("a unit has not started:\n%s", result("status"))
	}
	// CAP_NET_ADMIN is bit 12, CAP_BPF bit 39.
	for unit, capabilities := range map[string]string{"volnet": "0000008000001000", "volsfu": "0000000000000000"} {
		privileges := result(unit + "-privileges")
		for _, want := range []string{"CapEff:\t" + capabilities, "CapBnd:\t" + capabilities, "NoNewPrivs:\t1",
			"Seccomp:\t2"} {
			if !strings.Contains(privileges, want) || strings.Contains(privileges, "Uid:\t0") {
				t.Errorf("%s has the privileges\n%s, expected %q and another user than root", unit, privileges, want)
			}
		}
	}
	var status struct {
		Readopted bool `json:"readopted"`
	}
	if err := json.Unmarshal([]byte(result("volnet-after-crash")), &status); err != nil || !status.Readopted {
		t.Errorf("after a crash the edge has not taken its programs over: %v", err)
	}
	if left := result("pins-left"); left != "" || strings.Contains(result("links-left"), "xdp") {
		t.Errorf("the stopped edge has left\n%s\n%s", left, result("links-left"))
	}
	if ends := strings.Fields(result("ends")); strings.Join(ends, " ") != "success success" {
		t.Errorf("the units have ended with %q:\n%s", ends, result("status"))
	}
}

// installUnits writes the programs, their units and configurations below a folder, as on a host.
func installUnits(t *testing.T, files string) {
	t.Helper()
	install := func(to string, mode os.FileMode, data []byte) {
		t.Helper()
		path := filepath.Join(files, to)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, mode); err != nil {
			t.Fatal(err)
		}
	}
	read := func(parts ...string) []byte {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(parts...))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for _, name := range []string{"volnet", "volsfu"} {
		install("usr/local/bin/"+name, 0o755, read(program.Static().Path(t, name)))
	}
	const units = "etc/systemd/system/"
	own := filepath.Join("testdata", "systemd")
	for _, name := range []string{"volnet.service", "volsfu.service"} {
		install(units+name, 0o644, read(root, "systemd", name))
	}
	for _, name := range []string{"network.service", "examine.service", "vol.target"} {
		install(units+name, 0o644, read(own, name))
	}
	for _, name := range []string{"network.sh", "examine.sh"} {
		install(name, 0o755, read(own, name))
	}
	const user = "973"
	passwd, group := bytes.TrimSpace(read("/etc/passwd")), bytes.TrimSpace(read("/etc/group"))
	install("etc/passwd", 0o644, append(passwd, "\nvolnet:x:"+user+":"+user+"::/:/usr/sbin/nologin\n"...))
	install("etc/group", 0o644, append(group, "\nvolnet:x:"+user+":\n"...))
	install("etc/volnet/volnet.yaml", 0o644, read(own, "volnet.yaml"))
	install("etc/volnet/pair.key", 0o400, []byte(strings.Repeat("5a", 32)+"\n"))
	if err := os.Chown(filepath.Join(files, "etc/volnet/pair.key"), 973, 973); err != nil {
		t.Fatal(err)
	}
	install("etc/volsfu/volsfu.yaml", 0o644, read(root, "volsfu.yaml"))
	install("etc/volsfu/keys", 0o600, []byte("first:0123456789abcdef0123456789abcdef\n"))
}
