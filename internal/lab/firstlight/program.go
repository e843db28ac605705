package firstlight

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrProgram says that a program of volsfu's is missing, or did not do what it was started for.
var ErrProgram = errors.New("program")

// findProgram finds a program beside the one that runs.
func findProgram(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("%w %s: %w", ErrProgram, name, err)
	}
	path := filepath.Join(filepath.Dir(self), name)
	info, err := os.Stat(path)
	if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
		return "", fmt.Errorf("%w %s: expected it at %s, beside this program; make build puts all of them into bin/", ErrProgram, name, path)
	}
	return path, nil
}

// stopPatience is how long a program may take to end when it is asked to.
const stopPatience = 10 * time.Second

// process is a running program. Its standard error is kept for the case that it fails.
type process struct {
	name   string
	cmd    *exec.Cmd
	ended  chan struct{}
	status error
	errors tail
	output bytes.Buffer
}

// start starts a program; watch, if not nil, sees its standard error as well.
func start(name, path string, watch io.Writer, arguments ...string) (*process, error) {
	p := &process{name: name, cmd: exec.Command(path, arguments...), ended: make(chan struct{})}
	p.cmd.Stdout = &p.output
	p.cmd.Stderr = &p.errors
	if watch != nil {
		p.cmd.Stderr = io.MultiWriter(&p.errors, watch)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrProgram, name, err)
	}
	go func() {
		p.status = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// wait waits for the program to end by itself.
func (p *process) wait(ctx context.Context) error {
	select {
	case <-p.ended:
		return p.failure()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stop asks the program to end, and ends it if it does not.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(stopPatience)
	defer timer.Stop()
	select {
	case <-p.ended:
		return p.failure()
	case <-timer.C:
		_ = p.cmd.Process.Kill()
		<-p.ended
		return fmt.Errorf("%w %s did not end within %v of being asked to", ErrProgram, p.name, stopPatience)
	}
}

// failure is how the program ended, nil for status 0.
func (p *process) failure() error {
	if p.status == nil {
		return nil
	}
	return fmt.Errorf("%w %s: %w; it said last: %s", ErrProgram, p.name, p.status, p.errors.text())
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

// tailBytes is some ten lines.
const tailBytes = 2000

// Write implements io.Writer.
func (t *tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, data...)
	if over := len(t.kept) - tailBytes; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(data), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.kept) == 0 {
		return "nothing"
	}
	return strings.TrimSpace(string(t.kept))
}

// serverProcess is a running volsfu serve, on ports that the system chose.
type serverProcess struct {
	*process
	url string
}

// startServer starts a server and waits until it is ready.
func startServer(ctx context.Context) (*serverProcess, error) {
	path, err := findProgram("volsfu")
	if err != nil {
		return nil, err
	}
	reader, writer := io.Pipe()
	p, err := start("volsfu serve", path, writer,
		"serve", "--dev", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--media-port", "0", "--log-format", "json")
	if err != nil {
		return nil, err
	}
	ready := make(chan string, 1)
	go readLog(reader, ready)
	go func() {
		<-p.ended
		_ = writer.Close()
	}()
	ctx, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	select {
	case url := <-ready:
		return &serverProcess{p, url}, nil
	case <-p.ended:
		return nil, errors.Join(fmt.Errorf("%w volsfu serve ended before it was ready", ErrProgram), p.failure())
	case <-ctx.Done():
		return nil, errors.Join(fmt.Errorf("%w volsfu serve was not ready in time", ErrProgram), p.stop())
	}
}

// readLog looks for the address that the server says it is ready at, and reads on, so that the server can write.
func readLog(r io.Reader, ready chan<- string) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if url, ok := readyAddress(lines.Bytes()); ok {
			select {
			case ready <- url:
			default:
			}
		}
	}
	_, _ = io.Copy(io.Discard, r)
}

// readyAddress reads the server's address from the line of its log that says it is ready.
func readyAddress(line []byte) (string, bool) {
	var entry struct {
		Signalling string `json:"signalling"`
	}
	if json.Unmarshal(line, &entry) != nil || entry.Signalling == "" {
		return "", false
	}
	scheme, rest, ok := strings.Cut(entry.Signalling, "://")
	if !ok {
		return "", false
	}
	host, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + host, true
}
