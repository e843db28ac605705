// Package proxy relays TCP connections to a server and can cut them, as a network does. Each connection has two
// goroutines, which end with the test.
package proxy

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Proxy relays connections to one server.
type Proxy struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
	down  bool
}

// New listens on loopback and relays connections to the target until the test ends.
func New(t *testing.T, target string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, target: target, conns: map[net.Conn]bool{}}
	p.running.Add(1)
	go p.accept()
	t.Cleanup(func() {
		_ = listener.Close()
		p.Cut()
		p.running.Wait()
	})
	return p
}

// Address returns the address to which clients connect.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

func (p *Proxy) accept() {
	defer p.running.Done()
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		upstream, err := net.Dial("tcp", p.target)
		if err != nil || !p.keep(conn, upstream) {
			_ = conn.Close()
			continue
		}
		p.running.Add(2)
		go p.carry(conn, upstream)
		go p.carry(upstream, conn)
	}
}

// keep registers a pair of connections, unless the proxy is down.
func (p *Proxy) keep(a, b net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		_ = b.Close()
		return false
	}
	p.conns[a], p.conns[b] = true, true
	return true
}

func (p *Proxy) carry(from, to net.Conn) {
	defer p.running.Done()
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = from.Close()
}

// Cut closes every connection.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		_ = conn.Close()
	}
	clear(p.conns)
}

// SetDown sets whether new connections are refused.
func (p *Proxy) SetDown(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
}
