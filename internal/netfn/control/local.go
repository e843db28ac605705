package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"

	"go.uber.org/zap"
	"golang.org/x/net/netutil"
)

// localConnections is the maximum number of connections of a socket at once.
const localConnections = 16

// Local is the API of one edge on a unix socket.
type Local struct {
	edge   Edge
	log    *zap.Logger
	server *http.Server
	served sync.WaitGroup
}

// Listen opens the API of an edge on a unix socket, for the owner and the group of the file. A socket that a dead edge
// left behind is replaced: the caller holds the lock of the edge.
func Listen(path string, edge Edge, log *zap.Logger) (*Local, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("replace the socket of a dead edge: %w", err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("open the socket: %w", err)
	}
	if err := os.Chmod(path, 0o660); err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("open the socket: %w", err)
	}
	l := &Local{edge: edge, log: log}
	l.server = newServer(l.handler())
	// Detaching lasts as long as the kernel needs.
	l.server.WriteTimeout = 0
	l.served.Go(func() {
		if err := l.server.Serve(netutil.LimitListener(listener, localConnections)); !errors.Is(err,
			http.ErrServerClosed) {
			log.Error("the socket failed", zap.Error(err))
		}
	})
	return l, nil
}

// handler serves the requests. The permissions of the socket decide about access.
func (l *Local) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", l.status)
	mux.HandleFunc("POST /v1/orders", l.order)
	mux.HandleFunc("POST /v1/detach", l.detach)
	return mux
}

func (l *Local) status(w http.ResponseWriter, _ *http.Request) {
	status, err := l.edge.Status()
	if err != nil {
		refuse(w, err)
		return
	}
	reply(w, http.StatusOK, status)
}

func (l *Local) order(w http.ResponseWriter, r *http.Request) {
	var o Order
	err := readBody(w, r, maxOrderBytes, &o)
	if err == nil {
		err = o.Validate()
	}
	if err == nil {
		err = l.edge.Apply(o)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	l.log.Info("order from the socket", orderFields(o)...)
	reply(w, http.StatusOK, outcome{State: Applied})
}

func (l *Local) detach(w http.ResponseWriter, r *http.Request) {
	l.log.Info("detaching, as the socket asks")
	if err := l.edge.Detach(r.Context()); err != nil {
		refuse(w, err)
		return
	}
	reply(w, http.StatusOK, outcome{State: Applied})
}

// Close waits for the answers to current requests until the context ends, and removes the socket.
func (l *Local) Close(ctx context.Context) error {
	err := l.server.Shutdown(ctx)
	if err != nil {
		err = l.server.Close()
	}
	l.served.Wait()
	return err
}

// outcome is the answer to an order.
type outcome struct {
	ID    string `json:"id,omitempty"`
	State string `json:"state"`
}

func orderFields(o Order) []zap.Field {
	return []zap.Field{zap.String("rule", o.Rule), zap.String("copies", o.Copies), zap.String("trigger", o.Trigger),
		zap.Duration("for", o.For.value())}
}
