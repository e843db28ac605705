package fabric

import (
	"bytes"
	"context"
	"net"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"
)

// The NATS server waits a second between two attempts to reach a seed, and up to another second for an attempt whose
// first packet is lost. Nodes that start together would be ready after one or two seconds, and nodes that were apart
// would learn of each other as late. Therefore this node tries itself, with short attempts, and gives the seed to the
// server when an attempt succeeds: the server then connects at once.
const (
	// seedInterval is the time between two attempts at the start, for seedTime. The seed is then given to the server
	// in any case. returnInterval is the time between two attempts after a route was lost, for returnTime. Then the
	// time doubles up to goneInterval: the seed may be gone for good.
	seedInterval   = 50 * time.Millisecond
	seedTime       = 5 * time.Second
	returnInterval = 100 * time.Millisecond
	returnTime     = time.Minute
	goneInterval   = 5 * time.Second
	// seedTimeout bounds one attempt: a seed with a longer round trip is left to the NATS server.
	seedTimeout = 250 * time.Millisecond
	// watchInterval is the time between two examinations of the number of routes. NATS closes a silent route after 3 s.
	watchInterval = 500 * time.Millisecond
	// otherSide is the time for which a node leaves the connection to a seed that may connect to this node: two
	// connections at the same time would end each other.
	otherSide = 200 * time.Millisecond
)

// seeds gives the seeds to a server: at the start, and again when a seed can be reached after a route was lost.
type seeds struct {
	server *server.Server
	log    *zap.Logger
	ended  sync.WaitGroup

	mu      sync.Mutex
	options *server.Options
	// given has the number of times that each seed was given to the server.
	given map[string]int
	// routes is the number of routes at the last examination.
	routes int
}

// keep connects the server to seeds until the context ends.
func (s *seeds) keep(ctx context.Context, list []string) {
	reaching := make(map[string]chan struct{}, len(list))
	begin := func(seed string, interval, limit time.Duration) {
		done := make(chan struct{})
		reaching[seed] = done
		s.ended.Go(func() {
			defer close(done)
			s.reach(ctx, seed, interval, limit)
		})
	}
	for _, seed := range list {
		begin(seed, seedInterval, seedTime)
	}
	defer s.ended.Wait()
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if !s.lost() {
			continue
		}
		for _, seed := range list {
			select {
			case <-reaching[seed]:
				begin(seed, returnInterval, 0)
			default:
			}
		}
	}
}

// lost reports whether a route was lost since the last call.
func (s *seeds) lost() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.routes
	s.routes = s.server.NumRoutes()
	return s.routes < before
}

// reach gives a seed to the server when the seed accepts connections, or after a time limit, 0 for none. reach returns
// when the context ends.
func (s *seeds) reach(ctx context.Context, seed string, interval, limit time.Duration) {
	dialer := net.Dialer{Timeout: seedTimeout}
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for began := time.Now(); limit == 0 || time.Since(began) < limit; {
		if c, err := dialer.DialContext(ctx, "tcp", seed); err == nil {
			local, remote := c.LocalAddr().(*net.TCPAddr), c.RemoteAddr().(*net.TCPAddr)
			_ = c.Close()
			if limit == 0 && s.returns(ctx, local, remote) {
				return
			}
			break
		}
		if time.Since(began) > returnTime {
			interval = min(2*interval, goneInterval)
		}
		timer.Reset(interval)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
	}
	s.give(ctx, seed)
}

// returns reports whether the server has a route to a seed that can be reached again, also after the time in which the
// seed connects to this node.
func (s *seeds) returns(ctx context.Context, local, remote *net.TCPAddr) bool {
	if s.isLater(local, remote) {
		select {
		case <-time.After(otherSide):
		case <-ctx.Done():
		}
	}
	return s.hasRoute(remote.IP)
}

// isLater reports whether this node leaves the connection to the node at the other end of a connection. Of two nodes
// one does so.
func (s *seeds) isLater(local, remote *net.TCPAddr) bool {
	if order := bytes.Compare(local.IP.To16(), remote.IP.To16()); order != 0 {
		return order > 0
	}
	return s.server.ClusterAddr().Port > remote.Port
}

// hasRoute reports whether the server has a route to an address, in either direction. Several nodes at one address
// count as one: the NATS server itself then connects the others.
func (s *seeds) hasRoute(address net.IP) bool {
	routes, err := s.server.Routez(nil)
	if err != nil {
		return false
	}
	for _, r := range routes.Routes {
		if address.Equal(net.ParseIP(r.IP)) {
			return true
		}
	}
	return false
}

// give gives a seed to the server, which connects to the seed at once. The server connects again only to an address
// that differs from the former one, therefore the address has a number. The server closes the connections of the
// former address.
func (s *seeds) give(ctx context.Context, seed string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	address := &url.URL{Scheme: "nats-route", Host: seed}
	if n := s.given[seed]; n > 0 {
		address.Fragment = strconv.Itoa(n)
	}
	s.given[seed]++
	var routes []*url.URL
	for _, present := range s.options.Routes {
		if present.Host != seed {
			routes = append(routes, present)
		}
	}
	s.options.Routes = append(routes, address)
	if err := s.server.ReloadOptions(s.options.Clone()); err != nil {
		s.log.Error("the NATS server does not connect to a seed", zap.String("seed", seed), zap.Error(err))
	}
}
