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
	// headerTimeout and idleTimeout bound how long a connection may be silent before a request is whole, and between two; websockets have timeouts of their own.
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	// bodyTimeout is how long the body of a request may take. No request here needs one.
	bodyTimeout = 10 * time.Second
	// responseTimeout is how long a request may take from its header to the end of the answer: the pages have some
	// megabytes, and 5 MB take 80 s at 512 kbit/s. Streams of events extend their own, and websockets have none.
	responseTimeout = 2 * time.Minute
	// strictTransport has browsers use https for this host for 30 days from each answer (RFC 6797, section 6.1): an
	// operator who gives TLS up has to wait no longer than that.
	strictTransport = "max-age=2592000"
	// maxHeaderBytes holds a token of some kilobytes and what proxies add.
	maxHeaderBytes = 64 << 10
)

// connections bounds the connections of one address to the clients' listener that are no websockets: each has a descriptor, which are everybody's.
type connections struct {
	limit int
	// trusts tells the proxies, which bring everybody's.
	trusts func(netip.Addr) bool

	mu       sync.Mutex
	sources  map[netip.Prefix]int
	counted  map[net.Conn]netip.Prefix
	exceeded atomic.Uint64
}

func newConnections(limit int, trusts func(netip.Addr) bool) *connections {
	return &connections{limit: limit, trusts: trusts, sources: make(map[netip.Prefix]int), counted: make(map[net.Conn]netip.Prefix)}
}

// changed takes a connection's new state, as http.Server tells it, and closes one that is one too many.
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

// withBodiesInTime makes a handler whose requests have their bodies within bodyTimeout: after a handler that has not read one, the HTTP server reads it, however long that takes.
func withBodiesInTime(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			// It fails for connections without deadlines, which TCP's and those of TLS are not.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
		}
		inner.ServeHTTP(w, r)
	})
}

// newHTTPServer makes the server of the clients' listener, with its bounds of time and of bytes.
func newHTTPServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: withBodiesInTime(handler), MaxHeaderBytes: maxHeaderBytes,
		ReadHeaderTimeout: headerTimeout, WriteTimeout: responseTimeout, IdleTimeout: idleTimeout,
	}
}

// withStrictTransport adds the header Strict-Transport-Security to all answers of a handler that is served by TLS.
func withStrictTransport(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Strict-Transport-Security", strictTransport)
		inner.ServeHTTP(w, r)
	})
}
