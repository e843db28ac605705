package agent

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/agent/role"
	"github.com/volsfu/volsfu/lab/agent/wire"
)

const (
	// maxRunning bounds the processes of a controller that run, and those that files wait for.
	maxRunning = 16
	// maxInput bounds the files that a process reads, together: a minute of prepared frames at 100 Mbit/s.
	maxInput = 1 << 30
	// maxOutput bounds what a process prints. Programs print some lines per second.
	maxOutput = 64 << 20
	// stopPatience is the time for processes to end after SIGTERM when their controller is gone.
	stopPatience = 3 * time.Second
)

// errLimit reports that a controller exceeds a limit, or sends messages without sense.
var errLimit = errors.New("the controller exceeds a limit")

// session is a controller's connection with its processes. The goroutine of serve owns the maps.
type session struct {
	conn           *wire.Conn
	programs, data string
	folder         string
	log            *slog.Logger

	// processes are those that run, by number. last is the largest number so far: numbers increase.
	processes map[int]*process
	last      int
	inputs    map[int]*inputs
	running   sync.WaitGroup
}

// inputs are the files that a process will read.
type inputs struct {
	open  map[string]*os.File
	bytes int64
}

// process is a process of a controller.
type process struct {
	number  int
	cmd     *exec.Cmd
	folder  string
	outputs map[string]string
	ended   chan struct{}

	mu      sync.Mutex
	printed int64
}

// serve handles messages until the connection ends, and returns the reason, which is never nil.
func (s *session) serve() error {
	for {
		m, err := s.conn.Receive(patience)
		if err != nil {
			return err
		}
		if err := s.handle(m); err != nil {
			refuse(s.conn, "%v", err)
			return err
		}
	}
}

// handle handles a message. An error ends the session.
func (s *session) handle(m *wire.Message) error {
	switch {
	case m.Type == wire.TypePing:
		return s.conn.Send(m)
	case m.Type == wire.TypeInput && m.File != nil:
		return s.input(m.Process, m.File)
	case m.Type == wire.TypeStart && m.Start != nil:
		return s.start(m.Process, m.Start)
	case m.Type == wire.TypeStop:
		s.signal(m.Process, false)
	case m.Type == wire.TypeKill:
		s.signal(m.Process, true)
	case m.Type == wire.TypeUsage && m.Usage != nil:
		return s.usage(m)
	default:
		return fmt.Errorf("%w: message %.32q", errLimit, m.Type)
	}
	return nil
}

// place returns the folder of a process.
func (s *session) place(number int) string { return filepath.Join(s.folder, strconv.Itoa(number)) }

// input stores a part of a file for a process that has not started.
func (s *session) input(number int, f *wire.File) error {
	if number <= s.last || !role.ValidFile(f.Name) {
		return fmt.Errorf("%w: file %.64q for process %d", errLimit, f.Name, number)
	}
	in := s.inputs[number]
	if in == nil {
		if len(s.inputs) >= maxRunning {
			return fmt.Errorf("%w: files for %d processes that have not started", errLimit, len(s.inputs))
		}
		in = &inputs{open: make(map[string]*os.File)}
		s.inputs[number] = in
		if err := os.MkdirAll(s.place(number), 0o700); err != nil {
			return err
		}
	}
	if in.bytes += int64(len(f.Data)); in.bytes > maxInput {
		return fmt.Errorf("%w: files of more than %d bytes for process %d", errLimit, maxInput, number)
	}
	file := in.open[f.Name]
	if file == nil {
		var err error
		if file, err = os.OpenFile(filepath.Join(s.place(number), f.Name), os.O_CREATE|os.O_EXCL|os.O_WRONLY,
			0o600); err != nil {
			return err
		}
		in.open[f.Name] = file
	}
	_, err := file.Write(f.Data)
	if f.Last {
		err = errors.Join(err, file.Close())
		delete(in.open, f.Name)
	}
	return err
}

// start starts a process. A failure of the process is reported to the controller and is not an error.
func (s *session) start(number int, begin *wire.Start) error {
	if number <= s.last {
		return fmt.Errorf("%w: process %d after process %d; numbers increase", errLimit, number, s.last)
	}
	s.last = number
	if in := s.inputs[number]; in != nil {
		for _, file := range in.open {
			_ = file.Close()
		}
		delete(s.inputs, number)
	}
	p := &process{number: number, folder: s.place(number), ended: make(chan struct{})}
	if err := s.begin(p, begin); err != nil {
		s.log.Warn("did not start a program", "program", begin.Program, "error", err)
		return s.conn.Send(&wire.Message{Type: wire.TypeEnded, Process: number, Status: -1, Text: err.Error()})
	}
	s.processes[number] = p
	s.log.Info("started a program", "program", begin.Program, "pid", p.cmd.Process.Pid)
	s.running.Go(func() { s.await(p) })
	return nil
}

// begin starts the program of a process.
func (s *session) begin(p *process, begin *wire.Start) error {
	if n := s.alive(); n >= maxRunning {
		return fmt.Errorf("%w: %d processes run, expected at most %d", errLimit, n, maxRunning)
	}
	file, words, outputs, err := role.Line(begin.Program, begin.Arguments, role.Places{Folder: p.folder, Data: s.data})
	if err != nil {
		return err
	}
	path, err := lab.FindProgramIn(s.programs, file)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.folder, 0o700); err != nil {
		return err
	}
	p.outputs = outputs
	p.cmd = exec.Command(path, words...)
	p.cmd.Dir = p.folder
	p.cmd.Stdout, p.cmd.Stderr = &stream{s, p, 1}, &stream{s, p, 2}
	detach(p.cmd)
	return p.cmd.Start()
}

// alive returns the number of running processes and forgets the others.
func (s *session) alive() int {
	for number, p := range s.processes {
		select {
		case <-p.ended:
			delete(s.processes, number)
		default:
		}
	}
	return len(s.processes)
}

// await waits for the end of a process, and sends its files and its status.
func (s *session) await(p *process) {
	defer close(p.ended)
	err := p.cmd.Wait()
	ended := &wire.Message{Type: wire.TypeEnded, Process: p.number, Status: p.cmd.ProcessState.ExitCode()}
	if err != nil {
		ended.Text = err.Error()
	}
	for name, path := range p.outputs {
		if err := s.sendFile(p.number, name, path); err != nil {
			ended.Text = errors.Join(errors.New(ended.Text), err).Error()
		}
	}
	_ = os.RemoveAll(p.folder)
	_ = s.conn.Send(ended)
}

// sendFile sends a file of a process. A file that the process has not created is omitted.
func (s *session) sendFile(number int, name, path string) error {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	buffer := make([]byte, wire.Chunk)
	for {
		n, err := io.ReadFull(file, buffer)
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return err
		}
		if err := s.conn.Send(&wire.Message{Type: wire.TypeFile, Process: number,
			File: &wire.File{Name: name, Data: buffer[:n], Last: last}}); err != nil || last {
			return err
		}
	}
}

// signal ends a process: kill at once, otherwise with SIGTERM. A process that has ended is ignored.
func (s *session) signal(number int, kill bool) {
	if p := s.processes[number]; p != nil {
		select {
		case <-p.ended:
		default:
			end(p.cmd, kill)
		}
	}
}

// usage answers with processor times.
func (s *session) usage(m *wire.Message) error {
	answer := wire.Usage{Number: m.Usage.Number, Process: m.Usage.Process}
	if machine, err := lab.ReadMachineTime(); err == nil {
		answer.Machine = machine
	}
	if p := s.processes[m.Usage.Process]; p != nil {
		answer.Time = lab.ProcessTime(p.cmd.Process.Pid)
	}
	return s.conn.Send(&wire.Message{Type: wire.TypeUsage, Usage: &answer})
}

// end ends all processes and waits for them.
func (s *session) end() {
	for _, in := range s.inputs {
		for _, file := range in.open {
			_ = file.Close()
		}
	}
	_ = s.conn.Close()
	for number := range s.processes {
		s.signal(number, false)
	}
	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	timer := time.NewTimer(stopPatience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		for number := range s.processes {
			s.signal(number, true)
		}
		<-done
	}
}

// stream sends a process's output to the controller.
type stream struct {
	session *session
	process *process
	number  int
}

// Write implements io.Writer. An error makes the process's next write fail.
func (w *stream) Write(data []byte) (int, error) {
	w.process.mu.Lock()
	w.process.printed += int64(len(data))
	printed := w.process.printed
	w.process.mu.Unlock()
	if printed > maxOutput {
		return 0, fmt.Errorf("%w: more than %d bytes of output", errLimit, maxOutput)
	}
	for sent := 0; sent < len(data); {
		part := data[sent:min(len(data), sent+wire.Chunk)]
		if err := w.session.conn.Send(&wire.Message{Type: wire.TypeOutput, Process: w.process.number,
			Stream: w.number, Data: part}); err != nil {
			return sent, err
		}
		sent += len(part)
	}
	return len(data), nil
}
