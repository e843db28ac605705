package fabric

import (
	"context"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"
)

// The NATS server waits a second between two attempts to reach a seed, so nodes that start together would be ready
// after one or two seconds. Therefore this node tries itself, every seedInterval, and gives the seed to the server when
// a connection succeeds, or after seedTime.
const (
	seedInterval = 50 * time.Millisecond
	seedTime     = 5 * time.Second
	// seedTimeout bounds one attempt.
	seedTimeout = 500 * time.Millisecond
)

// seeds gives the seeds to a server.
type seeds struct {
	server *server.Server
	log    *zap.Logger

	mu      sync.Mutex
	options *server.Options
}

// reach gives a seed to the server when the seed accepts connections. reach returns when the context ends.
func (s *seeds) reach(ctx context.Context, seed string) {
	dialer := net.Dialer{Timeout: seedTimeout}
	ticker := time.NewTicker(seedInterval)
	defer ticker.Stop()
	for end := time.Now().Add(seedTime); time.Now().Before(end); {
		if c, err := dialer.DialContext(ctx, "tcp", seed); err == nil {
			_ = c.Close()
			break
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	s.options.Routes = append(s.options.Routes, &url.URL{Scheme: "nats-route", Host: seed})
	if err := s.server.ReloadOptions(s.options.Clone()); err != nil {
		s.log.Error("the NATS server does not connect to a seed", zap.String("seed", seed), zap.Error(err))
	}
}
