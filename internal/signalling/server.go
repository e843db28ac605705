package signalling

import (
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/pkg/signal"
)

// Credentials are the rights of a client according to its token. If a name is empty, the join may choose it.
type Credentials struct {
	Identity string
	Room     string
	Grants   sfu.Grants
	// Fingerprint identifies the token; each token has its own limits. Fingerprint is zero if the server asks for no
	// token.
	Fingerprint Fingerprint
	Token       admission.Token
}

// OwnsIdentity reports whether no other client can use the client's identity: the token names the identity, or the
// server asks for no token.
func (c *Credentials) OwnsIdentity() bool { return c.Identity != "" || c.Fingerprint == Fingerprint{} }

// Authenticator checks a client's token.
type Authenticator interface {
	// Authenticate returns the credentials, or an error whose text may be sent to the client.
	Authenticate(r *http.Request) (Credentials, error)
}

// AllowAll permits all clients to publish and subscribe, for development.
type AllowAll struct{}

// Authenticate implements Authenticator.
func (AllowAll) Authenticate(*http.Request) (Credentials, error) {
	return Credentials{Grants: sfu.Grants{Publish: true, Subscribe: true, Data: true, Admin: true}}, nil
}

// Metrics counts signalling messages and errors.
type Metrics interface {
	// SignallingMessage counts a message by direction, "in" or "out".
	SignallingMessage(direction string, t signal.Type)
	// SignallingError counts an error that was sent to a client.
	SignallingError(signal.Code)
}

// Server serves the websockets of signalling v1. A Server implements http.Handler.
type Server struct {
	config   Config
	locator  Locator
	auth     Authenticator
	metrics  Metrics
	log      *Log
	upgrader websocket.Upgrader
	tokens   TokenLimits
	joins    joinLimits
	// cluster is nil on a server that runs alone.
	cluster Cluster

	proxies proxies

	mu sync.Mutex
	// clients are the clients that have joined, nil without a cluster.
	clients map[*client]Client
}

// NewServer returns the handler for signal.Path. dev is set for servers that ask for no token and listen only on
// loopback, as in Config.Pages.
func NewServer(
	config Config, locator Locator, auth Authenticator, metrics Metrics, log *Log, dev bool,
) (*Server, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	s := &Server{
		config: config, locator: locator, auth: auth, metrics: metrics, log: log,
		tokens: NewTokenLimits(&config), joins: newJoinLimits(&config),
	}
	admitted := config.Pages(dev)
	s.upgrader = NewUpgrader(&config)
	s.upgrader.CheckOrigin = func(r *http.Request) bool {
		origin := r.Header.Get("Origin")
		return admitted.May(origin, r.Host) || s.cluster != nil && s.cluster.IsNode(origin)
	}
	return s, nil
}

// writeBuffers is the pool of write buffers. Each has writeBuffer bytes.
var writeBuffers sync.Pool

const writeBuffer = 16 << 10

// NewUpgrader returns an upgrader whose idle websockets hold little memory. They read with the HTTP server's buffer of
// 4 KiB and hold a write buffer only during a write. Own buffers of 16 KiB would be a fifth of a participant's memory.
func NewUpgrader(config *Config) websocket.Upgrader {
	return websocket.Upgrader{
		HandshakeTimeout: config.JoinTimeout, WriteBufferSize: writeBuffer, WriteBufferPool: &writeBuffers,
	}
}

// ServeHTTP implements http.Handler. It authenticates the client, upgrades the connection, and serves the client until
// its websocket ends.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.serve(w, r, false) }

// serve implements ServeHTTP. proxied reports that another node proxies the websocket to this node.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, proxied bool) {
	opened := time.Now()
	credentials, err := s.auth.Authenticate(r)
	if err != nil {
		s.metrics.SignallingError(signal.CodeUnauthorized)
		s.log.Refused(opened, r.RemoteAddr, "client refused", zap.Error(err))
		http.Error(w, string(signal.CodeUnauthorized)+": "+err.Error(), http.StatusUnauthorized)
		return
	}
	if err := s.tokens.Enter(credentials.Fingerprint, opened); err != nil {
		s.metrics.SignallingError(signal.CodeRateLimited)
		s.log.Refused(opened, r.RemoteAddr, "client refused", zap.Error(err))
		SetRetryAfter(w, err)
		http.Error(w, string(signal.CodeRateLimited)+": "+err.Error(), http.StatusTooManyRequests)
		return
	}
	defer s.tokens.Leave(credentials.Fingerprint)
	conn, err := Upgrade(&s.upgrader, w, r)
	if err != nil {
		s.log.Refused(opened, r.RemoteAddr, "upgrade to a websocket failed", zap.Error(err))
		return
	}
	c := &client{
		server:      s,
		conn:        conn,
		credentials: credentials,
		remote:      r.RemoteAddr,
		source:      SourceOf(r.RemoteAddr),
		outbox:      newOutbox(conn, &s.config, s.metrics),
		opened:      opened,
		proxied:     proxied,
	}
	if s.cluster != nil {
		c.bearer = bearerOf(r)
		c.outbox.welcome = &welcomer{cluster: s.cluster, grants: credentials.Grants}
	}
	c.serve()
}
