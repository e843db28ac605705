package testbed

import (
	"fmt"
	"net"
	"sync"
	"time"
)

// Relay forwards TCP connections to a server and delays the bytes by the same time in each direction, as a long path
// does. An emulated network carries media only, so the websockets of the clients need a Relay. The methods are safe for
// concurrent use.
type Relay struct {
	listener net.Listener
	target   string
	delay    time.Duration
	running  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conns  []net.Conn
}

// relayed is a block of bytes and the time at which to write the block.
type relayed struct {
	data []byte
	due  time.Time
}

const (
	// relayRead is the size of one read. relayHeld is the number of delayed blocks in each direction: a signalling
	// message has one or two packets.
	relayRead = 16 << 10
	relayHeld = 256
)

// NewRelay listens on loopback. target is HOST:PORT.
func NewRelay(target string, delay time.Duration) (*Relay, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("relay to %s: %w", target, err)
	}
	r := &Relay{listener: listener, target: target, delay: delay}
	r.running.Go(r.accept)
	return r, nil
}

// Address returns the address for clients, as HOST:PORT.
func (r *Relay) Address() string { return r.listener.Addr().String() }

// Close ends all connections.
func (r *Relay) Close() {
	_ = r.listener.Close()
	r.mu.Lock()
	r.closed = true
	for _, conn := range r.conns {
		_ = conn.Close()
	}
	r.mu.Unlock()
	r.running.Wait()
}

// accept accepts connections until the relay is closed. The connection itself is not delayed.
func (r *Relay) accept() {
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			return
		}
		upstream, err := net.Dial("tcp", r.target)
		if err != nil {
			_ = conn.Close()
			continue
		}
		r.mu.Lock()
		if r.closed {
			_, _ = conn.Close(), upstream.Close()
		}
		r.conns = append(r.conns, conn, upstream)
		r.carry(conn, upstream)
		r.carry(upstream, conn)
		r.mu.Unlock()
	}
}

// carry forwards bytes from one connection to another until one ends. Then both are closed.
func (r *Relay) carry(from, to net.Conn) {
	held := make(chan relayed, relayHeld)
	r.running.Go(func() {
		defer close(held)
		for {
			data := make([]byte, relayRead)
			n, err := from.Read(data)
			if err != nil {
				return
			}
			held <- relayed{data[:n], time.Now().Add(r.delay)}
		}
	})
	r.running.Go(func() {
		for h := range held {
			time.Sleep(time.Until(h.due))
			// After an error the remaining blocks are discarded, so that the reader does not wait.
			if _, err := to.Write(h.data); err != nil {
				_ = from.Close()
			}
		}
		_, _ = to.Close(), from.Close()
	})
}
