package link

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab/topology"
	"github.com/volsfu/volsfu/lab/topology/service"
	"github.com/volsfu/volsfu/lab/topology/topologytest"
	"github.com/volsfu/volsfu/test/wait"
)

// run runs vollab link and returns its output.
func run(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := Command()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&bytes.Buffer{})
	cmd.SetArgs(arguments)
	err := cmd.ExecuteContext(ctx)
	return out.String(), err
}

// linkFile writes a topology of two hosts into the test's folder. The network's sockets are in the same folder.
func linkFile(t *testing.T) string {
	t.Helper()
	t.Setenv(service.FolderVariable, t.TempDir())
	name := filepath.Join(t.TempDir(), "net.yaml")
	text := "hosts: {a: {clock_offset: 5ms}, b: }\nlinks: {wire: {both: {delay: 1ms}}}\n" +
		"paths: [{from: a, to: b, through: [wire]}]\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// needNetwork skips the test on machines that cannot make networks.
func needNetwork(t *testing.T) {
	t.Helper()
	n, err := topology.Start(t.Context(), &topology.Topology{Hosts: map[string]topology.Host{"a": {}}})
	topologytest.Need(t, err)
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestLinkCheck(t *testing.T) {
	name := linkFile(t)
	if out, err := run(t, "check", name); err != nil || out != "2 hosts, 1 links, 1 paths\n" {
		t.Errorf("%q, %v", out, err)
	}
	if err := os.WriteFile(name, []byte("hosts: {a: , b: }\nlinks: {wire: {both: {dely: 1ms}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, "check", name); !errors.Is(err, topology.ErrTopology) ||
		!strings.Contains(err.Error(), "line 2: links.wire.both.dely is unknown") {
		t.Errorf("%v, expected an error that names the key", err)
	}
}

// TestLinkExamples reads the topologies of docs/link.md.
func TestLinkExamples(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "link.md"))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "wifi.csv"), []byte("t_s,mbps\n0,40\n1,20\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?ms)^(?:```yaml|cat >net.yaml <<'END')\n(.*?)^(?:```|END)$").FindAllSubmatch(page,
		-1)
	if len(examples) != 2 {
		t.Fatalf("%d examples, expected 2", len(examples))
	}
	for i, example := range examples {
		name := filepath.Join(folder, fmt.Sprint(i, ".yaml"))
		if err := os.WriteFile(name, example[1], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := run(t, "check", name); err != nil {
			t.Errorf("%v, in\n%s", err, example[1])
		}
	}
}

// TestLinkUp starts a network and uses all commands on it.
func TestLinkUp(t *testing.T) {
	name := linkFile(t)
	needNetwork(t)
	done := make(chan error, 1)
	go func() {
		_, err := run(t, "up", name, "--name", "test")
		done <- err
	}()
	wait.Until(t, "the network is up", func() bool {
		select {
		case err := <-done:
			t.Fatalf("the network has ended: %v", err)
		default:
		}
		_, err := service.Find("test")
		return err == nil
	})
	if out, err := run(t, "list"); err != nil || !strings.Contains(out, "test: "+name) ||
		!strings.Contains(out, "198.18.0.2") {
		t.Errorf("%q, %v", out, err)
	}
	if out, err := run(t, "list", "--json"); err != nil || !json.Valid([]byte(out)) {
		t.Errorf("%q, %v", out, err)
	}
	if out, err := run(t, "exec", "a", "--name", "test", "--", "sh", "-c",
		"echo $VOLLAB_HOST $VOLSFU_CLOCK_OFFSET; exit 7"); err != ExitStatus(7) || out != "a 5ms\n" {
		t.Errorf("%q, %v, expected status 7", out, err)
	}
	if _, err := run(t, "exec", "b", "--name", "test", "--", "sh", "-c", "kill -9 $$"); err != ExitStatus(137) {
		t.Errorf("%v, expected status 137", err)
	}
	t.Setenv(nameVariable, "test")
	if _, err := run(t, "exec", "c", "--", "true"); !errors.Is(err, topology.ErrHost) {
		t.Errorf("%v, expected ErrHost", err)
	}
	if _, err := run(t, "set", "wire/back", "delay=3ms"); err != nil {
		t.Error(err)
	}
	if _, err := run(t, "set", "wire/up", "delay=3ms"); !errors.Is(err, topology.ErrLink) {
		t.Errorf("%v, expected ErrLink", err)
	}
	if _, err := run(t, "set", "wire", "dely=3ms"); !errors.Is(err, netem.ErrProfile) {
		t.Errorf("%v, expected ErrProfile", err)
	}
	if _, err := run(t, "restart"); err != nil {
		t.Error(err)
	}
	if out, err := run(t, "statistics"); err != nil || !strings.Contains(out, "wire/back") {
		t.Errorf("%q, %v", out, err)
	}
	var summary topology.Summary
	if out, err := run(t, "statistics", "--json"); err != nil || json.Unmarshal([]byte(out), &summary) != nil ||
		len(summary.Links) != 2 {
		t.Errorf("%q, %v", out, err)
	}
	running := make(chan error, 1)
	go func() {
		_, err := run(t, "exec", "a", "--", "sleep", "1000")
		running <- err
	}()
	if _, err := run(t, "down"); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	// The process was ended with its host, or no longer found the host.
	if err := <-running; err == nil {
		t.Error("a command outlived its network")
	}
	if _, err := run(t, "statistics"); !errors.Is(err, service.ErrNetwork) {
		t.Errorf("%v, expected ErrNetwork", err)
	}
}

func TestLinkRun(t *testing.T) {
	name := linkFile(t)
	needNetwork(t)
	statistics := filepath.Join(t.TempDir(), "statistics.json")
	out, err := run(t, "run", name, "--host", "a", "--statistics", statistics, "--", "sh", "-c",
		"echo $VOLLAB_HOST; exit 3")
	if err != ExitStatus(3) || out != "a\n" {
		t.Errorf("%q, %v, expected status 3", out, err)
	}
	var summary topology.Summary
	text, err := os.ReadFile(statistics)
	if err != nil || json.Unmarshal(text, &summary) != nil || summary.Seconds <= 0 {
		t.Errorf("%s, %v", text, err)
	}
	// On this machine, the command finds the network by itself.
	if out, err := run(t, "run", name, "--strict", "--", "sh", "-c", "echo $"+nameVariable); err != nil ||
		!strings.HasPrefix(out, "run-") {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := run(t, "run", name, "--host", "c", "--", "true"); !errors.Is(err, topology.ErrHost) {
		t.Errorf("%v, expected ErrHost", err)
	}
}
