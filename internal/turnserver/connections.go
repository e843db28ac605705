package turnserver

import (
	"bufio"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/transport/ratelimit"
)

const (
	// strangerTime is the time within which a connection must have an allocation: with round trips of half a second,
	// TLS, the two requests for an allocation, and repetitions after losses take less.
	strangerTime = 10 * time.Second
	// silentTime is the time after which a connection that sends nothing ends. ICE sends checks every few seconds.
	silentTime = time.Minute
	// writeTime is the time after which a connection that takes nothing ends. ICE then restarts.
	writeTime = 5 * time.Second
	// readBytes is the size of the read buffer of a connection: some ten packets for each system call.
	readBytes = 16 << 10
	// connectionsPerAllocation is the number of connections for each permitted allocation: connections that have no
	// allocation yet.
	connectionsPerAllocation = 2
	// waitingConnections is the number of connections that wait for Pion's accepting goroutine.
	waitingConnections = 16
)

// connections are the connections of clients over TCP and TLS. connections implements net.Listener for Pion, and is
// safe for concurrent use.
type connections struct {
	server *Server
	// total and address limit the connections in all and from one address.
	total, address int
	accepted       chan net.Conn
	closed         chan struct{}
	once           sync.Once

	mu      sync.Mutex
	open    map[netip.AddrPort]*connection
	sources map[netip.Prefix]int
}

func newConnections(s *Server, c Config) *connections {
	return &connections{
		server: s,
		total:  connectionsPerAllocation * c.Allocations, address: connectionsPerAllocation * c.AddressAllocations,
		accepted: make(chan net.Conn, waitingConnections), closed: make(chan struct{}),
		open: make(map[netip.AddrPort]*connection), sources: make(map[netip.Prefix]int),
	}
}

// add passes a connection to Pion, or closes it if there are too many.
func (c *connections) add(inner net.Conn) {
	remote := addressOf(inner.RemoteAddr())
	made := &connection{Conn: inner, connections: c, remote: remote, reader: bufio.NewReaderSize(inner, readBytes)}
	made.until.Store(time.Now().Add(strangerTime).UnixNano())
	source, limited := ratelimit.Source(remote.Addr())
	c.mu.Lock()
	_, taken := c.open[remote]
	refused := taken || len(c.open) >= c.total || limited && c.sources[source] >= c.address
	if !refused {
		c.open[remote] = made
		c.sources[source]++
	}
	c.mu.Unlock()
	if refused {
		c.server.refuse(refusedConnection)
		_ = inner.Close()
		return
	}
	select {
	case c.accepted <- made:
	case <-c.closed:
		_ = made.Close()
	}
}

// remove removes a connection.
func (c *connections) remove(gone *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[gone.remote] != gone {
		return
	}
	delete(c.open, gone.remote)
	source, _ := ratelimit.Source(gone.remote.Addr())
	if c.sources[source]--; c.sources[source] == 0 {
		delete(c.sources, source)
	}
}

// allocated marks the connection of a client that has an allocation.
func (c *connections) allocated(remote netip.AddrPort) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.open[remote]; known != nil {
		known.until.Store(0)
	}
}

// Accept implements net.Listener.
func (c *connections) Accept() (net.Conn, error) {
	select {
	case conn := <-c.accepted:
		return conn, nil
	case <-c.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. Close closes all connections.
func (c *connections) Close() error {
	c.once.Do(func() { close(c.closed) })
	c.mu.Lock()
	open := make([]*connection, 0, len(c.open))
	for _, conn := range c.open {
		open = append(open, conn)
	}
	c.mu.Unlock()
	for _, conn := range open {
		_ = conn.Close()
	}
	return nil
}

// Addr implements net.Listener.
func (c *connections) Addr() net.Addr { return &net.TCPAddr{} }

// connection is the connection of one client. Pion's goroutines call Read and Write.
type connection struct {
	net.Conn
	connections *connections
	remote      netip.AddrPort
	// reader belongs to the reading goroutine.
	reader *bufio.Reader
	// until is the time by which the client must have an allocation, in nanoseconds since 1970, 0 once it has one.
	until atomic.Int64
}

// Read reads one message. A message that is too long, is malformed, or exceeds the limit of requests ends the
// connection. b must have room for maxMessage bytes.
func (c *connection) Read(b []byte) (n int, err error) {
	now := time.Now()
	deadline := now.Add(silentTime)
	if until := c.until.Load(); until != 0 {
		deadline = time.Unix(0, until)
	}
	if err := c.SetReadDeadline(deadline); err != nil {
		return 0, err
	}
	head, err := c.reader.Peek(channelHeader)
	if err != nil {
		return 0, err
	}
	length, ok := messageLength(head)
	if !ok || length > min(maxMessage, len(b)) {
		c.connections.server.refuse(refusedMethod)
		return 0, net.ErrClosed
	}
	if _, err := io.ReadFull(c.reader, b[:length]); err != nil {
		return 0, err
	}
	if !c.connections.server.filter.admits(b[:length], c.remote.Addr(), now) {
		return 0, net.ErrClosed
	}
	return length, nil
}

// Write implements net.Conn.
func (c *connection) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(b)
	if err != nil {
		_ = c.Close()
	}
	return n, err
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.connections.remove(c)
	return c.Conn.Close()
}

// datagrams is a UDP socket of the server, without the messages that the filter refuses.
type datagrams struct {
	*net.UDPConn
	filter *filter
}

// ReadFrom implements net.PacketConn.
func (d datagrams) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, from, err := d.ReadFromUDP(b)
		if err != nil {
			return 0, nil, err
		}
		if d.filter.admits(b[:n], from.AddrPort().Addr(), time.Now()) {
			return n, from, nil
		}
	}
}

// addressOf returns the address of a client, an invalid one for other networks than IP.
func addressOf(a net.Addr) netip.AddrPort {
	switch a := a.(type) {
	case *net.UDPAddr:
		return unmapped(a.AddrPort())
	case *net.TCPAddr:
		return unmapped(a.AddrPort())
	}
	return netip.AddrPort{}
}
