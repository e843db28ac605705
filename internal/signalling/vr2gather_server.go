package signalling

import (
	"fmt"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// The paths of VR2Gather's peers, as patterns of http.ServeMux.
const (
	VR2GatherPath     = vr2gather.WebsocketPath
	VR2GatherRoomPath = "/r/{" + roomInPath + "}" + vr2gather.WebsocketPath

	roomInPath = "room"
)

// VR2GatherServer takes websockets of VR2Gather's dialect. It implements http.Handler, for both paths.
type VR2GatherServer struct {
	config   VR2GatherConfig
	limits   Config
	locator  Locator
	auth     Authenticator
	metrics  Metrics
	log      *Log
	upgrader websocket.Upgrader
	tokens   bearers
	// pages are who may connect where no token is asked for, nil where a token is all that it takes.
	pages    *pages
	presence *vr2GatherPresence
	// answers delays the answers to what is refused, per address.
	answers *crowd[netip.Prefix]
	refused atomic.Uint64
}

// NewVR2GatherServer makes the handler. The limits are those of signalling v1; the authenticator is not asked where the configuration requires no token. With dev,
// for servers that listen on loopback alone, it asks for none either.
func NewVR2GatherServer(
	config VR2GatherConfig, limits Config, locator Locator, auth Authenticator, metrics Metrics, log *Log, dev bool,
) (*VR2GatherServer, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if err := limits.Validate(); err != nil {
		return nil, err
	}
	var admitted *pages
	if !config.RequireToken {
		auth = AllowAll{}
	}
	if dev || !config.RequireToken {
		admitted = &pages{allowed: limits.AllowedOrigins, local: true, rebound: dev}
	}
	s := &VR2GatherServer{
		config: config, limits: limits, locator: locator, auth: auth, metrics: metrics, log: log, pages: admitted,
		presence: newVR2GatherPresence(), upgrader: newUpgrader(&limits),
		tokens: newBearers(&limits), answers: newCrowd[netip.Prefix](limits.addressLimits()),
	}
	// The peers are no browsers, and some of them send an origin. If a token is required, the token is enough. If none is,
	// ServeHTTP has checked the origin.
	s.upgrader.CheckOrigin = func(*http.Request) bool { return true }
	return s, nil
}

// Refused counts the peers that were refused, at the door or for what they said.
func (s *VR2GatherServer) Refused() uint64 { return s.refused.Load() }

// ServeHTTP implements http.Handler: it serves the peer until its websocket ends.
func (s *VR2GatherServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	opened := time.Now()
	log := s.log.With(zap.String("remote", r.RemoteAddr), zap.String("dialect", "vr2gather"))
	credentials, err := s.auth.Authenticate(r)
	if err != nil {
		s.turnAway(w, r, http.StatusUnauthorized, signal.CodeUnauthorized, err.Error())
		return
	}
	if origin := r.Header.Get("Origin"); s.pages != nil && !s.pages.may(origin, r.Host) {
		s.turnAway(w, r, http.StatusForbidden, signal.CodeForbidden,
			fmt.Sprintf("no token is asked for, and the request comes from a page of %.100q", origin))
		return
	}
	query, err := s.query(r)
	if err != nil {
		s.turnAway(w, r, http.StatusBadRequest, signal.CodeInvalid, err.Error())
		return
	}
	room, identity := s.roomOf(r), sfu.VR2GatherIdentity(query.Client)
	for _, of := range []struct{ what, granted, asked string }{{"room", credentials.Room, room}, {"identity", credentials.Identity, identity}} {
		if of.granted != "" && of.granted != of.asked {
			s.turnAway(w, r, http.StatusForbidden, signal.CodeForbidden, "the token is for another "+of.what)
			return
		}
	}
	if err := volumetric.ValidateName("room", room); err != nil {
		s.turnAway(w, r, http.StatusBadRequest, signal.CodeInvalid, err.Error())
		return
	}
	if err := s.tokens.enter(credentials.Fingerprint, opened); err != nil {
		refuseCrowded(w, err)
		s.turnAway(w, r, http.StatusTooManyRequests, signal.CodeRateLimited, err.Error())
		return
	}
	defer s.tokens.leave(credentials.Fingerprint)
	conn, err := s.upgrader.Upgrade(w, r, nil)
	if err != nil {
		s.log.Refused(opened, r.RemoteAddr, "no websocket", zap.String("dialect", "vr2gather"), zap.Error(err))
		return
	}
	c := &vr2GatherClient{
		server: s, conn: conn, opened: opened, remote: r.RemoteAddr, query: query, place: vr2GatherPlace{room, query.Client},
		signs: newSigns(), gone: make(chan struct{}),
		log: log.With(zap.String("room", room), zap.Uint32("client", query.Client)),
	}
	c.serve(sfu.JoinRequest{
		Join: &signal.Join{
			Version: signal.Version, Receive: true, Publications: sfu.VR2GatherPublications(query),
			BitrateLimits: signal.BitrateLimits{Min: s.config.MinBitrate},
		},
		Room: room, Identity: identity, Grants: credentials.Grants, At: opened, VR2Gather: &query,
		Bearer: bearerOf(credentials.Fingerprint, sourceOf(r.RemoteAddr)), Token: credentials.Token,
		OwnsIdentity: credentials.Identity != "",
	})
}

// turnAway refuses a peer before there is a websocket.
func (s *VR2GatherServer) turnAway(
	w http.ResponseWriter, r *http.Request, status int, code signal.Code, reason string,
) {
	s.refused.Add(1)
	s.metrics.SignallingError(code)
	s.log.Refused(time.Now(), r.RemoteAddr, "VR2Gather peer refused",
		zap.String("dialect", "vr2gather"), zap.String("code", string(code)), zap.String("reason", reason))
	if !waited(r.Context().Done(), s.answerWait(r.RemoteAddr)) {
		return
	}
	http.Error(w, string(code)+": "+reason, status)
}

// answerWait returns the delay of the answer to a refusal of a remote address.
func (s *VR2GatherServer) answerWait(remote string) time.Duration {
	return s.answers.answerWait(sourceOf(remote), time.Now(), maxJoinWait)
}

// query reads how a peer announces itself.
func (s *VR2GatherServer) query(r *http.Request) (vr2gather.Query, error) {
	values := r.URL.Query()
	query, err := vr2gather.ParseQuery(values, s.config.Tiles)
	if err == nil && values.Get("nqualities") == "" {
		query.Qualities = s.config.Qualities
	}
	return query, err
}

// roomOf is the room that a request is for.
func (s *VR2GatherServer) roomOf(r *http.Request) string {
	if room := r.PathValue(roomInPath); room != "" {
		return room
	}
	if s.config.RoomByHost {
		return r.Host
	}
	return s.config.DefaultRoom
}
