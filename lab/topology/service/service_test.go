package service_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab/topology"
	"github.com/volsfu/volsfu/lab/topology/service"
	"github.com/volsfu/volsfu/lab/topology/topologytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a network and serves it under a name. The socket is in the test's folder.
func serve(t *testing.T, name string) (*topology.Network, *service.Service) {
	t.Helper()
	n := topologytest.Start(t, topology.Pair("a", "b", topology.Link{}))
	s, err := service.Serve(n, name, "net.yaml")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return n, s
}

func connect(t *testing.T, name string) *service.Client {
	t.Helper()
	c, err := service.Connect(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestClient(t *testing.T) {
	t.Setenv(service.FolderVariable, t.TempDir())
	n, s := serve(t, "first")
	c := connect(t, "first")
	d, err := c.Describe()
	if err != nil || d.Name != "first" || d.File != "net.yaml" || d.PID != os.Getpid() || d.ID != n.ID() ||
		len(d.Hosts) != 2 || len(d.Links) != 1 {
		t.Fatalf("%+v, %v", d, err)
	}
	h := d.Hosts[0]
	if h.Name != "a" || len(h.Addresses) != 1 || h.Addresses[0] != n.Address("a").String() || len(h.Environment) == 0 {
		t.Errorf("%+v", h)
	}
	if out, err := topology.CommandIn(t.Context(), h.Namespace, h.Environment, "sh", "-c",
		"echo $"+topology.HostVariable).Output(); err != nil || string(out) != "a\n" {
		t.Errorf("%q, %v", out, err)
	}
	if err := c.Configure("link", netem.Config{Delay: 5 * time.Millisecond, Loss: 1}, topology.Forth); err != nil {
		t.Error(err)
	}
	if out, err := topology.CommandIn(t.Context(), h.Namespace, nil, "sh", "-c",
		"echo > /dev/udp/198.18.0.2/9 || true").CombinedOutput(); err != nil {
		t.Errorf("%s, %v", out, err)
	}
	if err := c.Configure("cable", netem.Config{}, topology.Forth); !errors.Is(err, service.ErrRefused) ||
		!strings.Contains(err.Error(), "no such link") {
		t.Errorf("%v, expected a refusal", err)
	}
	if err := c.Restart(); err != nil {
		t.Error(err)
	}
	if summary, err := c.Statistics(); err != nil || !summary.Validity.Valid || len(summary.Links) != 2 ||
		len(summary.Interfaces) != 2 {
		t.Errorf("%+v, %v", summary, err)
	}
	if _, err := service.Serve(n, "first", ""); !errors.Is(err, service.ErrName) {
		t.Errorf("%v, expected ErrName for a name in use", err)
	}
	waiting := connect(t, "first").Ended()
	done := make(chan error)
	go func() { done <- c.End() }()
	<-s.Ending()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	<-waiting
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := service.Connect("first"); !errors.Is(err, service.ErrNetwork) {
		t.Errorf("%v, expected ErrNetwork", err)
	}
}

// TestEnd ends the service as soon as a client has requested it: the client still gets the answer.
func TestEnd(t *testing.T) {
	t.Setenv(service.FolderVariable, t.TempDir())
	n := topologytest.Start(t, topology.Pair("a", "b", topology.Link{}))
	for range 200 {
		s, err := service.Serve(n, "short", "net.yaml")
		if err != nil {
			t.Fatal(err)
		}
		c := connect(t, "short")
		done := make(chan error)
		go func() { done <- c.End() }()
		<-s.Ending()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

func TestList(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "missing")
	t.Setenv(service.FolderVariable, folder)
	if list, err := service.List(); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	serve(t, "b")
	serve(t, "a")
	// A killed process leaves a socket without a listener.
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(folder, "c.sock"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	if err := stale.Close(); err != nil {
		t.Fatal(err)
	}
	list, err := service.List()
	if err != nil || len(list) != 2 || list[0].Name != "a" || list[1].Name != "b" {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := os.Stat(filepath.Join(folder, "c.sock")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, expected that the socket of a killed process is removed", err)
	}
}

func TestNames(t *testing.T) {
	t.Setenv(service.FolderVariable, t.TempDir())
	for _, name := range []string{"", "../x", "a b", strings.Repeat("a", 33)} {
		if _, err := service.Connect(name); !errors.Is(err, service.ErrName) {
			t.Errorf("%q: %v, expected ErrName", name, err)
		}
	}
	if _, err := service.Connect("nobody"); !errors.Is(err, service.ErrNetwork) {
		t.Errorf("%v, expected ErrNetwork", err)
	}
}

// TestMalformed sends requests that Client never sends.
func TestMalformed(t *testing.T) {
	t.Setenv(service.FolderVariable, t.TempDir())
	serve(t, "net")
	conn, err := net.Dial("unix", filepath.Join(service.Folder(), "net.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	lines := bufio.NewScanner(conn)
	for text, says := range map[string]string{
		"{": "malformed request", `{"do":"dance"}`: `unknown request \"dance\"`,
		`{"do":"configure"}`: "configure without set", `[]`: "malformed",
	} {
		if _, err := fmt.Fprintln(conn, text); err != nil {
			t.Fatal(err)
		}
		if !lines.Scan() || !strings.Contains(lines.Text(), says) {
			t.Errorf("%s: %s, expected %s", text, lines.Text(), says)
		}
	}
	// The service does not wait for a line without an end.
	go func() { _, _ = conn.Write(make([]byte, 3<<20)) }()
	if lines.Scan() {
		t.Errorf("%s, expected the end of the connection", lines.Text())
	}
}
