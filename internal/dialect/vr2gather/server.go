package vr2gather

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/internal/signalling"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// The paths of VR2Gather peers, as patterns of http.ServeMux.
const (
	Path     = vr2gather.WebsocketPath
	RoomPath = "/r/{" + roomInPath + "}" + vr2gather.WebsocketPath

	roomInPath = "room"
)

// Server serves the websockets of the VR2Gather dialect. A Server implements http.Handler for both paths.
type Server struct {
	config   Config
	limits   signalling.Config
	locator  signalling.Locator
	auth     signalling.Authenticator
	metrics  signalling.Metrics
	log      *signalling.Log
	upgrader websocket.Upgrader
	tokens   signalling.TokenLimits
	// pages has the web pages that may connect without a token. It is nil if a token is required.
	pages    *signalling.Pages
	presence *presence
	// delays delays the answers to refused requests, per address.
	delays signalling.RefusalDelays
	// refused counts refused peers, ignored counts ignored parts of quality messages.
	refused, ignored atomic.Uint64
}

// NewServer returns the handler. limits are the limits of signalling v1. auth is not used if the configuration requires
// no token. dev is set for servers that listen only on loopback, whose auth asks for no token.
func NewServer(
	config Config, limits signalling.Config, locator signalling.Locator, auth signalling.Authenticator,
	metrics signalling.Metrics, log *signalling.Log, dev bool,
) (*Server, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if err := limits.Validate(); err != nil {
		return nil, err
	}
	var admitted *signalling.Pages
	if !config.RequireToken {
		auth = signalling.AllowAll{}
	}
	if dev || !config.RequireToken {
		admitted = &signalling.Pages{Allowed: limits.AllowedOrigins, Local: true, Rebound: dev}
	}
	s := &Server{
		config: config, limits: limits, locator: locator, auth: auth, metrics: metrics, log: log, pages: admitted,
		presence: newPresence(), upgrader: signalling.NewUpgrader(&limits),
		tokens: signalling.NewTokenLimits(&limits), delays: signalling.NewRefusalDelays(&limits),
	}
	// Peers are not browsers, and some of them send an origin. A required token is sufficient. If no token is required,
	// ServeHTTP has checked the origin.
	s.upgrader.CheckOrigin = func(*http.Request) bool { return true }
	return s, nil
}

// Refused returns the number of peers that were refused before their join or because of a message.
func (s *Server) Refused() uint64 { return s.refused.Load() }

// Ignored returns the number of parts of quality messages that are malformed or name clients, tiles or qualities that
// do not exist.
func (s *Server) Ignored() uint64 { return s.ignored.Load() }

// ServeHTTP implements http.Handler. It serves the peer until its websocket ends.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	opened := time.Now()
	log := s.log.With(zap.String("remote", r.RemoteAddr), zap.String("dialect", "vr2gather"))
	credentials, err := s.auth.Authenticate(r)
	if err != nil {
		s.reject(w, r, http.StatusUnauthorized, signal.CodeUnauthorized, err.Error())
		return
	}
	if origin := r.Header.Get("Origin"); s.pages != nil && !s.pages.May(origin, r.Host) {
		s.reject(w, r, http.StatusForbidden, signal.CodeForbidden,
			fmt.Sprintf("web pages of %.100q may not connect without a token", origin))
		return
	}
	query, err := s.query(r)
	if err != nil {
		s.reject(w, r, http.StatusBadRequest, signal.CodeInvalid, err.Error())
		return
	}
	room, identity := s.roomOf(r), identityOf(query.Client)
	for _, of := range []struct{ what, granted, asked string }{
		{"room", credentials.Room, room}, {"identity", credentials.Identity, identity},
	} {
		if of.granted != "" && of.granted != of.asked {
			s.reject(w, r, http.StatusForbidden, signal.CodeForbidden, "the token is for another "+of.what)
			return
		}
	}
	if err := volumetric.ValidateName("room", room); err != nil {
		s.reject(w, r, http.StatusBadRequest, signal.CodeInvalid, err.Error())
		return
	}
	if err := s.tokens.Enter(credentials.Fingerprint, opened); err != nil {
		signalling.SetRetryAfter(w, err)
		s.reject(w, r, http.StatusTooManyRequests, signal.CodeRateLimited, err.Error())
		return
	}
	defer s.tokens.Leave(credentials.Fingerprint)
	conn, err := signalling.Upgrade(&s.upgrader, w, r)
	if err != nil {
		s.log.Refused(opened, r.RemoteAddr, "upgrade to a websocket failed", zap.String("dialect", "vr2gather"),
			zap.Error(err))
		return
	}
	c := &client{
		server: s, conn: conn, opened: opened, remote: r.RemoteAddr, query: query, place: place{room, query.Client},
		signs: newSigns(), gone: make(chan struct{}),
		log: log.With(zap.String("room", room), zap.Uint32("client", query.Client)),
	}
	c.serve(sfu.JoinRequest{
		Join: &signal.Join{
			Version: signal.Version, Receive: true, Publications: publicationsOf(query),
			BitrateLimits: signal.BitrateLimits{Min: s.config.MinBitrate},
		},
		Room: room, Identity: identity, Grants: credentials.Grants, At: opened,
		Profile: &profile, Number: &query.Client, Token: credentials.Token,
		Bearer:       signalling.BearerOf(credentials.Fingerprint, signalling.SourceOf(r.RemoteAddr)),
		OwnsIdentity: credentials.Identity != "",
	})
}

// reject refuses a peer before the upgrade to a websocket.
func (s *Server) reject(
	w http.ResponseWriter, r *http.Request, status int, code signal.Code, reason string,
) {
	s.refused.Add(1)
	s.metrics.SignallingError(code)
	s.log.Refused(time.Now(), r.RemoteAddr, "VR2Gather peer refused",
		zap.String("dialect", "vr2gather"), zap.String("code", string(code)), zap.String("reason", reason))
	if !s.delays.Wait(r.Context().Done(), r.RemoteAddr) {
		return
	}
	http.Error(w, string(code)+": "+reason, status)
}

// query parses the query parameters of a peer.
func (s *Server) query(r *http.Request) (vr2gather.Query, error) {
	values := r.URL.Query()
	query, err := vr2gather.ParseQuery(values, s.config.Tiles)
	if err == nil && values.Get("nqualities") == "" {
		query.Qualities = s.config.Qualities
	}
	return query, err
}

// roomOf returns the room of a request.
func (s *Server) roomOf(r *http.Request) string {
	if room := r.PathValue(roomInPath); room != "" {
		return room
	}
	if s.config.RoomByHost {
		return r.Host
	}
	return s.config.DefaultRoom
}
