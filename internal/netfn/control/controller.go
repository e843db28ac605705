package control

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/net/netutil"

	"github.com/volsfu/volsfu/internal/auth"
	"github.com/volsfu/volsfu/internal/transport/ratelimit"
)

const (
	// pollHold is the time for which a poll without orders is held. It is also the interval at which the controller
	// receives the state of an idle edge.
	pollHold = 5 * time.Second
	// controllerConnections is the maximum number of connections at once: two of each edge, and those of operators.
	controllerConnections = 4 * maxEdges
	// requestRate and requestBurst limit the requests of one address. An edge polls once in five seconds: 100 edges
	// behind one NAT send 20 requests per second.
	requestRate, requestBurst = 20, 60
)

// ControllerConfig configures a controller.
type ControllerConfig struct {
	// Listen is the address, HOST:PORT or :PORT.
	Listen string
	// TLSCert and TLSKey are PEM files: the certificate chain and its private key.
	TLSCert, TLSKey string
	// State is the file of the orders; "" keeps them in memory only.
	State string
	// Keys verify the tokens of edges and operators.
	Keys *auth.Keyring
}

// Controller holds the orders for edges and the states of edges.
type Controller struct {
	keys   *auth.Keyring
	state  string
	log    *zap.Logger
	server *http.Server
	// address is the listening address with the actual port.
	address net.Addr
	// failed receives the error of the listener.
	failed chan error
	// hold is pollHold, and shorter in tests.
	hold    time.Duration
	sources *ratelimit.SharedSources

	mu     sync.Mutex
	ledger *ledger
	// changed has a channel per edge, which is closed at the next order for the edge or poll of the edge.
	changed map[string]chan struct{}
}

// StartController reads the orders of the state file and serves until Stop.
func StartController(config ControllerConfig, log *zap.Logger) (*Controller, error) {
	return startController(config, pollHold, log)
}

func startController(config ControllerConfig, hold time.Duration, log *zap.Logger) (*Controller, error) {
	certificate, err := tls.LoadX509KeyPair(config.TLSCert, config.TLSKey)
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	c := &Controller{
		keys: config.Keys, state: config.State, log: log, failed: make(chan error, 1), hold: hold,
		sources: ratelimit.NewSharedSources(requestRate, requestBurst),
		ledger:  newLedger(), changed: make(map[string]chan struct{}),
	}
	if c.state != "" {
		if err := c.ledger.load(c.state); err != nil {
			return nil, err
		}
	}
	listener, err := net.Listen("tcp", config.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen for edges: %w", err)
	}
	c.address = listener.Addr()
	c.server = newServer(c.limited(c.handler()))
	c.server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	// With one request per connection at a time, the number of connections bounds the memory.
	c.server.Protocols = new(http.Protocols)
	c.server.Protocols.SetHTTP1(true)
	// Strangers who fail to connect must not fill the log.
	c.server.ErrorLog = stdlog.New(io.Discard, "", 0)
	go func() {
		err := c.server.ServeTLS(netutil.LimitListener(listener, controllerConnections), "", "")
		if !errors.Is(err, http.ErrServerClosed) {
			c.failed <- fmt.Errorf("serve edges: %w", err)
		}
	}()
	return c, nil
}

// Address returns the listening address, with the actual port.
func (c *Controller) Address() net.Addr { return c.address }

// Failed receives the error that ends the controller before Stop.
func (c *Controller) Failed() <-chan error { return c.failed }

// Stop closes all connections.
func (c *Controller) Stop() error { return c.server.Close() }

// limited refuses the requests of an address that sends too many, before their tokens are read.
func (c *Controller) limited(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// An address that cannot be parsed is the zero address, which is one source.
		remote, _ := netip.ParseAddrPort(r.RemoteAddr)
		if !c.sources.TakeAll(remote.Addr(), 1, time.Now()) {
			w.Header().Set("Retry-After", "1")
			refuse(w, fmt.Errorf("%w from this address, expected at most %d per second", ErrLimited, requestRate))
			return
		}
		inner.ServeHTTP(w, r)
	})
}

func (c *Controller) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/edges/{edge}/poll", c.asEdge(c.poll))
	mux.HandleFunc("GET /v1/edges", c.asOperator(c.list))
	mux.HandleFunc("GET /v1/edges/{edge}", c.asOperator(c.show))
	mux.HandleFunc("POST /v1/edges/{edge}/orders", c.asOperator(c.order))
	mux.HandleFunc("DELETE /v1/edges/{edge}", c.asOperator(c.forget))
	return mux
}

// handlerFunc serves a request or returns an error for its answer.
type handlerFunc func(w http.ResponseWriter, r *http.Request) error

// asEdge admits the edge that the path names.
func (c *Controller) asEdge(serve handlerFunc) http.HandlerFunc {
	return c.as(func(claims auth.Claims, r *http.Request) error {
		if name := r.PathValue("edge"); !claims.Edge || claims.Identity != name {
			return fmt.Errorf("%w: expected a token with the grant edge and the identity %.80q", ErrForbidden, name)
		}
		return nil
	}, serve)
}

// asOperator admits operators.
func (c *Controller) asOperator(serve handlerFunc) http.HandlerFunc {
	return c.as(func(claims auth.Claims, _ *http.Request) error {
		if !claims.Admin {
			return fmt.Errorf("%w: expected a token with the grant admin", ErrForbidden)
		}
		return nil
	}, serve)
}

// as verifies the token of a request.
func (c *Controller) as(permit func(auth.Claims, *http.Request) error, serve handlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token, err := auth.TokenFromRequest(r)
		var claims auth.Claims
		if err == nil {
			claims, err = c.keys.Verify(token, time.Now())
		}
		if err != nil {
			refuse(w, fmt.Errorf("%w: %w", ErrUnauthorized, err))
			return
		}
		if err = permit(claims, r); err == nil {
			err = serve(w, r)
		}
		if err != nil {
			refuse(w, err)
		}
	}
}

// poll records the state of an edge and answers with its pending orders. Without orders the answer is held.
func (c *Controller) poll(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("edge")
	if !validName(name) {
		return fmt.Errorf("%w: edge is %.80q, expected 1 to %d printable characters", ErrRequest, name, maxNameBytes)
	}
	var p poll
	if err := readBody(w, r, maxStatusBytes, &p); err != nil {
		return err
	}
	if err := p.validate(); err != nil {
		return err
	}
	c.mu.Lock()
	orders, first, err := c.ledger.poll(name, r.RemoteAddr, p, time.Now())
	if err != nil {
		c.mu.Unlock()
		return err
	}
	// Operators who wait for results, and the former poll of this edge.
	c.wake(name)
	// The first answer tells the edge at once that it is connected.
	var changed <-chan struct{}
	if len(orders) == 0 && !first {
		changed = c.next(name)
	}
	c.mu.Unlock()
	if changed != nil {
		if !await(r.Context(), changed, time.NewTimer(c.hold)) {
			return r.Context().Err()
		}
		c.mu.Lock()
		if e, err := c.ledger.edge(name); err == nil {
			orders = e.pending(time.Now())
		}
		c.mu.Unlock()
	}
	reply(w, http.StatusOK, answer{orders})
	return nil
}

// next returns the channel that is closed at the next change of an edge. The caller holds the mutex.
func (c *Controller) next(name string) <-chan struct{} {
	if c.changed[name] == nil {
		c.changed[name] = make(chan struct{})
	}
	return c.changed[name]
}

// wake ends the waits for a change of an edge. The caller holds the mutex.
func (c *Controller) wake(name string) {
	if changed := c.changed[name]; changed != nil {
		close(changed)
		delete(c.changed, name)
	}
}

// await waits for a change or the end of the timer, and reports whether the client is still there.
func await(ctx context.Context, changed <-chan struct{}, timer *time.Timer) bool {
	defer timer.Stop()
	select {
	case <-changed:
		return true
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (c *Controller) list(w http.ResponseWriter, _ *http.Request) error {
	states, err := c.states()
	if err != nil {
		return err
	}
	reply(w, http.StatusOK, edgeList{states})
	return nil
}

// states returns the states of all edges. An operator that reads slowly must not hold the mutex.
func (c *Controller) states() ([]EdgeState, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	states := make([]EdgeState, 0, len(c.ledger.edges))
	for _, name := range c.ledger.names() {
		state, err := c.ledger.state(name, time.Now())
		if err != nil {
			return nil, err
		}
		states = append(states, state)
	}
	return states, nil
}

// edgeList is the answer with all edges.
type edgeList struct {
	Edges []EdgeState `json:"edges"`
}

func (c *Controller) show(w http.ResponseWriter, r *http.Request) error {
	c.mu.Lock()
	state, err := c.ledger.state(r.PathValue("edge"), time.Now())
	c.mu.Unlock()
	if err != nil {
		return err
	}
	reply(w, http.StatusOK, state)
	return nil
}

// order adds an order and waits for its result if the edge is connected. The answer has the state Pending if there is
// no result yet.
func (c *Controller) order(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("edge")
	var o Order
	if err := readBody(w, r, maxOrderBytes, &o); err != nil {
		return err
	}
	id, err := c.add(name, o)
	if err != nil {
		return err
	}
	c.log.Info("order of an operator", append(orderFields(o), zap.String("edge", name), zap.String("id", id),
		zap.String("remote", r.RemoteAddr))...)
	deadline := time.Now().Add(c.hold)
	for {
		state, connected, next, err := c.outcome(name, id)
		switch left := time.Until(deadline); {
		case err != nil:
			return err
		case state != Pending:
			reply(w, http.StatusOK, outcome{id, state})
			return nil
		case !connected || left <= 0:
			reply(w, http.StatusAccepted, outcome{id, state})
			return nil
		case !await(r.Context(), next, time.NewTimer(left)):
			return r.Context().Err()
		}
	}
}

// outcome returns the state of an order, whether its edge is connected, and the channel that is closed at the next
// change.
func (c *Controller) outcome(name, id string) (state string, connected bool, next <-chan struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state, err = c.ledger.outcome(name, id); err != nil {
		return "", false, nil, err
	}
	edge, err := c.ledger.state(name, time.Now())
	return state, edge.Connected, c.next(name), err
}

// add adds an order, writes the file and wakes the poll of the edge.
func (c *Controller) add(name string, o Order) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	id, err := c.ledger.order(name, o, now)
	if err != nil {
		return "", err
	}
	c.save(now)
	c.wake(name)
	return id, nil
}

func (c *Controller) forget(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("edge")
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.ledger.forget(name); err != nil {
		return err
	}
	c.save(time.Now())
	c.wake(name)
	c.log.Info("edge forgotten", zap.String("edge", name), zap.String("remote", r.RemoteAddr))
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// save writes the orders. An order that cannot be written is carried out, but a controller that starts again does not
// have it. The caller holds the mutex.
func (c *Controller) save(now time.Time) {
	if c.state == "" {
		return
	}
	if err := c.ledger.save(c.state, now); err != nil {
		c.log.Error("the orders are in memory only", zap.Error(err))
	}
}
