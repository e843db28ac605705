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

// headerTimeout bounds how long a scraper may take to ask.
const headerTimeout = 10 * time.Second

// Listener serves metrics at /metrics.
type Listener struct {
	registry *prometheus.Registry
	listener net.Listener
	server   *http.Server
	ended    chan struct{}
}

// Listen begins to serve metrics of a registry of its own, in which those of the Go runtime and the process are. Errors
// name the address.
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
			log.Warn("metrics are not served any more", "error", err)
		}
	}()
	return l, nil
}

// Registerer is where metrics are registered.
func (l *Listener) Registerer() prometheus.Registerer { return l.registry }

// Address is where metrics are served.
func (l *Listener) Address() string { return l.listener.Addr().String() }

// Close ends serving once what is under way is done, or the context ends.
func (l *Listener) Close(ctx context.Context) error {
	err := l.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, l.server.Close())
	}
	<-l.ended
	return err
}
