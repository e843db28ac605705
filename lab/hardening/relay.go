package hardening

import (
	"bytes"
	"context"
	"net"
	"sync"
	"sync/atomic"
)

// relay relays websockets of a client in this process to the server through a host's namespace. A relay accepts TCP
// connections on loopback, copies the data to the server, and counts the offers in the server's data, which is neither
// masked nor compressed.
type relay struct {
	listener net.Listener
	dial     func(context.Context) (net.Conn, error)
	offers   atomic.Int64
	running  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conns  []net.Conn
}

func newRelay(dial func(context.Context) (net.Conn, error)) (*relay, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &relay{listener: listener, dial: dial}
	r.running.Go(r.accept)
	return r, nil
}

// url returns the address for the client.
func (r *relay) url() string { return "ws://" + r.listener.Addr().String() }

// accept accepts connections until the relay is closed.
func (r *relay) accept() {
	for {
		near, err := r.listener.Accept()
		if err != nil {
			return
		}
		far, err := r.dial(context.Background())
		if err != nil {
			_ = near.Close()
			continue
		}
		r.mu.Lock()
		if r.closed {
			_, _ = near.Close(), far.Close()
		}
		r.conns = append(r.conns, near, far)
		r.mu.Unlock()
		r.running.Go(func() { r.carry(near, far, nil) })
		r.running.Go(func() { r.carry(far, near, &r.offers) })
	}
}

// offerBegins is the beginning of the server's JSON of an offer.
var offerBegins = []byte(`{"type":"offer"`)

// carry copies data from one connection to another until either ends, then closes both.
func (r *relay) carry(from, to net.Conn, offers *atomic.Int64) {
	defer func() { _, _ = from.Close(), to.Close() }()
	// The end of the previous read stays at the front of the buffer, because an offer may begin there.
	buffer := make([]byte, 64<<10)
	kept := 0
	for {
		n, err := from.Read(buffer[kept:])
		if err != nil {
			return
		}
		if _, err := to.Write(buffer[kept : kept+n]); err != nil {
			return
		}
		if offers == nil {
			continue
		}
		all := buffer[:kept+n]
		offers.Add(int64(bytes.Count(all, offerBegins)))
		kept = copy(buffer, all[max(0, len(all)-len(offerBegins)+1):])
	}
}

// close ends all connections.
func (r *relay) close() {
	_ = r.listener.Close()
	r.mu.Lock()
	r.closed = true
	for _, conn := range r.conns {
		_ = conn.Close()
	}
	r.mu.Unlock()
	r.running.Wait()
}
