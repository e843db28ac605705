package hardening

import (
	"bytes"
	"context"
	"net"
	"sync"
	"sync/atomic"
)

// door relays websockets of a client in this process to the server through a host's namespace: it accepts TCP
// connections on loopback and copies them to the server. It counts the offers that the server sends, which are neither
// masked nor compressed.
type door struct {
	listener net.Listener
	dial     func(context.Context) (net.Conn, error)
	offers   atomic.Int64
	running  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conns  []net.Conn
}

func newDoor(dial func(context.Context) (net.Conn, error)) (*door, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &door{listener: listener, dial: dial}
	d.running.Go(d.accept)
	return d, nil
}

// url returns the address for the client.
func (d *door) url() string { return "ws://" + d.listener.Addr().String() }

// accept accepts connections until the door is closed.
func (d *door) accept() {
	for {
		near, err := d.listener.Accept()
		if err != nil {
			return
		}
		far, err := d.dial(context.Background())
		if err != nil {
			_ = near.Close()
			continue
		}
		d.mu.Lock()
		if d.closed {
			_, _ = near.Close(), far.Close()
		}
		d.conns = append(d.conns, near, far)
		d.mu.Unlock()
		d.running.Go(func() { d.carry(near, far, nil) })
		d.running.Go(func() { d.carry(far, near, &d.offers) })
	}
}

// offerBegins is the beginning of the server's JSON of an offer.
var offerBegins = []byte(`{"type":"offer"`)

// carry copies data from one connection to another until either ends, then closes both.
func (d *door) carry(from, to net.Conn, offers *atomic.Int64) {
	defer func() { _, _ = from.Close(), to.Close() }()
	// The end of the previous read stays at the front of the buffer, for an offer that begins in it.
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
func (d *door) close() {
	_ = d.listener.Close()
	d.mu.Lock()
	d.closed = true
	for _, conn := range d.conns {
		_ = conn.Close()
	}
	d.mu.Unlock()
	d.running.Wait()
}
