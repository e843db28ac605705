package server

import (
	"crypto/tls"
	"io"
	stdlog "log"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/turnserver"
)

// withTURN returns the listener of TLS connections for the HTTP server. Connections of clients that use TURN go to the
// TURN server: those that ask for it (ALPN, RFC 7443), and those that ask for nothing and begin with STUN, as browsers
// do.
func (s *Server) withTURN(listener net.Listener, failures *stdlog.Logger) net.Listener {
	if !s.turn.ServeTLS(s.certificateName(""), listenerPort(listener)) {
		s.log.Warn("clients are not told of TURN over TLS: the certificate has no host name, and turn.host is empty")
		return tls.NewListener(listener, s.tls)
	}
	s.log.Debug("TURN shares the listener of signalling", zap.Stringer("address", listener.Addr()))
	config := s.tls.Clone()
	config.NextProtos = append(config.NextProtos[:len(config.NextProtos):len(config.NextProtos)], turnserver.Protocol)
	return sharedListener{listener, config, s.turn.Serve, failures}
}

// sharedListener accepts TLS connections for HTTP and for TURN. Its connections do the handshake when the HTTP server
// reads: within the HTTP server's limits of connections and of time.
type sharedListener struct {
	net.Listener
	config   *tls.Config
	serve    func(net.Conn)
	failures *stdlog.Logger
}

// Accept implements net.Listener.
func (l sharedListener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &sharedConn{Conn: tls.Server(inner, l.config), listener: l}, nil
}

// sharedConn is a connection of a sharedListener. After it was passed to TURN, reading returns an error, and the HTTP
// server's other calls have no effect.
type sharedConn struct {
	*tls.Conn
	listener sharedListener
	begin    sync.Once
	// first is the byte that was read to find out the protocol, in has set. They belong to the reader.
	first   byte
	hasByte bool
	failure error
	// passed is set once the connection belongs to TURN.
	passed atomic.Bool
}

// firstLetter is the least first byte of a request of HTTP. The first byte of STUN is 0 or 1.
const firstLetter = 'A'

// Read implements net.Conn.
func (c *sharedConn) Read(b []byte) (int, error) {
	c.begin.Do(c.decide)
	switch {
	case c.failure != nil:
		return 0, c.failure
	case c.hasByte && len(b) > 0:
		b[0], c.hasByte = c.first, false
		return 1, nil
	}
	return c.Conn.Read(b)
}

// decide does the handshake and passes a client of TURN to the TURN server.
func (c *sharedConn) decide() {
	// The HTTP server answers other errors than io.EOF.
	if err := c.Handshake(); err != nil {
		c.listener.failures.Printf("http: TLS handshake error from %v: %v", c.RemoteAddr(), err)
		c.failure = io.EOF
		return
	}
	switch c.ConnectionState().NegotiatedProtocol {
	case turnserver.Protocol:
		c.pass(c.Conn)
	case "":
		var first [1]byte
		if _, c.failure = c.Conn.Read(first[:]); c.failure != nil {
			return
		}
		if first[0] < firstLetter {
			c.pass(&begunConn{Conn: c.Conn, first: first[:]})
			return
		}
		c.first, c.hasByte = first[0], true
	}
}

// pass passes the connection to TURN, without the deadlines of the HTTP server.
func (c *sharedConn) pass(conn net.Conn) {
	c.passed.Store(true)
	c.failure = io.EOF
	_ = c.Conn.SetDeadline(time.Time{})
	c.listener.serve(conn)
}

// Close implements net.Conn.
func (c *sharedConn) Close() error {
	if c.passed.Load() {
		return nil
	}
	return c.Conn.Close()
}

// SetDeadline implements net.Conn, as do the two methods below.
func (c *sharedConn) SetDeadline(t time.Time) error {
	if c.passed.Load() {
		return nil
	}
	return c.Conn.SetDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (c *sharedConn) SetReadDeadline(t time.Time) error {
	if c.passed.Load() {
		return nil
	}
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline implements net.Conn.
func (c *sharedConn) SetWriteDeadline(t time.Time) error {
	if c.passed.Load() {
		return nil
	}
	return c.Conn.SetWriteDeadline(t)
}

// begunConn is a connection whose first bytes were read before.
type begunConn struct {
	net.Conn
	first []byte
}

// Read implements net.Conn.
func (c *begunConn) Read(b []byte) (int, error) {
	if len(c.first) > 0 {
		n := copy(b, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}
