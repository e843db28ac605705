package hosts

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/volsfu/volsfu/lab/agent/role"
	"github.com/volsfu/volsfu/lab/agent/wire"
)

// process is a process on a host. It implements lab.Runner. The goroutine that reads the connection owns files and
// failure, and ends the process.
type process struct {
	machine        *machine
	number         int
	plan           *role.Plan
	output, errors io.Writer

	files   map[string]*os.File
	failure error

	ended chan struct{}
	// status is set before ended is closed.
	status error

	mu sync.Mutex
	// used is the last known processor time.
	used time.Duration
}

// ExitError is the end of a process with a status other than 0.
type ExitError struct {
	Code int
	Text string
}

// Error implements error.
func (e *ExitError) Error() string { return e.Text }

// ExitCode returns the exit status, -1 if there is none.
func (e *ExitError) ExitCode() int { return e.Code }

// Wait implements lab.Runner.
func (p *process) Wait() error {
	<-p.ended
	return p.status
}

// Terminate implements lab.Runner.
func (p *process) Terminate() { p.tell(wire.TypeStop) }

// Kill implements lab.Runner.
func (p *process) Kill() { p.tell(wire.TypeKill) }

func (p *process) tell(t wire.Type) {
	if err := p.machine.conn.Send(&wire.Message{Type: t, Process: p.number}); err != nil {
		p.machine.fail(err)
	}
}

// PID implements lab.Runner.
func (p *process) PID() int { return 0 }

// Time implements lab.Runner.
func (p *process) Time() time.Duration {
	u, err := p.machine.usage(p.number)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && u.Time > 0 {
		p.used = u.Time
	}
	return p.used
}

// handle handles a message of the process.
func (p *process) handle(m *wire.Message) {
	switch m.Type {
	case wire.TypeOutput:
		into := p.output
		if m.Stream == 2 {
			into = p.errors
		}
		_, _ = into.Write(m.Data)
	case wire.TypeFile:
		if m.File != nil && p.failure == nil {
			p.failure = p.write(m.File)
		}
	case wire.TypeEnded:
		var status error
		if m.Status != 0 || m.Text != "" {
			status = &ExitError{m.Status, m.Text}
		}
		p.end(errors.Join(status, p.failure))
	}
}

// write writes a part of a file that the plan names.
func (p *process) write(f *wire.File) error {
	if p.plan.Outputs[f.Name] == "" {
		return fmt.Errorf("%w: file %.64q, which the program was not told to write", wire.ErrMessage, f.Name)
	}
	file := p.files[f.Name]
	if file == nil {
		var err error
		if file, err = os.Create(p.plan.Outputs[f.Name]); err != nil {
			return err
		}
		p.files[f.Name] = file
	}
	_, err := file.Write(f.Data)
	if f.Last {
		err = errors.Join(err, file.Close())
		delete(p.files, f.Name)
	}
	return err
}

// end ends the process on this side. It is called once.
func (p *process) end(status error) {
	for _, file := range p.files {
		_ = file.Close()
	}
	p.status = status
	close(p.ended)
}
