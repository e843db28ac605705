package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Timeouts of connections. Requests to this listener have small bodies, if any.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	// writeTimeout exceeds the duration of the longest usual profile (/debug/pprof/profile?seconds=120), and bounds
	// clients that stop reading.
	writeTimeout = 5 * time.Minute
	idleTimeout  = time.Minute
)

// Server is an HTTP server on one listener.
type Server struct {
	http     *http.Server
	listener net.Listener
	// ended is closed when the serving goroutine has ended; failure is set before.
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

// Address returns the listening address, with the actual port.
func (s *Server) Address() net.Addr { return s.listener.Addr() }

// Ended is closed when the server has stopped, by Stop or by a failure that Stop returns.
func (s *Server) Ended() <-chan struct{} { return s.ended }

// Stop accepts no new requests, waits for current ones until the context ends, and then closes their connections. Stop
// returns when no request is served any more. Further calls only wait.
func (s *Server) Stop(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		// Closing connections after the context has ended is intended.
		err = s.http.Close()
	}
	<-s.ended
	if s.failure != nil {
		return s.failure
	}
	return err
}
