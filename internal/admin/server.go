package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Timeouts of connections. The requests of this listener have no bodies worth naming.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	// writeTimeout is longer than the longest profile that anybody takes (/debug/pprof/profile?seconds=120), and bounds readers that stop.
	writeTimeout = 5 * time.Minute
	idleTimeout  = time.Minute
)

// Server is an HTTP server on one listener.
type Server struct {
	http     *http.Server
	listener net.Listener
	// ended is closed when the serving goroutine has ended, with failure set before.
	ended   chan struct{}
	failure error
}

// Start listens on the address and serves the handler until Stop.
func Start(address string, handler http.Handler) (*Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for operators: %w", err)
	}
	s := &Server{
		http: &http.Server{
			Handler:           handler,
			ReadHeaderTimeout: headerTimeout,
			ReadTimeout:       readTimeout,
			WriteTimeout:      writeTimeout,
			IdleTimeout:       idleTimeout,
		},
		listener: listener,
		ended:    make(chan struct{}),
	}
	go s.serve()
	return s, nil
}

func (s *Server) serve() {
	defer close(s.ended)
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		s.failure = fmt.Errorf("serve operators: %w", err)
	}
}

// Address is where the server listens; it tells the port where the configured one was 0.
func (s *Server) Address() net.Addr { return s.listener.Addr() }

// Ended is closed when the server has stopped, by Stop or by a failure that Stop returns.
func (s *Server) Ended() <-chan struct{} { return s.ended }

// Stop takes no new requests, lets those under way finish until the context ends, and cuts off what is left then. It returns when nothing
// is served any more. More calls do nothing but wait.
func (s *Server) Stop(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		// Cutting off is what was asked for.
		err = s.http.Close()
	}
	<-s.ended
	if s.failure != nil {
		return s.failure
	}
	return err
}
