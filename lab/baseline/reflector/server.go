package reflector

import (
	"context"
	"net"
	"sync"

	"github.com/volsfu/volsfu/lab/baseline/tcp"
	"github.com/volsfu/volsfu/lab/carriage"
)

// Serve runs a reflector until the context ends, with queues of the given number of packets. listening is called with
// the reflector's address. Two goroutines serve each client.
func Serve(ctx context.Context, options tcp.Options, address string, queue int,
	listening func(string)) (*carriage.Relayed, error) {
	listener, err := options.Listen(ctx, address)
	if err != nil {
		return nil, err
	}
	listening(listener.Addr().String())
	s := &server{fanout: NewFanout[[]byte](queue), conns: make(map[net.Conn]bool)}
	stop := context.AfterFunc(ctx, func() {
		_ = listener.Close()
		s.shut()
	})
	defer stop()
	var serving sync.WaitGroup
	for {
		conn, err := listener.Accept()
		if err != nil {
			s.shut()
			serving.Wait()
			counts := s.fanout.Counts()
			if ctx.Err() != nil {
				err = nil
			}
			return &counts, err
		}
		serving.Go(func() { s.serve(conn) })
	}
}

// server is a running reflector.
type server struct {
	fanout *Fanout[[]byte]

	mu     sync.Mutex
	conns  map[net.Conn]bool
	closed bool
}

func (s *server) shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for conn := range s.conns {
		_ = conn.Close()
	}
}

func (s *server) enter(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.conns[conn] = true
	}
	return !s.closed
}

// serve reads a client's packets until its connection ends.
func (s *server) serve(conn net.Conn) {
	defer func() {
		_ = conn.Close()
		s.mu.Lock()
		delete(s.conns, conn)
		s.mu.Unlock()
	}()
	if !s.enter(conn) {
		return
	}
	own := s.fanout.Join()
	var writing sync.WaitGroup
	defer writing.Wait()
	defer s.fanout.Leave(own)
	writing.Go(func() {
		for packet := range own.Packets() {
			if _, err := conn.Write(packet); err != nil {
				_ = conn.Close()
				continue // drain the queue
			}
			s.fanout.Sent(len(packet))
		}
	})
	var counts tcp.Counts
	r := tcp.NewReader(conn, &counts)
	for {
		_, packet, err := readPacket(r)
		if err != nil {
			_ = conn.Close()
			return
		}
		s.fanout.Spread(own, packet, len(packet))
	}
}
