package service

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab/topology"
)

// Errors of this package. The wrapping error has the name of the network and the expected value.
var (
	// ErrName reports a name that is invalid or used by another network.
	ErrName = errors.New("invalid name of a network")
	// ErrNetwork reports that no network of a name is running.
	ErrNetwork = errors.New("no such network")
	// ErrRefused reports an error returned by the process of a network.
	ErrRefused = errors.New("the network refused the request")
)

const (
	// FolderVariable is the environment variable with the folder of the sockets.
	FolderVariable = "VOLLAB_LINKS"
	defaultFolder  = "/run/vollab"
	// DefaultName is the name of a network without a given name.
	DefaultName = "link"

	socketSuffix = ".sock"
	maxMessage   = 1 << 20
)

var names = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$`)

// Folder returns the folder of the sockets.
func Folder() string {
	if folder := os.Getenv(FolderVariable); folder != "" {
		return folder
	}
	return defaultFolder
}

// socketOf returns the path of a network's socket.
func socketOf(name string) (string, error) {
	if !names.MatchString(name) {
		return "", fmt.Errorf("%w: %q, expected at most 32 letters, digits, hyphens and underscores, "+
			"a letter or a digit first", ErrName, name)
	}
	return filepath.Join(Folder(), name+socketSuffix), nil
}

// request is a client's request.
type request struct {
	Do   action        `json:"do"`
	Link string        `json:"link,omitempty"`
	Ways []string      `json:"ways,omitempty"`
	Set  *netem.Config `json:"set,omitempty"`
}

type action string

const (
	doDescribe   action = "describe"
	doStatistics action = "statistics"
	doRestart    action = "restart"
	doConfigure  action = "configure"
	doEnd        action = "end"
)

// answer is the answer to a request.
type answer struct {
	Error       string            `json:"error,omitempty"`
	Description *Description      `json:"description,omitempty"`
	Summary     *topology.Summary `json:"summary,omitempty"`
}

// Description describes a running network.
type Description struct {
	Name string `json:"name"`
	// File is the topology's file name as given.
	File  string    `json:"file"`
	PID   int       `json:"pid"`
	Began time.Time `json:"began"`
	Hosts []Host    `json:"hosts"`
	Links []string  `json:"links"`
	// ID is the network's topology.Network.ID.
	ID string `json:"id"`
}

// Host is a host of a network.
type Host struct {
	Name string `json:"name"`
	// Addresses are the host's addresses, the main address first.
	Addresses []string `json:"addresses"`
	// Namespace is the path of the host's network namespace while the network is running. Environment lists the
	// variables for the host's commands.
	Namespace   string   `json:"namespace"`
	Environment []string `json:"environment"`
}

// Service serves one network.
type Service struct {
	network     *topology.Network
	description Description
	listener    *net.UnixListener
	ending      chan struct{} // closed when a client requests the end
	goroutines  sync.WaitGroup

	mu    sync.Mutex
	ended bool
	conns map[net.Conn]struct{}
}

// Serve makes a network available under a name. The error wraps ErrName.
func Serve(n *topology.Network, name, file string) (*Service, error) {
	path, err := socketOf(name)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(Folder(), 0o700); err != nil {
		return nil, fmt.Errorf("serve network %s: %w", name, err)
	}
	unlock, err := lock(Folder())
	if err != nil {
		return nil, fmt.Errorf("serve network %s: %w", name, err)
	}
	defer unlock()
	if d, err := Find(name); err == nil {
		return nil, fmt.Errorf("%w: the network %s is already up, in process %d", ErrName, name, d.PID)
	}
	removeStaleLocked(name)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("serve network %s: %w", name, err)
	}
	s := &Service{network: n, listener: listener, ending: make(chan struct{}), conns: make(map[net.Conn]struct{})}
	if s.description, err = describe(n, name, file); err != nil {
		_ = listener.Close()
		return nil, err
	}
	s.goroutines.Add(1)
	go s.accept()
	return s, nil
}

func describe(n *topology.Network, name, file string) (Description, error) {
	d := Description{Name: name, File: file, PID: os.Getpid(), Began: time.Now(), Links: n.Links(), ID: n.ID()}
	for _, host := range n.Hosts() {
		h := Host{Name: host, Environment: n.Environment(host)}
		for parallel := 0; n.AddressOn(host, parallel).IsValid(); parallel++ {
			h.Addresses = append(h.Addresses, n.AddressOn(host, parallel).String())
		}
		var err error
		if h.Namespace, err = n.Namespace(host); err != nil {
			return d, err
		}
		d.Hosts = append(d.Hosts, h)
	}
	return d, nil
}

// Ending returns a channel that is closed when a client has requested the network's end.
func (s *Service) Ending() <-chan struct{} { return s.ending }

// Close removes the socket and ends all connections. The network itself belongs to the caller.
func (s *Service) Close() error {
	err := s.listener.Close()
	s.mu.Lock()
	s.ended = true
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.goroutines.Wait()
	return err
}

func (s *Service) accept() {
	defer s.goroutines.Done()
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.ended {
			_ = conn.Close()
		} else {
			s.conns[conn] = struct{}{}
			s.goroutines.Add(1)
			go s.converse(conn)
		}
		s.mu.Unlock()
	}
}

// converse answers the requests of one connection.
func (s *Service) converse(conn net.Conn) {
	defer s.goroutines.Done()
	defer func() {
		s.mu.Lock()
		delete(s.conns, conn)
		s.mu.Unlock()
		_ = conn.Close()
	}()
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, maxMessage)
	encoder := json.NewEncoder(conn)
	for lines.Scan() {
		var q request
		a := answer{}
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			a.Error = "malformed request: " + err.Error()
		} else {
			a = s.answer(&q)
		}
		err := encoder.Encode(a)
		if q.Do == doEnd {
			// The answer is sent: the caller of Ending may close the connection now.
			s.end()
		}
		if err != nil {
			return
		}
	}
}

// end closes the channel of Ending.
func (s *Service) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.ending:
	default:
		close(s.ending)
	}
}

// answer performs a request, except for the end of the network.
func (s *Service) answer(q *request) (a answer) {
	switch q.Do {
	case doDescribe:
		a.Description = &s.description
	case doStatistics:
		statistics := s.network.Statistics()
		a.Summary = statistics.Summary()
	case doRestart:
		s.network.Restart()
	case doConfigure:
		if q.Set == nil {
			a.Error = "configure without set, expected the parameters of a link"
			return a
		}
		for _, way := range []topology.Way{topology.Forth, topology.Back} {
			for _, wanted := range q.Ways {
				if wanted != way.String() {
					continue
				}
				if err := s.network.Configure(q.Link, way, *q.Set); err != nil {
					a.Error = err.Error()
					return a
				}
			}
		}
	case doEnd:
	default:
		a.Error = fmt.Sprintf("unknown request %q", q.Do)
	}
	return a
}
