package server

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/transport/ratelimit"
)

const (
	// headerTimeout bounds the time until a request is complete, idleTimeout the time between two requests; websockets
	// have timeouts of their own.
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	// bodyTimeout bounds the time for the body of a request. No request of this server needs a body.
	bodyTimeout = 10 * time.Second
	// responseTimeout bounds the time from a request's header to the end of the answer: the pages have some megabytes,
	// and 5 MB take 80 s at 512 kbit/s. Streams of events extend the time, and websockets have no limit.
	responseTimeout = 2 * time.Minute
	// strictTransport makes browsers use https for this host for 30 days after each answer (RFC 6797, section 6.1),
	// which is also the time that an operator has to wait after removing TLS.
	strictTransport = "max-age=2592000"
	// maxHeaderBytes fits a token of some kilobytes and the headers of proxies.
	maxHeaderBytes = 64 << 10
)

// connections limits the connections from one address to the clients' listener that are not websockets: each uses a
// descriptor, and descriptors are shared by all clients.
type connections struct {
	limit int
	// trusts reports whether an address is a trusted proxy, which is not limited.
	trusts func(netip.Addr) bool

	mu       sync.Mutex
	sources  map[netip.Prefix]int
	counted  map[net.Conn]netip.Prefix
	exceeded atomic.Uint64
}

func newConnections(limit int, trusts func(netip.Addr) bool) *connections {
	return &connections{limit: limit, trusts: trusts, sources: make(map[netip.Prefix]int),
		counted: make(map[net.Conn]netip.Prefix)}
}

// changed handles a connection's new state from http.Server, and closes a connection beyond the limit.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if !c.enter(conn) {
			c.exceeded.Add(1)
			_ = conn.Close()
		}
	case http.StateHijacked, http.StateClosed:
		c.leave(conn)
	}
}

func (c *connections) enter(conn net.Conn) bool {
	var remote netip.Addr
	if tcp, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		remote = tcp.AddrPort().Addr().Unmap()
	}
	source, limited := ratelimit.Source(remote)
	if !limited || c.trusts(remote) {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sources[source] >= c.limit {
		return false
	}
	c.sources[source]++
	c.counted[conn] = source
	return true
}

func (c *connections) leave(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	source, counted := c.counted[conn]
	if !counted {
		return
	}
	delete(c.counted, conn)
	if c.sources[source]--; c.sources[source] == 0 {
		delete(c.sources, source)
	}
}

// withBodiesInTime returns a handler whose request bodies have to arrive within bodyTimeout: after a handler that has
// not read the body, the HTTP server reads it, without a time limit.
func withBodiesInTime(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			// Fails for connections without deadlines; TCP and TLS have deadlines.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
		}
		inner.ServeHTTP(w, r)
	})
}

// newHTTPServer returns the server of the clients' listener, with its time and size limits.
func newHTTPServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: withBodiesInTime(handler), MaxHeaderBytes: maxHeaderBytes,
		ReadHeaderTimeout: headerTimeout, WriteTimeout: responseTimeout, IdleTimeout: idleTimeout,
	}
}

// withStrictTransport adds the header Strict-Transport-Security to all answers of a handler that is served over TLS.
func withStrictTransport(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Strict-Transport-Security", strictTransport)
		inner.ServeHTTP(w, r)
	})
}
