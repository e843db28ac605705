package testbed

import (
	"fmt"
	"net"
	"sync"
	"time"
)

// Relay carries TCP connections to a server and holds up what passes, each way by the same time, as a long path does:
// an emulated network carries media, and the websockets of its clients pass by it. Its methods are safe for concurrent
// use.
type Relay struct {
	listener net.Listener
	target   string
	delay    time.Duration
	running  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conns  []net.Conn
}

// relayed is what was read at once, and when it is to be written.
type relayed struct {
	data []byte
	due  time.Time
}

const (
	// relayRead is what is read at once, relayHeld how many of these may be on the way: a signalling message is a
	// packet or two.
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

// Address is where clients connect, as HOST:PORT.
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

// accept takes connections until the relay is closed. A client is connected at once; what it says first waits for as
// long as all that follows.
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

// carry takes what comes from one connection to another, until either ends; then both do.
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
			// After an error the rest is taken and lost, so that the reader does not wait.
			if _, err := to.Write(h.data); err != nil {
				_ = from.Close()
			}
		}
		_, _ = to.Close(), from.Close()
	})
}
