package hardening

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/volsfu/volsfu/internal/auth"
	"github.com/volsfu/volsfu/lab"
)

const (
	// sendBuffer is the kernel's default of net.core.wmem_max, in bytes. The setting applies to the whole machine, so
	// the server is configured to request no more instead.
	sendBuffer = 212_992
	// signalPort and mediaPort are the server's ports.
	signalPort, mediaPort = 8080, 7882
	// nobody is the numeric ID of the unprivileged user.
	nobody = 65534
	// startPatience is the time limit for the server to be ready.
	startPatience = 30 * time.Second
	// keyName names the key that signs tokens; secret is the key. The server is not reachable from other networks.
	keyName, secret = "lab", "a-secret-of-the-check-of-32-bytes-or-more"
	// tokenTime is the validity of tokens, longer than a check.
	tokenTime = time.Hour
)

// server is the attacked program.
type server struct {
	*lab.Program
	host *namespace
	log  logMeter
	keys *auth.Keyring
}

// startServer starts a server in a host's namespace as an unprivileged user, who cannot force larger socket buffers.
func startServer(ctx context.Context, host *namespace, path string) (*server, error) {
	s := &server{host: host}
	var err error
	if s.keys, err = auth.NewKeyring(auth.Config{Keys: []string{keyName + ":" + secret}}); err != nil {
		return nil, err
	}
	s.log.ready = make(chan lab.Ready, 1)
	// The unprivileged user may have no access to the program's folder, so the program is passed as an open file.
	program, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the server's program: %w", err)
	}
	defer func() { _ = program.Close() }()
	cmd := exec.Command("/proc/self/fd/3", "serve", "--listen", s.signalling(), "--admin-listen", "127.0.0.1:0",
		"--media-address", host.address.String(), "--media-port", strconv.Itoa(mediaPort),
		"--media-send-buffer", strconv.Itoa(sendBuffer), "--auth-keys", keyName+":"+secret, "--log-format", "json")
	cmd.Args[0], cmd.ExtraFiles, cmd.Dir = path, []*os.File{program}, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: nobody, Gid: nobody},
		// The thread that starts the server lives as long as its namespace.
		Pdeathsig: syscall.SIGKILL,
	}
	err = host.call(func() (err error) {
		s.Program, err = lab.StartCommand("volsfu serve", cmd, &s.log)
		return err
	})
	if err != nil {
		return nil, err
	}
	if _, err = lab.AwaitSign(ctx, s.Program, s.log.ready, startPatience); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// media returns the server's UDP address for media.
func (s *server) media() netip.AddrPort { return netip.AddrPortFrom(s.host.address, mediaPort) }

// signalling returns the server's address for websockets, as HOST:PORT.
func (s *server) signalling() string { return fmt.Sprintf("%v:%d", s.host.address, signalPort) }

// token returns a token that may publish and subscribe in any room under any name. Tokens of different numbers differ.
func (s *server) token(number int) (string, error) {
	now := time.Now()
	expires := now.Add(tokenTime + time.Duration(number)*time.Second)
	return s.keys.Mint("", auth.Claims{Publish: true, Subscribe: true, Expires: expires}, now)
}

// dead reports whether the server has ended.
func (s *server) dead() bool {
	select {
	case <-s.Ended():
		return true
	default:
		return false
	}
}

// cpu returns the processor time used by the server, in user and kernel mode.
func (s *server) cpu() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.PID()))
	if err != nil {
		return 0
	}
	// The name of the program, in brackets, may contain anything. Times are the 12th and 13th field after it.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	var ticks int64
	for _, field := range fields[11:13] {
		n, _ := strconv.ParseInt(field, 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * time.Second / clockTicks
}

// clockTicks is the number of ticks of /proc per second: USER_HZ, on every architecture of Go.
const clockTicks = 100

// resident returns the server's resident memory in bytes; 0 once the server has ended.
func (s *server) resident() int64 {
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.PID()))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(statm))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// logMeter counts the server's log output, and finds the line that reports readiness.
type logMeter struct {
	bytes, lines atomic.Int64
	ready        chan lab.Ready

	mu    sync.Mutex
	begun []byte
	found bool
}

// Write implements io.Writer.
func (m *logMeter) Write(data []byte) (int, error) {
	m.bytes.Add(int64(len(data)))
	m.lines.Add(int64(bytes.Count(data, []byte("\n"))))
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.found {
		return len(data), nil
	}
	m.begun = append(m.begun, data...)
	for {
		line, rest, whole := bytes.Cut(m.begun, []byte("\n"))
		if !whole {
			return len(data), nil
		}
		m.begun = rest
		var r lab.Ready
		if json.Unmarshal(line, &r) == nil && r.Signalling != "" {
			m.found, m.begun = true, nil
			m.ready <- r
			return len(data), nil
		}
	}
}
