package whip

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/description"
	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/internal/signalling"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// The paths, as patterns of http.ServeMux. An encoder posts to PublishPath, a player to PlayPath, and both get the
// address of their session in the header Location.
const (
	PublishPath        = "/v1/whip/{room}"
	PublishSessionPath = PublishPath + "/{session}"
	PlayPath           = "/v1/whep/{room}/{watched}"
	PlaySessionPath    = PlayPath + "/{session}"
)

// The names of the protocols.
const (
	protocolWHIP = "WHIP"
	protocolWHEP = "WHEP"
)

const (
	typeSDP      = "application/sdp"
	typeFragment = "application/trickle-ice-sdpfrag"

	// maxOffer and maxFragment bound the bodies of requests, in bytes. An offer of a browser has 5 kB to 10 kB.
	maxOffer    = 64 << 10
	maxFragment = 16 << 10
)

// Server serves WHIP and WHEP.
type Server struct {
	locator   signalling.Locator
	auth      signalling.Authenticator
	metrics   signalling.Metrics
	log       *signalling.Log
	addresses *signalling.AddressLimits
	tokens    signalling.TokenLimits
	delays    signalling.RefusalDelays

	mu       sync.Mutex
	sessions map[string]*session
}

// NewServer returns a server without sessions. limits are the limits of signalling v1, addresses those of the listener:
// a session counts as a websocket.
func NewServer(
	limits signalling.Config, addresses *signalling.AddressLimits, locator signalling.Locator,
	auth signalling.Authenticator, metrics signalling.Metrics, log *signalling.Log,
) *Server {
	return &Server{
		locator: locator, auth: auth, metrics: metrics, log: log, addresses: addresses,
		tokens: signalling.NewTokenLimits(&limits), delays: signalling.NewRefusalDelays(&limits),
		sessions: make(map[string]*session),
	}
}

// Register adds the handlers to a mux. Pages of other origins need the permission of pages (CORS).
func (s *Server) Register(mux *http.ServeMux, pages signalling.Pages) {
	for path, create := range map[string]func(http.ResponseWriter, *http.Request){
		PublishPath: s.publish, PlayPath: s.play,
	} {
		endpoint := pages.Share(methods{http.MethodPost: create, http.MethodGet: nothing, http.MethodOptions: nothing},
			http.MethodOptions, http.MethodGet, http.MethodPost)
		mux.Handle(path, s.addresses.Guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodOptions {
				w.Header().Set("Accept-Post", typeSDP)
			}
			endpoint.ServeHTTP(w, r)
		})))
	}
	session := pages.Share(
		methods{
			http.MethodPatch: s.change, http.MethodDelete: s.end, http.MethodGet: nothing, http.MethodOptions: nothing,
		},
		http.MethodOptions, http.MethodGet, http.MethodPatch, http.MethodDelete)
	mux.Handle(PublishSessionPath, s.addresses.Guard(session))
	mux.Handle(PlaySessionPath, s.addresses.Guard(session))
}

// methods calls the function of a request's method.
type methods map[string]func(http.ResponseWriter, *http.Request)

// ServeHTTP implements http.Handler.
func (m methods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	serve := m[r.Method]
	if r.Method == http.MethodHead {
		serve = m[http.MethodGet]
	}
	serve(w, r)
}

// nothing answers requests for a representation, of which there is none (RFC 9725 section 4.1).
func nothing(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

// publish begins the session of an encoder.
func (s *Server) publish(w http.ResponseWriter, r *http.Request) {
	s.create(w, r, protocolWHIP, func(grants sfu.Grants, offer string, join *sfu.JoinRequest) *problem {
		if !grants.Publish {
			return problemOf(&signal.Error{Code: signal.CodeForbidden, Message: "the token does not grant publishing"})
		}
		source, refused := sourceIn(r)
		if refused != nil {
			return refused
		}
		p, refused := planPublishing(offer, cmp.Or(source, volumetric.SourceCamera))
		if refused != nil {
			return refused
		}
		join.Offer, join.Join.Publications, join.Profile = p.offer, p.publications, &publisherProfile
		return nil
	})
}

// sourceIn returns the source in the address of a request, empty without one.
func sourceIn(r *http.Request) (volumetric.PictureSource, *problem) {
	source := volumetric.PictureSource(r.URL.Query().Get("source"))
	if _, known := sources[source]; source != "" && !known {
		return "", problemOf(&signal.Error{Code: signal.CodeInvalid, Message: fmt.Sprintf(
			"the source is %.40q, expected %s or %s", source, volumetric.SourceCamera, volumetric.SourceScreen)})
	}
	return source, nil
}

// play begins the session of a player.
func (s *Server) play(w http.ResponseWriter, r *http.Request) {
	s.create(w, r, protocolWHEP, func(grants sfu.Grants, offer string, join *sfu.JoinRequest) *problem {
		if !grants.Subscribe {
			return problemOf(&signal.Error{Code: signal.CodeForbidden, Message: "the token does not grant receiving"})
		}
		watched := r.PathValue("watched")
		if err := volumetric.ValidateName("participant", watched); err != nil {
			return problemOf(&signal.Error{Code: signal.CodeInvalid, Message: err.Error()})
		}
		source, refused := sourceIn(r)
		if refused != nil {
			return refused
		}
		p, refused := planPlaying(offer)
		if refused != nil {
			return refused
		}
		join.Offer, join.Profile, join.Watched = p.offer, playerProfile(p.accepts, source), watched
		join.Join.Receive = true
		return nil
	})
}

// create begins a session: it reads the offer, joins the room and answers. describe completes the request to join.
func (s *Server) create(
	w http.ResponseWriter, r *http.Request, protocol string,
	describe func(sfu.Grants, string, *sfu.JoinRequest) *problem,
) {
	opened := time.Now()
	s.metrics.SignallingMessage("in", signal.TypeJoin)
	credentials, err := s.auth.Authenticate(r)
	if err != nil {
		w.Header().Set("WWW-Authenticate", "Bearer")
		s.refuse(w, r, protocol, &problem{http.StatusUnauthorized, signal.CodeUnauthorized, err.Error()})
		return
	}
	offer, refused := body(w, r, typeSDP, maxOffer)
	if refused != nil {
		s.refuse(w, r, protocol, refused)
		return
	}
	c := newSession(s, strings.TrimSuffix(r.URL.EscapedPath(), "/"))
	c.protocol, c.room, c.fingerprint = protocol, r.PathValue("room"), credentials.Fingerprint
	join := sfu.JoinRequest{
		Join: &signal.Join{Version: signal.Version}, Grants: credentials.Grants, Outbox: c, At: opened,
		Bearer: signalling.BearerOf(credentials.Fingerprint, signalling.SourceOf(r.RemoteAddr)),
		Token:  credentials.Token, OwnsIdentity: credentials.OwnsIdentity(),
	}
	if refused = c.name(&credentials, r.URL.Query().Get("identity")); refused == nil {
		join.Room, join.Identity = c.room, c.identity
		refused = describe(credentials.Grants, offer, &join)
	}
	if refused == nil {
		refused = s.hold(w, c, r.RemoteAddr, opened)
	}
	if refused != nil {
		s.refuse(w, r, protocol, refused)
		return
	}
	answers := c.expect("")
	if refused := s.join(c, join); refused != nil {
		c.Close(refused.Code, refused.Message)
		s.refuse(w, r, protocol, problemOf(refused))
		return
	}
	answer, text, refused := c.await(r.Context().Done(), answers)
	if refused != nil {
		c.leave()
		s.refuse(w, r, protocol, refused)
		return
	}
	c.mu.Lock()
	c.remote = join.Offer.Transport
	servers := c.servers
	c.mu.Unlock()
	s.metrics.SignallingMessage("out", signal.TypeAnswer)
	s.log.Info(protocol+" session", zap.String("room", c.room), zap.String("participant", c.identity),
		zap.String("remote", r.RemoteAddr), zap.Strings("media", mediaOf(answer)))
	header := w.Header()
	header.Set("Content-Type", typeSDP)
	header.Set("Location", c.path)
	header.Set("ETag", c.tag())
	for _, link := range links(servers) {
		header.Add("Link", link)
	}
	w.WriteHeader(http.StatusCreated)
	// If the client has gone, ICE fails.
	_, _ = io.WriteString(w, text)
}

// mediaOf describes the accepted lines of an answer for the log, as in "video H264, 3 qualities".
func mediaOf(answer *description.Description) (list []string) {
	for i := range answer.Lines {
		l := &answer.Lines[i]
		if l.Rejected || len(l.Codecs) == 0 {
			continue
		}
		var names []string
		for _, c := range l.Codecs {
			_, name, _ := strings.Cut(c.MIMEType, "/")
			names = append(names, name)
		}
		text := fmt.Sprintf("%s %s", l.Kind, strings.Join(names, " or "))
		if n := len(l.Layers); n > 0 {
			text += fmt.Sprintf(", %d qualities", n)
		}
		list = append(list, text)
	}
	return list
}

// name sets the room and the identity of a session from its token and its address. A session without a name gets one.
func (s *session) name(credentials *signalling.Credentials, asked string) *problem {
	for _, of := range []struct{ what, granted, asked string }{
		{"room", credentials.Room, s.room}, {"identity", credentials.Identity, asked},
	} {
		if of.granted != "" && of.asked != "" && of.granted != of.asked {
			return problemOf(&signal.Error{Code: signal.CodeForbidden,
				Message: fmt.Sprintf("the token is for %s %q, not %q", of.what, of.granted, of.asked)})
		}
	}
	const letters = 8
	s.identity = cmp.Or(credentials.Identity, asked, strings.ToLower(s.protocol+"-"+rand.Text()[:letters]))
	for what, name := range map[string]string{"room": s.room, "identity": s.identity} {
		if err := volumetric.ValidateName(what, name); err != nil {
			return problemOf(&signal.Error{Code: signal.CodeInvalid, Message: err.Error()})
		}
	}
	return nil
}

// hold counts a session for its token and its address until the session ends.
func (s *Server) hold(w http.ResponseWriter, c *session, remote string, now time.Time) *problem {
	if err := s.tokens.Enter(c.fingerprint, now); err != nil {
		signalling.SetRetryAfter(w, err)
		return &problem{http.StatusTooManyRequests, signal.CodeRateLimited, err.Error()}
	}
	release, err := s.addresses.Hold(remote)
	if err != nil {
		s.tokens.Leave(c.fingerprint)
		signalling.SetRetryAfter(w, err)
		return &problem{http.StatusTooManyRequests, signal.CodeRateLimited, err.Error()}
	}
	c.release = func() {
		s.tokens.Leave(c.fingerprint)
		release()
	}
	return nil
}

// join joins the room. If the identity belongs to an earlier session with the same token, that session ends first: an
// encoder that has lost its connection comes back before the server notices.
func (s *Server) join(c *session, request sfu.JoinRequest) *signal.Error {
	node := s.locator.Locate(&request)
	place, refused := node.Join(request)
	if refused != nil && refused.Code == signal.CodeIdentityTaken {
		if former := s.former(c); former != nil {
			former.leave()
			place, refused = node.Join(request)
		}
	}
	if refused != nil {
		return refused
	}
	c.mu.Lock()
	c.place = place
	over := c.over
	c.mu.Unlock()
	if !over {
		s.remember(c)
	}
	return nil
}

// former returns the session with the same protocol, room, identity and token, nil if there is none.
func (s *Server) former(c *session) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other := range maps.Values(s.sessions) {
		if other.protocol == c.protocol && other.room == c.room && other.identity == c.identity &&
			other.fingerprint == c.fingerprint {
			return other
		}
	}
	return nil
}

func (s *Server) remember(c *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.isOver() {
		s.sessions[c.path] = c
	}
}

func (s *Server) forget(c *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, c.path)
}

// change changes the ICE session: it adds candidates or restarts ICE (RFC 9725 section 4.3).
func (s *Server) change(w http.ResponseWriter, r *http.Request) {
	c, refused := s.find(r)
	if refused == nil && !c.changes.Allow() {
		w.Header().Set("Retry-After", "1")
		refused = &problem{http.StatusTooManyRequests, signal.CodeRateLimited,
			fmt.Sprintf("the limit is %d changes of a session per second, and %d at once", changeRate, changeBurst)}
	}
	if refused != nil {
		s.refuse(w, r, "", refused)
		return
	}
	text, refused := body(w, r, typeFragment, maxFragment)
	if refused != nil {
		s.refuse(w, r, c.protocol, refused)
		return
	}
	fragment, err := description.ParseFragment(text)
	if err != nil {
		s.refuse(w, r, c.protocol, malformed(err.Error()))
		return
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	restarts, refused := c.check(r.Header.Get("If-Match"), &fragment)
	switch {
	case refused != nil:
		s.refuse(w, r, c.protocol, refused)
	case restarts:
		s.restart(w, r, c, &fragment)
	default:
		c.addCandidates(&fragment)
		w.WriteHeader(http.StatusNoContent)
	}
}

// check checks the precondition of a change, and reports whether the change restarts ICE.
func (s *session) check(match string, fragment *description.Transport) (restarts bool, refused *problem) {
	tag := s.tag()
	s.mu.Lock()
	restarts = fragment.Ufrag != "" && (fragment.Ufrag != s.remote.Ufrag || fragment.Password != s.remote.Password)
	s.mu.Unlock()
	switch match {
	case "":
		return false, &problem{http.StatusPreconditionRequired, signal.CodeInvalid,
			"the header If-Match is missing, expected the ETag of the session, or * to restart ICE"}
	case "*", `"*"`, tag:
		return restarts, nil
	default:
		return false, &problem{http.StatusPreconditionFailed, signal.CodeInvalid,
			fmt.Sprintf("the header If-Match is %.60s, expected the ETag of the present ICE session", match)}
	}
}

// restart restarts ICE, and answers with the server's new credentials and candidates.
func (s *Server) restart(w http.ResponseWriter, r *http.Request, c *session, fragment *description.Transport) {
	id := rand.Text()
	answers := c.expect(id)
	restart := &sfu.RestartICE{Ufrag: fragment.Ufrag, Password: fragment.Password}
	restart.ID = id
	c.do(restart)
	answer, _, refused := c.await(r.Context().Done(), answers)
	if refused != nil {
		s.refuse(w, r, c.protocol, refused)
		return
	}
	c.mu.Lock()
	c.remote.Ufrag, c.remote.Password = fragment.Ufrag, fragment.Password
	c.mu.Unlock()
	c.addCandidates(fragment)
	w.Header().Set("Content-Type", typeFragment)
	w.Header().Set("ETag", c.tag())
	_, _ = io.WriteString(w, answer.MarshalFragment())
}

// addCandidates adds the candidates of the client. Candidates that ICE cannot use are ignored.
func (s *session) addCandidates(fragment *description.Transport) {
	for _, candidate := range fragment.Candidates {
		s.server.metrics.SignallingMessage("in", signal.TypeCandidate)
		s.do(&signal.Candidate{Candidate: candidate})
	}
}

// end ends a session.
func (s *Server) end(w http.ResponseWriter, r *http.Request) {
	c, refused := s.find(r)
	if refused != nil {
		s.refuse(w, r, "", refused)
		return
	}
	s.metrics.SignallingMessage("in", signal.TypeLeave)
	c.leave()
	w.WriteHeader(http.StatusOK)
}

// find returns the session of a request.
func (s *Server) find(r *http.Request) (*session, *problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.sessions[r.URL.EscapedPath()]; c != nil {
		return c, nil
	}
	return nil, problemOf(&signal.Error{
		Code: signal.CodeNotFound, Message: "there is no such session; it may have ended",
	})
}

// body reads the body of a request.
func body(w http.ResponseWriter, r *http.Request, mediaType string, most int64) (string, *problem) {
	if got, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || got != mediaType {
		return "", &problem{http.StatusUnsupportedMediaType, signal.CodeInvalid,
			fmt.Sprintf("the type of the body is %.60q, expected %s", r.Header.Get("Content-Type"), mediaType)}
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return "", &problem{http.StatusRequestEntityTooLarge, signal.CodeTooLarge,
			fmt.Sprintf("the body has more than %d bytes", most)}
	case err != nil:
		return "", malformed("the body could not be read: " + err.Error())
	}
	return string(text), nil
}

// isOver reports whether the session has ended.
func (s *session) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// links returns the values of the header Link for ICE servers (RFC 9725 section 4.6).
func links(servers []signal.ICEServer) (list []string) {
	quote := func(text string) string { return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"` }
	for _, server := range servers {
		for _, url := range server.URLs {
			link := "<" + url + `>; rel="ice-server"`
			if server.Username != "" {
				link += "; username=" + quote(server.Username) + "; credential=" + quote(server.Credential) +
					`; credential-type="password"`
			}
			list = append(list, link)
		}
	}
	return slices.Clip(list)
}
