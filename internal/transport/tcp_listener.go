package transport

import (
	"container/list"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

const (
	// maxTCPConnections is how many ICE-TCP connections there are at once, each of which has a descriptor: a sixteenth of those that the unit of systemd allows. TCP is for the
	// clients that UDP does not reach.
	maxTCPConnections = 4096
	// firstMessageTime is how long a connection may take to bring its first STUN message, which says what peer it is for, and how long one lasts whose message names
	// none: with round trips of half a second, the message and two more tries (1 and 2 s later) are there. Whoever knows a peer's name has got it from a peer that is there.
	firstMessageTime = 5 * time.Second
	// leastPause and mostPause are how long accepting pauses where the system has no descriptor or no memory for another connection.
	leastPause = 5 * time.Millisecond
	mostPause  = time.Second
)

// tcpListener accepts the connections of ICE-TCP. Pion's loop ends for good with the first error that it is given, so this one waits where the system lacks something for a
// while, and gives none but of what cannot come right again. Anybody may connect, so those that have said nothing yet make room for others, the oldest first.
type tcpListener struct {
	net.Listener
	endpoint *Endpoint
	limit    int
	// closed is closed with the listener.
	closed chan struct{}

	mu    sync.Mutex
	ended bool
	open  int
	// silent are the connections that nothing has come on, the oldest first.
	silent list.List
}

// tcpConn is a connection that counts.
type tcpConn struct {
	net.Conn
	listener *tcpListener
	// place is where it stands among the silent, nil once something has come; gone says that it does not count any more. The listener's mutex guards both.
	place *list.Element
	gone  bool
	// heard is the reader's own.
	heard bool
}

// newTCPListener makes a listener of up to limit connections.
func newTCPListener(inner net.Listener, endpoint *Endpoint, limit int) *tcpListener {
	return &tcpListener{Listener: inner, endpoint: endpoint, limit: limit, closed: make(chan struct{})}
}

// Accept implements net.Listener. Its errors are for good; the endpoint tells of all but those of closing.
func (l *tcpListener) Accept() (net.Conn, error) {
	pause := time.Duration(0)
	for {
		conn, err := l.Listener.Accept()
		if err == nil {
			pause = 0
			if c := l.admit(conn); c != nil {
				return c, nil
			}
			continue
		}
		if !passes(err) {
			l.endpoint.ended(fmt.Errorf("accept ICE-TCP: %w", err))
			return nil, err
		}
		// What the oldest of the silent held may be what is lacking.
		l.hush()
		pause = min(max(2*pause, leastPause), mostPause)
		select {
		case <-time.After(pause):
		case <-l.closed:
			return nil, net.ErrClosed
		}
	}
}

// passes tells whether an error of accept is over by itself after a while: no descriptor is left to the process or the system, no memory, or who connected is gone.
func passes(err error) bool {
	for _, lack := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, lack) {
			return true
		}
	}
	return false
}

// admit counts a connection, and closes it where there is no room.
func (l *tcpListener) admit(conn net.Conn) net.Conn {
	l.mu.Lock()
	full := l.open >= l.limit
	l.mu.Unlock()
	if full && !l.hush() {
		_ = conn.Close()
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		_ = conn.Close()
		return nil
	}
	c := &tcpConn{Conn: conn, listener: l}
	c.place = l.silent.PushBack(c)
	l.open++
	return c
}

// hush closes the connection that has said nothing for the longest time, and tells whether there was one.
func (l *tcpListener) hush() bool {
	l.mu.Lock()
	oldest := l.silent.Front()
	l.mu.Unlock()
	if oldest == nil {
		return false
	}
	// It may have said something by now; then it has bad luck.
	_ = oldest.Value.(*tcpConn).Close()
	return true
}

// Close implements net.Listener. Connections that have said nothing end with it: Pion's loop waits for their first messages.
func (l *tcpListener) Close() error {
	l.mu.Lock()
	if !l.ended {
		l.ended = true
		close(l.closed)
	}
	l.mu.Unlock()
	for l.hush() {
	}
	return l.Listener.Close()
}

// Read implements net.Conn.
func (c *tcpConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.heard {
		c.heard = true
		c.listener.mu.Lock()
		c.speaks()
		c.listener.mu.Unlock()
	}
	return n, err
}

// speaks takes the connection off the list of the silent. The caller holds the listener's mutex.
func (c *tcpConn) speaks() {
	if c.place != nil {
		c.listener.silent.Remove(c.place)
		c.place = nil
	}
}

// Close implements net.Conn.
func (c *tcpConn) Close() error {
	c.listener.mu.Lock()
	c.speaks()
	if !c.gone {
		c.gone = true
		c.listener.open--
	}
	c.listener.mu.Unlock()
	return c.Conn.Close()
}
