package lab

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

// ErrProgram is returned if a program of volsfu is missing, fails, or does not become ready.
var ErrProgram = errors.New("program")

// FindProgram finds a program in the folder of the running one.
func FindProgram(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("%w %s: %w", ErrProgram, name, err)
	}
	return FindProgramIn(filepath.Dir(self), name)
}

// FindProgramIn finds a program in a folder. An empty folder is that of the running program.
func FindProgramIn(folder, name string) (string, error) {
	if folder == "" {
		return FindProgram(name)
	}
	path := filepath.Join(folder, name)
	info, err := os.Stat(path)
	if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
		return "", fmt.Errorf("%w %s: expected %s; make build puts all programs into bin/", ErrProgram, name, path)
	}
	return path, nil
}

// stopPatience bounds the time of a program to end after SIGTERM.
const stopPatience = 10 * time.Second

// Program is a running program. The end of its standard error is kept for error messages. A Program belongs to the
// goroutine that started it.
type Program struct {
	name   string
	runner Runner
	ended  chan struct{}
	status error
	errors Tail
	output bytes.Buffer
}

// StartProgram starts a program. name stands for the program in errors. watch, if not nil, also receives the standard
// error.
func StartProgram(name, path string, watch io.Writer, arguments ...string) (*Program, error) {
	return StartCommand(name, exec.Command(path, arguments...), watch)
}

// Runner is a started program: a process of this machine, or one on another machine.
type Runner interface {
	// Wait waits for the end. The error describes a status other than 0; it has a method ExitCode if there is a status.
	Wait() error
	// Terminate asks the program to end, as SIGTERM does. Kill ends it.
	Terminate()
	Kill()
	// PID returns the number of the process, 0 on another machine.
	PID() int
	// Time returns the processor time so far, 0 if the system does not report it.
	Time() time.Duration
}

// command is a process of this machine.
type command struct{ *exec.Cmd }

// Terminate implements Runner.
func (c command) Terminate() { _ = c.Process.Signal(syscall.SIGTERM) }

// Kill implements Runner.
func (c command) Kill() { _ = c.Process.Kill() }

// PID implements Runner.
func (c command) PID() int { return c.Process.Pid }

// Time implements Runner.
func (c command) Time() time.Duration { return ProcessTime(c.Process.Pid) }

// StartCommand is StartProgram for a command, which may run the program elsewhere, for instance in a namespace.
func StartCommand(name string, cmd *exec.Cmd, watch io.Writer) (*Program, error) {
	return StartRunner(name, watch, func(output, errors io.Writer) (Runner, error) {
		cmd.Stdout, cmd.Stderr = output, errors
		return command{cmd}, cmd.Start()
	})
}

// StartRunner is StartProgram for a function that starts the program with the given standard output and standard error.
func StartRunner(name string, watch io.Writer, start func(output, errors io.Writer) (Runner, error)) (*Program, error) {
	p := &Program{name: name, ended: make(chan struct{})}
	var printed io.Writer = &p.errors
	if watch != nil {
		printed = io.MultiWriter(printed, watch)
	}
	var err error
	if p.runner, err = start(&p.output, printed); err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrProgram, name, err)
	}
	go func() {
		p.status = p.runner.Wait()
		close(p.ended)
	}()
	return p, nil
}

// Wait waits for the program to end by itself. If both the program and the context have ended, the program's result
// counts.
func (p *Program) Wait(ctx context.Context) error {
	select {
	case <-p.ended:
		return p.failure()
	case <-ctx.Done():
	}
	select {
	case <-p.ended:
		return p.failure()
	default:
		return ctx.Err()
	}
}

// AwaitSign waits until a program that was just started sends a value on sign, for patience at most. AwaitSign does not
// stop the program.
func AwaitSign[T any](ctx context.Context, p *Program, sign <-chan T, patience time.Duration) (value T, err error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case value = <-sign:
		return value, nil
	case <-p.ended:
		return value, errors.Join(fmt.Errorf("%w %s ended before it was ready", ErrProgram, p.name), p.failure())
	case <-timer.C:
		return value, fmt.Errorf("%w %s was not ready within %v", ErrProgram, p.name, patience)
	case <-ctx.Done():
		return value, ctx.Err()
	}
}

// Ended is closed after the program has ended.
func (p *Program) Ended() <-chan struct{} { return p.ended }

// Stop sends SIGTERM, waits for the program to end, and kills the program after stopPatience.
func (p *Program) Stop() error {
	p.runner.Terminate()
	timer := time.NewTimer(stopPatience)
	defer timer.Stop()
	select {
	case <-p.ended:
		return p.failure()
	case <-timer.C:
		p.runner.Kill()
		<-p.ended
		return fmt.Errorf("%w %s did not end within %v of SIGTERM", ErrProgram, p.name, stopPatience)
	}
}

// Kill ends the program immediately and waits until it has ended.
func (p *Program) Kill() {
	p.runner.Kill()
	<-p.ended
}

// PID returns the number of the process, 0 on another machine.
func (p *Program) PID() int { return p.runner.PID() }

// Time returns the processor time of the program so far.
func (p *Program) Time() time.Duration { return p.runner.Time() }

// Output returns the program's standard output. Call it only after the program has ended, when the output is complete.
func (p *Program) Output() []byte { return p.output.Bytes() }

// LastOutput returns the end of the program's standard error so far.
func (p *Program) LastOutput() string { return p.errors.Text() }

// failure returns the program's end as an error, nil for status 0.
func (p *Program) failure() error {
	if p.status == nil {
		return nil
	}
	return fmt.Errorf("%w %s: %w; last output: %s", ErrProgram, p.name, p.status, p.errors.Text())
}

// Tail keeps the end of the written text. After a panic, Tail keeps the beginning of the panic's message and trace
// instead, because the end of a long trace does not name the panic. Tail is safe for concurrent use. The zero Tail is
// empty.
type Tail struct {
	mu   sync.Mutex
	kept []byte
}

// tailBytes is about ten lines.
const tailBytes = 2000

// panicked is the beginning of a panic's message from Go's runtime, on its own line. Logs contain the word only within
// lines.
var panicked = []byte("\npanic: ")

// Write implements io.Writer.
func (t *Tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.kept) == 0 {
		// The newline makes the first line begin like the following lines.
		t.kept = append(t.kept, '\n')
	}
	t.kept = append(t.kept, data...)
	if at := bytes.Index(t.kept, panicked); at >= 0 {
		t.kept = t.kept[at:min(len(t.kept), at+tailBytes)]
		return len(data), nil
	}
	if over := len(t.kept) - tailBytes; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(data), nil
}

// Text returns the kept text, "nothing" if nothing was written.
func (t *Tail) Text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text := strings.TrimSpace(string(t.kept)); text != "" {
		return text
	}
	return "nothing"
}

// Ready is the content of the log line with which a server reports that it is ready.
type Ready struct {
	// Signalling is the address for clients, as ws://host:port/path.
	Signalling string `json:"signalling"`
	// Admin is the operators' listener, as host:port, empty without one.
	Admin string `json:"admin"`
	// MediaPort is the UDP port of all media.
	MediaPort uint16 `json:"media_port"`
}

// URL returns the server's address for clients, ws://host:port.
func (r Ready) URL() string {
	scheme, rest, _ := strings.Cut(r.Signalling, "://")
	host, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + host
}

// ServerProgram is a running volsfu serve.
type ServerProgram struct {
	*Program
	Ready
}

// startPatience bounds the time until a server is ready.
const startPatience = 30 * time.Second

// StartServer starts a server on loopback ports chosen by the system, without tokens, and waits until it is ready. The
// arguments of more come before the server's other arguments.
func StartServer(ctx context.Context, path string, more ...string) (*ServerProgram, error) {
	return startListener(ctx, "volsfu serve", exec.Command(path, serverArguments(more)...))
}

// StartListener starts a program that logs readiness as a server does, and waits for that log line.
func StartListener(ctx context.Context, name, path string, arguments ...string) (*ServerProgram, error) {
	return startListener(ctx, name, exec.Command(path, arguments...))
}

// StartServerUnprivileged is StartServer without root's rights, which this process must have; otherwise the error wraps
// errors.ErrUnsupported.
func StartServerUnprivileged(ctx context.Context, path string, more ...string) (*ServerProgram, error) {
	cmd := exec.Command(path, serverArguments(more)...)
	if err := dropPrivileges(cmd); err != nil {
		return nil, err
	}
	return startListener(ctx, "volsfu serve", cmd)
}

// StartServerCommand starts a server with a command, which may run the server elsewhere, and waits until the server is
// ready. The server must log as JSON.
func StartServerCommand(ctx context.Context, cmd *exec.Cmd) (*ServerProgram, error) {
	return startListener(ctx, "volsfu serve", cmd)
}

func serverArguments(more []string) []string {
	arguments := append([]string{"serve"}, more...)
	return append(arguments, "--dev", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--media-port", "0",
		"--log-format", "json")
}

func startListener(ctx context.Context, name string, cmd *exec.Cmd) (*ServerProgram, error) {
	reader, writer := io.Pipe()
	p, err := StartCommand(name, cmd, writer)
	if err != nil {
		return nil, err
	}
	ready := make(chan Ready, 1)
	go readLog(reader, ready)
	go func() {
		<-p.ended
		_ = writer.Close()
	}()
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	select {
	case r := <-ready:
		return &ServerProgram{p, r}, nil
	case <-p.ended:
		return nil, errors.Join(fmt.Errorf("%w %s ended before it was ready", ErrProgram, name), p.failure())
	case <-ctx.Done():
		return nil, errors.Join(fmt.Errorf("%w %s was not ready in time", ErrProgram, name), p.Stop())
	}
}

// readLog waits for the line that announces that the server is ready, and reads on, so that the server can write.
func readLog(r io.Reader, ready chan<- Ready) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if found, ok := parseReady(lines.Bytes()); ok {
			select {
			case ready <- found:
			default:
			}
		}
	}
	_, _ = io.Copy(io.Discard, r)
}

// parseReady reads the log line that announces that the server is ready.
func parseReady(line []byte) (Ready, bool) {
	var r Ready
	if json.Unmarshal(line, &r) != nil || !strings.Contains(r.Signalling, "://") {
		return Ready{}, false
	}
	return r, true
}
