package timing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// headerTimeout is the limit for reading the header of a request.
const headerTimeout = 10 * time.Second

// Listener serves metrics at /metrics.
type Listener struct {
	registry *prometheus.Registry
	listener net.Listener
	server   *http.Server
	ended    chan struct{}
}

// Listen serves metrics of a new registry, which contains the metrics of the Go runtime and of the process. Errors name
// the address.
func Listen(address string, log *slog.Logger) (*Listener, error) {
	registry := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics of the process: %w", err)
		}
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	l := &Listener{
		registry: registry, listener: listener, server: &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout},
		ended: make(chan struct{}),
	}
	log.Info("metrics are served", "at", "http://"+listener.Addr().String()+"/metrics")
	go func() {
		defer close(l.ended)
		if err := l.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Warn("metrics are no longer served", "error", err)
		}
	}()
	return l, nil
}

// Registerer returns the registry of the listener.
func (l *Listener) Registerer() prometheus.Registerer { return l.registry }

// Address returns the address of the listener.
func (l *Listener) Address() string { return l.listener.Addr().String() }

// Close ends serving when active requests are done or the context ends.
func (l *Listener) Close(ctx context.Context) error {
	err := l.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, l.server.Close())
	}
	<-l.ended
	return err
}
