package e2e

import (
	"io"
	"net"
	"sync"
	"testing"
)

// proxy carries TCP connections to a server and can cut them, as a network does.
type proxy struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
	down  bool
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, target: target, conns: map[net.Conn]bool{}}
	p.running.Add(1)
	go p.accept()
	t.Cleanup(func() {
		_ = listener.Close()
		p.cut()
		p.running.Wait()
	})
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
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

// keep takes a pair of connections, unless the proxy is down.
func (p *proxy) keep(a, b net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		_ = b.Close()
		return false
	}
	p.conns[a], p.conns[b] = true, true
	return true
}

func (p *proxy) carry(from, to net.Conn) {
	defer p.running.Done()
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = from.Close()
}

// cut ends every connection.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		_ = conn.Close()
	}
	clear(p.conns)
}

// setDown says whether new connections are refused.
func (p *proxy) setDown(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
}
