// Package agent implements vollab agent: it runs programs of the lab on a host for a controller on another host
// (vollab run --hosts). Package wire is the protocol, package role lists the programs and their flags.
//
// An Agent serves one controller at a time. The processes of a controller end when its connection ends.
package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/volsfu/volsfu/lab/agent/role"
	"github.com/volsfu/volsfu/lab/agent/wire"
	"github.com/volsfu/volsfu/lab/awake"
	"github.com/volsfu/volsfu/lab/environment"
	"github.com/volsfu/volsfu/lab/wallclock"
)

const (
	// patience is the time without a message after which a controller counts as gone. Controllers send one every two
	// seconds.
	patience = 15 * time.Second
	// greeting is the time limit for the handshake and the first message.
	greeting = 10 * time.Second
	// maxConnections bounds the connections, including those that have not proved a key yet.
	maxConnections = 16
)

// Config configures an Agent.
type Config struct {
	Key *wire.Key
	// Programs is the folder of the lab's programs, Data the folder of the test data, empty without test data.
	Programs, Data string
	Log            *slog.Logger
}

// Agent is an agent.
type Agent struct {
	config  Config
	welcome wire.Welcome

	mu sync.Mutex
	// controller is the address of the current controller, empty without one.
	controller string
}

// New returns an agent. It reads the environment of the host, which takes seconds.
func New(ctx context.Context, c Config) (*Agent, error) {
	described, err := environment.Read(ctx, c.Data)
	if err != nil {
		return nil, err
	}
	a := &Agent{config: c, welcome: wire.Welcome{
		Protocol: wire.Protocol, Platform: Platform(), Environment: described, Programs: Sums(c.Programs),
	}}
	return a, nil
}

// Platform returns the operating system and the architecture of this program.
func Platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// Sums returns the SHA-256 sums of those of the lab's programs that a folder has, by name.
func Sums(folder string) map[string]string {
	sums := make(map[string]string)
	for _, name := range role.Programs() {
		file, err := os.Open(filepath.Join(folder, name))
		if err != nil {
			continue
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, file); err == nil {
			sums[name] = hex.EncodeToString(sum.Sum(nil))
		}
		_ = file.Close()
	}
	return sums
}

// Serve serves controllers until the context ends. It closes the listener. All processes have ended when Serve returns.
func (a *Agent) Serve(ctx context.Context, listener net.Listener) error {
	var serving sync.WaitGroup
	defer serving.Wait()
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	places := make(chan struct{}, maxConnections)
	for {
		socket, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case places <- struct{}{}:
		default:
			_ = socket.Close()
			continue
		}
		serving.Go(func() {
			defer func() { <-places }()
			a.connected(ctx, socket)
		})
	}
}

// connected serves one connection.
func (a *Agent) connected(ctx context.Context, socket net.Conn) {
	early, cancel := context.WithTimeout(ctx, greeting)
	defer cancel()
	conn, err := a.config.Key.Accept(early, socket)
	if err != nil {
		a.config.Log.Warn("refused a connection", "from", socket.RemoteAddr().String(), "error", err)
		return
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	m, err := conn.Receive(greeting)
	if err != nil {
		return
	}
	switch {
	case m.Type != wire.TypeHello || m.Hello == nil:
		refuse(conn, "expected a hello, got %.32q", m.Type)
	case m.Hello.Protocol != wire.Protocol:
		refuse(conn, "the controller has version %d of the protocol, this agent has version %d: both need the same "+
			"vollab", m.Hello.Protocol, wire.Protocol)
	case m.Hello.Purpose == wire.PurposeClock:
		a.serveClock(conn)
	default:
		a.control(ctx, conn)
	}
}

// refuse ends a connection with an explanation.
func refuse(conn *wire.Conn, format string, arguments ...any) {
	_ = conn.Send(&wire.Message{Type: wire.TypeRefused, Text: fmt.Sprintf(format, arguments...)})
}

// serveClock answers questions for the time.
func (a *Agent) serveClock(conn *wire.Conn) {
	if conn.Send(&wire.Message{Type: wire.TypeWelcome, Welcome: &wire.Welcome{Protocol: wire.Protocol}}) != nil {
		return
	}
	for {
		m, err := conn.Receive(patience)
		received := wallclock.Now()
		if err != nil || m.Type != wire.TypeClock || m.Clock == nil {
			return
		}
		m.Clock.Received, m.Clock.Answered = received.UnixNano(), wallclock.Now().UnixNano()
		if conn.Send(m) != nil {
			return
		}
	}
}

// control serves a controller.
func (a *Agent) control(ctx context.Context, conn *wire.Conn) {
	if other := a.occupy(conn.Remote()); other != "" {
		refuse(conn, "this agent serves the controller at %s; an agent serves one controller at a time", other)
		return
	}
	defer a.occupy("")
	a.config.Log.Info("controller connected", "address", conn.Remote())
	defer a.config.Log.Info("controller gone", "address", conn.Remote())
	defer awake.Hold()()
	folder, err := os.MkdirTemp("", "vollab-agent-")
	if err != nil {
		refuse(conn, "%v", err)
		return
	}
	defer func() { _ = os.RemoveAll(folder) }()
	welcome := a.welcome
	if ptp, err := readPTP(ctx); err == nil {
		welcome.PTP = ptp
	} else {
		welcome.PTPError = err.Error()
	}
	if conn.Send(&wire.Message{Type: wire.TypeWelcome, Welcome: &welcome}) != nil {
		return
	}
	s := &session{conn: conn, programs: a.config.Programs, data: a.config.Data, folder: folder,
		processes: make(map[int]*process), inputs: make(map[int]*inputs), log: a.config.Log}
	if err := s.serve(); ctx.Err() == nil && !errors.Is(err, io.EOF) {
		a.config.Log.Warn("connection of the controller", "error", err)
	}
	s.end()
}

// occupy sets the controller and returns "", or returns the current controller. An empty address frees the agent.
func (a *Agent) occupy(controller string) (other string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if controller != "" && a.controller != "" {
		return a.controller
	}
	a.controller = controller
	return ""
}

// ptpTime is the time limit for pmc.
const ptpTime = 3 * time.Second

// readPTP asks the host's ptp4l for its state. The error wraps wire.ErrPTP.
func readPTP(ctx context.Context) (*wire.PTP, error) {
	ctx, cancel := context.WithTimeout(ctx, ptpTime)
	defer cancel()
	text, err := exec.CommandContext(ctx, "pmc", "-u", "-b", "0", "GET PORT_DATA_SET", "GET CURRENT_DATA_SET").Output()
	if err != nil {
		return nil, fmt.Errorf("%w: pmc, which asks ptp4l: %w", wire.ErrPTP, err)
	}
	return wire.ParsePTP(string(text))
}
