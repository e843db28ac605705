//go:build unix

package hosts

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/agent"
	"github.com/volsfu/volsfu/lab/agent/wire"
	"github.com/volsfu/volsfu/lab/environment"
	"github.com/volsfu/volsfu/test/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// actor stands for vollab peer: it prints its process number, copies the decisions to the records, and ends at SIGTERM
// with status 3. The name stubborn ignores SIGTERM.
const actor = `#!/bin/sh
while [ $# -gt 0 ]; do
	case "$1" in
	--records) records="$2"; shift ;;
	--decisions) decisions="$2"; shift ;;
	--name) name="$2"; shift ;;
	esac
	shift
done
finish() {
	[ -z "$records" ] || cat "$decisions" > "$records"
	echo summary
	exit 3
}
if [ "$name" = stubborn ]; then trap '' TERM; else trap finish TERM; fi
echo "pid $$ " >&2
while :; do sleep 0.05; done
`

// laboratory is an agent with programs and a key, in this process.
type laboratory struct {
	folder, key, address string
	stop                 func()
}

// newLaboratory starts an agent.
func newLaboratory(t *testing.T) *laboratory {
	t.Helper()
	l := &laboratory{folder: t.TempDir()}
	l.key = filepath.Join(l.folder, "lab.key")
	if err := errors.Join(wire.CreateKey(l.key),
		os.WriteFile(filepath.Join(l.folder, "vollab"), []byte(actor), 0o755)); err != nil {
		t.Fatal(err)
	}
	key, err := wire.ReadKey(l.key)
	if err != nil {
		t.Fatal(err)
	}
	a, err := agent.New(t.Context(), agent.Config{Key: key, Programs: l.folder, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.address = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := a.Serve(ctx, listener); err != nil {
			t.Error(err)
		}
	})
	l.stop = func() {
		cancel()
		serving.Wait()
	}
	t.Cleanup(l.stop)
	return l
}

// open opens a session whose role publisher is on the agent's host.
func (l *laboratory) open(t *testing.T, o Options) (*Session, error) {
	t.Helper()
	file, err := Parse([]byte("key: " + l.key + "\nhosts: {a: {agent: '" + l.address + "'}}\nroles: {publisher: a}\n"))
	if err != nil {
		t.Fatal(err)
	}
	o.Roles, o.Environment = []string{"publisher"}, &environment.Environment{}
	s, err := Open(t.Context(), file, o)
	if err == nil {
		t.Cleanup(s.Close)
	}
	return s, err
}

// refused opens a session, which must fail, once the agent does not serve another controller.
func (l *laboratory) refused(t *testing.T, programs string) (err error) {
	t.Helper()
	wait.Until(t, "the agent is free", func() bool {
		_, err = l.open(t, Options{Programs: programs})
		return err == nil || !strings.Contains(err.Error(), "one controller")
	})
	return err
}

// words collects the standard error of a process.
type words struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (w *words) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(data)
}

// pid waits for the number that the actor prints.
func (w *words) pid(t *testing.T) (pid int) {
	t.Helper()
	wait.Until(t, "the process prints its number", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		fields := strings.Fields(w.text.String())
		if len(fields) >= 2 && fields[0] == "pid" && strings.HasSuffix(w.text.String(), "\n") {
			pid, _ = strconv.Atoi(fields[1])
		}
		return pid != 0
	})
	return pid
}

// start starts the actor on the host.
func start(t *testing.T, s *Session, folder, name string) (*lab.Program, int) {
	t.Helper()
	var said words
	decisions := filepath.Join(folder, "decisions.csv")
	if err := os.WriteFile(decisions, []byte("t_s,q0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := s.Start("publisher", "the actor", "vollab", &said, "peer", "--name", name, "--records",
		filepath.Join(folder, "left.jsonl"), "--decisions", decisions)
	if err != nil {
		t.Fatal(err)
	}
	return p, said.pid(t)
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// TestProcess: a process on a host gets its files, and its output, files and status come back.
func TestProcess(t *testing.T) {
	l := newLaboratory(t)
	s, err := l.open(t, Options{Programs: l.folder})
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	p, pid := start(t, s, folder, "left")
	if p.PID() != 0 || p.Time() < 0 {
		t.Errorf("got the process %d with %v", p.PID(), p.Time())
	}
	var exit interface{ ExitCode() int }
	if err := p.Stop(); !errors.As(err, &exit) || exit.ExitCode() != 3 || !strings.Contains(err.Error(), "on a") {
		t.Errorf("got %v, want status 3 of a program on host a", err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "left.jsonl"))
	if err != nil || string(text) != "t_s,q0\n" || string(p.Output()) != "summary\n" {
		t.Errorf("got the file %q, %v and the output %q", text, err, p.Output())
	}
	if !gone(pid) {
		t.Errorf("process %d has not ended", pid)
	}
	times, err := s.MachineTimes()
	if err != nil || len(times) != 1 {
		t.Errorf("got %v, %v", times, err)
	}
	o, err := s.Offset("publisher", time.Now())
	if err != nil || o.Ahead.Abs() > o.Bound || o.Bound <= 0 {
		t.Errorf("the clock of this machine is ahead of itself by %+v, %v", o, err)
	}
	if _, err := s.Bound("publisher", "watcher", time.Now(), time.Now()); !errors.Is(err, ErrHost) {
		t.Errorf("a role without a host: got %v", err)
	}
	d := s.Describe()
	if len(d.Hosts) != 1 || d.Hosts[0].Environment == nil || len(d.Lines()) < 5 {
		t.Errorf("got %+v", d)
	}
	if _, err := s.Start("publisher", "a shell", "sh", nil, "-c", "true"); err == nil {
		t.Error("started a shell")
	}
}

// TestControllerGone: the processes of a controller end with its connection, also those that ignore SIGTERM.
func TestControllerGone(t *testing.T) {
	l := newLaboratory(t)
	s, err := l.open(t, Options{Programs: l.folder})
	if err != nil {
		t.Fatal(err)
	}
	p, pid := start(t, s, t.TempDir(), "left")
	other, stubborn := start(t, s, t.TempDir(), "stubborn")
	if _, err := l.open(t, Options{Programs: l.folder}); err == nil ||
		!strings.Contains(err.Error(), "one controller") {
		t.Errorf("a second controller: got %v", err)
	}
	s.Close()
	for _, program := range []*lab.Program{p, other} {
		if err := program.Wait(t.Context()); !errors.Is(err, ErrHost) {
			t.Errorf("got %v, want a lost connection", err)
		}
	}
	wait.Until(t, "the processes have ended", func() bool { return gone(pid) && gone(stubborn) })
	// The agent serves the next controller.
	wait.Until(t, "the agent is free", func() bool {
		next, err := l.open(t, Options{Programs: l.folder})
		if err == nil {
			next.Close()
		}
		return err == nil
	})
}

// TestAgentGone: a controller whose agent ends has errors that name the host.
func TestAgentGone(t *testing.T) {
	l := newLaboratory(t)
	s, err := l.open(t, Options{Programs: l.folder})
	if err != nil {
		t.Fatal(err)
	}
	p, pid := start(t, s, t.TempDir(), "left")
	l.stop()
	if err := p.Wait(t.Context()); !errors.Is(err, ErrHost) || !strings.Contains(err.Error(), "host a") {
		t.Errorf("got %v", err)
	}
	if !gone(pid) {
		t.Errorf("process %d has not ended", pid)
	}
	if _, err := s.Start("publisher", "the actor", "vollab", nil, "peer"); !errors.Is(err, ErrHost) {
		t.Errorf("a start without an agent: got %v", err)
	}
	if _, err := s.MachineTimes(); !errors.Is(err, ErrHost) {
		t.Errorf("times without an agent: got %v", err)
	}
}

// TestOpenRefuses: errors name what differs.
func TestOpenRefuses(t *testing.T) {
	l := newLaboratory(t)
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "vollab"), []byte("another build"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := l.refused(t, other); !errors.Is(err, ErrBuild) || !strings.Contains(err.Error(),
		"SHA-256") {
		t.Errorf("another build: got %v", err)
	}
	if err := os.WriteFile(filepath.Join(other, "volsfu"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "vollab"), []byte(actor), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := l.refused(t, other); !errors.Is(err, ErrBuild) || !strings.Contains(err.Error(),
		"no volsfu") {
		t.Errorf("a missing program: got %v", err)
	}
	elsewhere := *l
	elsewhere.key = filepath.Join(other, "other.key")
	if err := wire.CreateKey(elsewhere.key); err != nil {
		t.Fatal(err)
	}
	if err := elsewhere.refused(t, l.folder); !errors.Is(err, wire.ErrKey) {
		t.Errorf("another key: got %v", err)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	elsewhere.key, elsewhere.address = l.key, silent.Addr().String()
	if err := silent.Close(); err != nil {
		t.Fatal(err)
	}
	if err := elsewhere.refused(t, l.folder); !errors.Is(err, syscall.ECONNREFUSED) ||
		!strings.Contains(err.Error(), "host a") {
		t.Errorf("no agent: got %v", err)
	}
}

// TestProtocol: an agent refuses another version of the protocol, with both versions.
func TestProtocol(t *testing.T) {
	l := newLaboratory(t)
	key, err := wire.ReadKey(l.key)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := key.Dial(t.Context(), l.address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.Send(&wire.Message{Type: wire.TypeHello, Hello: &wire.Hello{Protocol: 99}}); err != nil {
		t.Fatal(err)
	}
	m, err := conn.Receive(time.Minute)
	if err != nil || m.Type != wire.TypeRefused || !strings.Contains(m.Text, "version 99") {
		t.Errorf("got %+v, %v", m, err)
	}
}
