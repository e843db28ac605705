package service

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab/topology"
)

// patience is the time limit for a network's answer. A network answers within milliseconds unless its process is
// stopped.
const patience = 5 * time.Second

// Client communicates with the process of a network. It belongs to one goroutine.
type Client struct {
	name    string
	conn    net.Conn
	lines   *bufio.Scanner
	encoder *json.Encoder
}

// Connect connects to a network by its name. The error wraps ErrNetwork or ErrName, or is fs.ErrPermission if this
// process has no access.
func Connect(name string) (*Client, error) {
	path, err := socketOf(name)
	if err != nil {
		return nil, err
	}
	conn, err := net.Dial("unix", path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %s; vollab link up FILE starts a network", ErrNetwork, name)
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("%w: %s; its process was killed", ErrNetwork, name)
	case err != nil:
		return nil, fmt.Errorf("network %s: %w", name, err)
	}
	c := &Client{name: name, conn: conn, lines: bufio.NewScanner(conn), encoder: json.NewEncoder(conn)}
	c.lines.Buffer(nil, maxMessage)
	return c, nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// ask sends a request and waits for the answer.
func (c *Client) ask(q request) (answer, error) {
	var a answer
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return a, fmt.Errorf("network %s: %w", c.name, err)
	}
	if err := c.encoder.Encode(q); err != nil {
		return a, fmt.Errorf("network %s: %w", c.name, err)
	}
	if !c.lines.Scan() {
		return a, fmt.Errorf("%w: %s has ended: %w", ErrNetwork, c.name, errors.Join(c.lines.Err(), net.ErrClosed))
	}
	if err := json.Unmarshal(c.lines.Bytes(), &a); err != nil {
		return a, fmt.Errorf("network %s: %w", c.name, err)
	}
	if a.Error != "" {
		return a, fmt.Errorf("%w: %s: %s", ErrRefused, c.name, a.Error)
	}
	return a, nil
}

// Describe returns the network's description.
func (c *Client) Describe() (*Description, error) {
	a, err := c.ask(request{Do: doDescribe})
	if err == nil && a.Description == nil {
		err = fmt.Errorf("%w: %s: the answer has no description", ErrRefused, c.name)
	}
	return a.Description, err
}

// Statistics returns the network's counters.
func (c *Client) Statistics() (*topology.Summary, error) {
	a, err := c.ask(request{Do: doStatistics})
	if err == nil && a.Summary == nil {
		err = fmt.Errorf("%w: %s: the answer has no statistics", ErrRefused, c.name)
	}
	return a.Summary, err
}

// Restart restarts traces, schedules and counters.
func (c *Client) Restart() error {
	_, err := c.ask(request{Do: doRestart})
	return err
}

// Configure changes the parameters of a link in some directions.
func (c *Client) Configure(link string, set netem.Config, ways ...topology.Way) error {
	q := request{Do: doConfigure, Link: link, Set: &set}
	for _, way := range ways {
		q.Ways = append(q.Ways, way.String())
	}
	_, err := c.ask(q)
	return err
}

// End requests the end of the network, and waits until the network has ended.
func (c *Client) End() error {
	if _, err := c.ask(request{Do: doEnd}); err != nil {
		return err
	}
	<-c.Ended()
	return nil
}

// Ended returns a channel that is closed when the network has ended or its process was killed. No other method but
// Close may be called after this call.
func (c *Client) Ended() <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.conn.SetDeadline(time.Time{})
		c.lines.Scan() // only the end of the connection arrives from here on
	}()
	return ended
}

// Find returns the description of a network by its name.
func Find(name string) (*Description, error) {
	c, err := Connect(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	return c.Describe()
}

// removeStale removes the socket of a killed process. removeStale holds the folder's lock, because another process may
// be about to listen on the socket.
func removeStale(name string) {
	unlock, err := lock(Folder())
	if err != nil {
		return
	}
	defer unlock()
	removeStaleLocked(name)
}

// removeStaleLocked is removeStale for the holder of the lock.
func removeStaleLocked(name string) {
	c, err := Connect(name)
	if err == nil {
		_ = c.Close()
	}
	if path, invalid := socketOf(name); invalid == nil && errors.Is(err, ErrNetwork) {
		_ = os.Remove(path)
	}
}

// List describes all running networks, sorted by name.
func List() ([]Description, error) {
	entries, err := os.ReadDir(Folder())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("networks in %s: %w", Folder(), err)
	}
	list := []Description{}
	for _, e := range entries {
		name, ok := strings.CutSuffix(filepath.Base(e.Name()), socketSuffix)
		if !ok {
			continue
		}
		d, err := Find(name)
		switch {
		case err == nil:
			list = append(list, *d)
		case errors.Is(err, ErrNetwork):
			removeStale(name)
		case errors.Is(err, ErrName):
		default:
			return nil, err
		}
	}
	return list, nil
}
