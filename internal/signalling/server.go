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

// Credentials are what a token says of a client. Empty names leave the choice to the join.
type Credentials struct {
	Identity string
	Room     string
	Grants   sfu.Grants
	// Fingerprint tells tokens apart, of which each opens so many websockets. It is zero if nobody is asked for a
	// token.
	Fingerprint Fingerprint
	Token       admission.Token
}

// ownsIdentity reports whether the client's identity is the client's own: its token names the identity, or nobody is
// asked for a token.
func (c *Credentials) ownsIdentity() bool { return c.Identity != "" || c.Fingerprint == Fingerprint{} }

// Authenticator checks a client's token.
type Authenticator interface {
	// Authenticate gives the credentials, or an error whose text may be told to the client.
	Authenticate(r *http.Request) (Credentials, error)
}

// AllowAll lets everybody do everything, for development.
type AllowAll struct{}

// Authenticate implements Authenticator.
func (AllowAll) Authenticate(*http.Request) (Credentials, error) {
	return Credentials{Grants: sfu.Grants{Publish: true, Subscribe: true}}, nil
}

// Metrics is what signalling counts.
type Metrics interface {
	// SignallingMessage counts a message by direction, "in" or "out".
	SignallingMessage(direction string, t signal.Type)
	// SignallingError counts an error that a client was told.
	SignallingError(signal.Code)
}

// Server takes websockets of signalling v1. It implements http.Handler.
type Server struct {
	config   Config
	locator  Locator
	auth     Authenticator
	metrics  Metrics
	log      *Log
	upgrader websocket.Upgrader
	tokens   TokenLimits
	joins    joinLimits
}

// NewServer makes the handler for signal.Path. With dev, for servers that ask nobody for a token and listen on
// loopback alone, web pages of this host may connect whatever is configured, and no page may that has its own name
// resolved to this host.
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
	admitted := Pages{Allowed: config.AllowedOrigins, Local: dev, Rebound: dev}
	s.upgrader = NewUpgrader(&config)
	s.upgrader.CheckOrigin = func(r *http.Request) bool { return admitted.May(r.Header.Get("Origin"), r.Host) }
	return s, nil
}

// writeBuffers are what messages are written from. Each has writeBuffer bytes.
var writeBuffers sync.Pool

const writeBuffer = 16 << 10

// NewUpgrader makes an upgrader whose websockets hold little memory while they are idle: they read with the buffer of
// 4 KiB that the HTTP server has for the connection, and have a buffer to write from only while they write. Buffers of
// 16 KiB of their own would be a fifth of what a participant takes.
func NewUpgrader(config *Config) websocket.Upgrader {
	return websocket.Upgrader{
		HandshakeTimeout: config.JoinTimeout, WriteBufferSize: writeBuffer, WriteBufferPool: &writeBuffers,
	}
}

// ServeHTTP implements http.Handler: it authenticates, upgrades, and serves the client until its websocket ends.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
	conn, err := s.upgrader.Upgrade(w, r, nil)
	if err != nil {
		s.log.Refused(opened, r.RemoteAddr, "no websocket", zap.Error(err))
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
	}
	c.serve()
}
