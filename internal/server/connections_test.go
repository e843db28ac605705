package server

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
)

// connFrom is the near end of a pipe with the remote address of a connection.
type connFrom struct {
	net.Conn
	remote net.Addr
}

// RemoteAddr implements net.Conn.
func (c *connFrom) RemoteAddr() net.Addr { return c.remote }

// connecting returns a connection from an address, and its far end.
func connecting(address string) (near *connFrom, far net.Conn) {
	inner, far := net.Pipe()
	return &connFrom{inner, &net.TCPAddr{IP: net.ParseIP(address), Port: 4711}}, far
}

func TestConnectionsFromOneAddress(t *testing.T) {
	proxy := netip.MustParseAddr("10.0.0.1")
	c := newConnections(2, func(a netip.Addr) bool { return a == proxy })
	open := func(address string, want bool) *connFrom {
		t.Helper()
		near, _ := connecting(address)
		c.changed(near, http.StateNew)
		c.changed(near, http.StateActive)
		if want {
			return near
		}
		// Writing to a pipe that is not read blocks, unless the pipe is closed.
		if _, counted := c.counted[near]; counted {
			t.Errorf("one more connection from %s is counted", address)
		} else if _, err := near.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("one more connection from %s: %v", address, err)
		}
		return near
	}
	first, second := open("203.0.113.9", true), open("203.0.113.9", true)
	third := open("203.0.113.9", false)
	c.changed(third, http.StateClosed)
	open("203.0.113.9", false)
	other := open("203.0.113.10", true)
	for range 5 {
		c.changed(open("10.0.0.1", true), http.StateClosed)
		c.changed(open("127.0.0.1", true), http.StateClosed)
	}
	// One became a websocket, which is counted elsewhere, and its end is not reported.
	c.changed(first, http.StateHijacked)
	fourth := open("203.0.113.9", true)
	for _, conn := range []*connFrom{second, fourth, other} {
		c.changed(conn, http.StateClosed)
	}
	if len(c.sources) != 0 || len(c.counted) != 0 || c.exceeded.Load() != 2 {
		t.Errorf("in the end %v and %d connections are counted, and %d were too many", c.sources, len(c.counted),
			c.exceeded.Load())
	}
}

// TestBodiesThatDoNotCome announces a body and sends none: the connection is closed.
func TestBodiesThatDoNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := connecting("203.0.113.9")
		listener := &oneConn{conn: near, closed: make(chan struct{})}
		server := newHTTPServer(http.NotFoundHandler())
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = server.Serve(listener)
		}()
		go func() { _, _ = io.WriteString(far, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nx") }()
		response, err := http.ReadResponse(bufio.NewReader(far), nil)
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != http.StatusNotFound {
			t.Errorf("status %d", response.StatusCode)
		}
		// The test has no timeout of its own: it ends after the server's deadline, and never without one.
		if _, err := io.Copy(io.Discard, far); err != nil {
			t.Error(err)
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		<-served
	})
}

// TestAnswersThatAreNotRead requests more than a connection buffers, and reads nothing: the answer ends.
func TestAnswersThatAreNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := connecting("203.0.113.9")
		listener := &oneConn{conn: near, closed: make(chan struct{})}
		ended := make(chan error, 1)
		server := newHTTPServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, err := w.Write(make([]byte, 1<<20))
			ended <- err
		}))
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = server.Serve(listener)
		}()
		go func() { _, _ = io.WriteString(far, "GET / HTTP/1.1\r\nHost: x\r\n\r\n") }()
		// The test has no timeout of its own: it continues after the server's deadline, and never without one.
		if err := <-ended; err == nil {
			t.Error("an answer that is not read was written whole")
		}
		if err := errors.Join(server.Close(), far.Close()); err != nil {
			t.Error(err)
		}
		<-served
	})
}

// oneConn is a listener that accepts one connection.
type oneConn struct {
	conn   net.Conn
	closed chan struct{}
}

// Accept implements net.Listener.
func (l *oneConn) Accept() (net.Conn, error) {
	if conn := l.conn; conn != nil {
		l.conn = nil
		return conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (l *oneConn) Close() error {
	close(l.closed)
	return nil
}

// Addr implements net.Listener.
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }
