package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/netfn/control"
	"github.com/volsfu/volsfu/internal/netfn/edge"
	"github.com/volsfu/volsfu/internal/netfn/metrics"
)

const (
	// closeTimeout is the time limit for active requests at the end.
	closeTimeout = 2 * time.Second
	// scrapesAtOnce permits one Prometheus, a second one and a person at the same time.
	scrapesAtOnce = 4
	// scrapeTimeout is Prometheus's default; after that the scraper has disconnected.
	scrapeTimeout = 10 * time.Second
)

// Daemon is a running edge with its listeners.
type Daemon struct {
	config  *edge.Config
	version string
	log     *zap.Logger
	edge    *edge.Edge
	leases  *leases
	// running ends with the edge; stop ends it.
	running context.Context
	stop    context.CancelFunc
	// ended is closed when nothing of the edge is left; failure is set before.
	ended   chan struct{}
	failure error

	socket   *control.Local
	link     *control.Link
	metrics  *http.Server
	scraped  net.Listener
	services sync.WaitGroup
}

// SocketPath returns the path of the socket of an edge.
func SocketPath(c *edge.Config) string { return filepath.Join(c.State, c.Name+".sock") }

// Start attaches the edge and opens its listeners. If Start fails, nothing is attached.
func Start(config *edge.Config, version string, log *zap.Logger) (*Daemon, error) {
	d := &Daemon{config: config, version: version, log: log, ended: make(chan struct{})}
	d.running, d.stop = context.WithCancel(context.Background())
	if err := d.prepare(); err != nil {
		return nil, err
	}
	var err error
	if d.edge, err = edge.New(config, log); err != nil {
		d.closeListeners()
		return nil, err
	}
	if d.socket, err = control.Listen(SocketPath(config), d, log); err != nil {
		d.closeListeners()
		d.stop()
		return nil, errors.Join(err, d.edge.Run(d.running))
	}
	return d, nil
}

// prepare opens what can fail before the edge is attached.
func (d *Daemon) prepare() error {
	d.leases = newLeases(ruleNames(d.config), d.apply)
	if c := d.config.Controller; c != nil {
		link, err := control.NewLink(c.URL, c.TokenFile, d.config.Name, d, d.log)
		if err != nil {
			return err
		}
		d.link = link
	}
	if d.config.MetricsListen == "" {
		return nil
	}
	registry := prometheus.NewRegistry()
	if err := metrics.Register(registry, d.version, d); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", d.config.MetricsListen)
	if err != nil {
		return fmt.Errorf("listen for metrics: %w", err)
	}
	d.scraped = listener
	d.metrics = &http.Server{
		Handler:           metricsHandler(registry),
		ReadHeaderTimeout: scrapeTimeout,
		ReadTimeout:       scrapeTimeout,
		WriteTimeout:      2 * scrapeTimeout,
		IdleTimeout:       time.Minute,
	}
	return nil
}

func metricsHandler(registry *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: scrapesAtOnce,
		Timeout:             scrapeTimeout,
	}))
	return mux
}

func (d *Daemon) closeListeners() {
	if d.scraped != nil {
		_ = d.scraped.Close()
	}
}

// Run serves until the context ends or the edge is detached, and then removes everything of the edge. Call Run once.
func (d *Daemon) Run(ctx context.Context) error {
	defer context.AfterFunc(ctx, d.stop)()
	if d.metrics != nil {
		d.services.Go(func() {
			if err := d.metrics.Serve(d.scraped); !errors.Is(err, http.ErrServerClosed) {
				d.log.Error("the listener of the metrics failed", zap.Error(err))
			}
		})
	}
	if d.link != nil {
		d.services.Go(func() { d.link.Run(d.running) })
	}
	d.failure = d.edge.Run(d.running)
	close(d.ended)
	d.stop()
	d.leases.close()
	closing, end := context.WithTimeout(context.Background(), closeTimeout)
	defer end()
	err := d.socket.Close(closing)
	if d.metrics != nil {
		err = errors.Join(err, d.metrics.Close())
	}
	d.services.Wait()
	if err != nil {
		d.log.Warn("the listeners did not close", zap.Error(err))
	}
	return d.failure
}
