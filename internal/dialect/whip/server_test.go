package whip

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/description"
	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/internal/signalling"
	"github.com/volsfu/volsfu/pkg/signal"
)

// uncounted discards counts.
type uncounted struct{}

func (uncounted) SignallingMessage(string, signal.Type) {}
func (uncounted) SignallingError(signal.Code)           {}

// room is a Node that answers offers at once. If refuses is set, it refuses every join. It implements
// signalling.Locator and signalling.Node.
type room struct {
	refuses *signal.Error
	mu      sync.Mutex
	joined  []*place
}

// place is a participant of a room. It implements signalling.Session.
type place struct {
	sfu.JoinRequest
	messages []signal.Message
}

func (r *room) Locate(*sfu.JoinRequest) signalling.Node { return r }

func (r *room) Join(q sfu.JoinRequest) (signalling.Session, *signal.Error) {
	if r.refuses != nil {
		return nil, r.refuses
	}
	p := &place{JoinRequest: q}
	r.mu.Lock()
	r.joined = append(r.joined, p)
	r.mu.Unlock()
	q.Outbox.Send(&signal.Joined{ICEServers: []signal.ICEServer{
		{URLs: []string{"stun:stun.example.org"}},
		{URLs: []string{"turn:turn.example.org", "turns:turn.example.org"}, Username: `1:a"b`, Credential: "c="},
	}})
	p.answer("", "first")
	return p, nil
}

// answer answers the offer, with the given ICE user name.
func (p *place) answer(id, ufrag string) {
	answer, err := description.AnswerAsForwarder(p.Offer, nil)
	if err != nil {
		panic(err)
	}
	answer.Transport.Ufrag, answer.Transport.Password = ufrag, strings.Repeat("p", 22)
	answer.Transport.Fingerprint = p.Offer.Transport.Fingerprint
	answer.Transport.Candidates = []string{"candidate:1 1 udp 2130706431 127.0.0.1 7882 typ host"}
	p.Outbox.Send(&sfu.Answer{Answer: signal.Answer{Header: signal.Header{ID: id}, SDP: answer.Marshal()}})
}

func (p *place) Handle(m signal.Message, _ time.Time) {
	p.messages = append(p.messages, m)
	switch m := m.(type) {
	case *sfu.RestartICE:
		p.answer(m.ID, "second")
	case *signal.Leave:
		p.Outbox.Close("", "left")
	}
}

func (p *place) Choose(sfu.Chooser, time.Time) {}
func (p *place) Detach()                       {}

// oneToken is an Authenticator whose only token is the word that it has.
type oneToken string

func (o oneToken) Authenticate(r *http.Request) (signalling.Credentials, error) {
	grants := sfu.Grants{Publish: true, Subscribe: true}
	return signalling.Credentials{Grants: grants, Fingerprint: signalling.Fingerprint{1}, Room: string(o)}, nil
}

// serve returns a server for tests and its handler.
func serve(t *testing.T, r *room, adjust func(*signalling.Config)) (*Server, http.Handler) {
	t.Helper()
	config := signalling.DefaultConfig()
	config.AllowedOrigins = []string{"https://app.example.org"}
	if adjust != nil {
		adjust(&config)
	}
	log := signalling.NewLog(zap.NewNop())
	limits, err := signalling.NewAddressLimits(config, uncounted{}, log)
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(config, limits, r, oneToken("studio"), uncounted{}, log)
	mux := http.NewServeMux()
	s.Register(mux, config.Pages(false))
	return s, mux
}

// ask sends a request of 203.0.113.9.
func ask(h http.Handler, method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.RemoteAddr = "203.0.113.9:5000"
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestASession publishes, adds candidates, restarts ICE and ends, and checks what the room gets.
func TestASession(t *testing.T) {
	r := &room{}
	s, h := serve(t, r, nil)
	created := ask(h, http.MethodPost, "/v1/whip/studio?identity=ada", head+sound+video, "Content-Type", typeSDP)
	if created.Code != http.StatusCreated || created.Header().Get("ETag") != `"first"` {
		t.Fatalf("status is %d, ETag %s: %s", created.Code, created.Header().Get("ETag"), created.Body)
	}
	want := []string{
		`<stun:stun.example.org>; rel="ice-server"`,
		`<turn:turn.example.org>; rel="ice-server"; username="1:a\"b"; credential="c="; credential-type="password"`,
		`<turns:turn.example.org>; rel="ice-server"; username="1:a\"b"; credential="c="; credential-type="password"`,
	}
	if got := created.Header().Values("Link"); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the links are %q, expected %q", got, want)
	}
	p := r.joined[0]
	if p.Room != "studio" || p.Identity != "ada" || len(p.Join.Publications) != 2 || p.Join.Receive {
		t.Errorf("the join is %+v", p.JoinRequest)
	}
	session := created.Header().Get("Location")
	candidates := "a=mid:0\r\na=candidate:1 1 udp 1 192.0.2.1 9 typ host\r\n" +
		"a=candidate:2 1 udp 1 192.0.2.2 9 typ host\r\n"
	restart := "a=ice-ufrag:ysXw\r\na=ice-pwd:vw5LmwG4y/e6dPP/zAP9Gp5k\r\n"
	for _, test := range []struct {
		match, body string
		status      int
		messages    int
		tag         string
	}{
		{`"first"`, candidates, http.StatusNoContent, 2, ""},
		{"*", restart, http.StatusOK, 3, `"second"`},
		{`"first"`, candidates, http.StatusPreconditionFailed, 3, ""},
		{"*", restart, http.StatusNoContent, 3, ""},
		{`"second"`, restart + candidates, http.StatusNoContent, 5, ""},
	} {
		w := ask(h, http.MethodPatch, session, test.body, "Content-Type", typeFragment, "If-Match", test.match)
		if w.Code != test.status || len(p.messages) != test.messages || w.Header().Get("ETag") != test.tag {
			t.Errorf("PATCH with %s: status is %d, ETag %s, and the room has %d messages; expected %d, %s and %d",
				test.match, w.Code, w.Header().Get("ETag"), len(p.messages), test.status, test.tag, test.messages)
		}
	}
	if w := ask(h, http.MethodDelete, session, ""); w.Code != http.StatusOK || len(s.sessions) != 0 {
		t.Errorf("DELETE has status %d, and %d sessions remain", w.Code, len(s.sessions))
	}
	if w := ask(h, http.MethodPatch, session, candidates, "Content-Type", typeFragment, "If-Match", "*"); w.Code !=
		http.StatusNotFound {
		t.Errorf("PATCH after the end has status %d", w.Code)
	}
}

// TestSessionsAreBounded opens as many sessions as an address and a token may have. An ended session makes room.
func TestSessionsAreBounded(t *testing.T) {
	for name, adjust := range map[string]func(*signalling.Config){
		// The request itself counts while it is served.
		"address": func(c *signalling.Config) { c.AddressWebsockets = 3 },
		"token":   func(c *signalling.Config) { c.TokenWebsockets = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			_, h := serve(t, &room{}, adjust)
			var sessions []string
			for range 2 {
				w := ask(h, http.MethodPost, "/v1/whip/studio", head+video, "Content-Type", typeSDP)
				if w.Code != http.StatusCreated {
					t.Fatalf("status is %d: %s", w.Code, w.Body)
				}
				sessions = append(sessions, w.Header().Get("Location"))
			}
			w := ask(h, http.MethodPost, "/v1/whip/studio", head+video, "Content-Type", typeSDP)
			if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
				t.Errorf("the third session has status %d: %s", w.Code, w.Body)
			}
			ask(h, http.MethodDelete, sessions[0], "")
			if w := ask(h, http.MethodPost, "/v1/whip/studio", head+video, "Content-Type", typeSDP); w.Code !=
				http.StatusCreated {
				t.Errorf("a session after the end of another has status %d: %s", w.Code, w.Body)
			}
		})
	}
}

// TestChangesAreBounded floods a session with PATCH requests.
func TestChangesAreBounded(t *testing.T) {
	_, h := serve(t, &room{}, func(c *signalling.Config) { c.AddressBurst = 1000 })
	session := ask(h, http.MethodPost, "/v1/whip/studio", head+video, "Content-Type", typeSDP).Header().Get("Location")
	limited := 0
	// More refusals than these are answered late.
	for range 4 * changeBurst {
		w := ask(h, http.MethodPatch, session, "a=mid:0\r\n", "Content-Type", typeFragment, "If-Match", "*")
		if w.Code == http.StatusTooManyRequests {
			limited++
		}
	}
	if limited < 2*changeBurst {
		t.Errorf("%d of %d changes were refused", limited, 4*changeBurst)
	}
}

// TestRefusals checks the statuses and the form of refusals.
func TestRefusals(t *testing.T) {
	long := strings.Repeat("x", maxOffer+1)
	for name, test := range map[string]struct {
		refuses           *signal.Error
		method, path      string
		body, contentType string
		status            int
		code              signal.Code
	}{
		"another room": {nil, "POST", "/v1/whip/attic", head + video, typeSDP, 403, signal.CodeForbidden},
		"another type": {nil, "POST", "/v1/whip/studio", head + video, "text/plain", 415, signal.CodeInvalid},
		"a long body":  {nil, "POST", "/v1/whip/studio", long, typeSDP, 413, signal.CodeTooLarge},
		"a long name": {nil, "POST", "/v1/whip/studio?identity=" + long[:200], head + video, typeSDP, 400,
			signal.CodeInvalid},
		"a source": {nil, "POST", "/v1/whip/studio?source=film", head + video, typeSDP, 400, signal.CodeInvalid},
		"a source of a player": {nil, "POST", "/v1/whep/studio/ada?source=film", watching, typeSDP, 400,
			signal.CodeInvalid},
		"a long target": {nil, "POST", "/v1/whep/studio/" + long[:200], watching, typeSDP, 400, signal.CodeInvalid},
		"no offer":      {nil, "POST", "/v1/whep/studio/ada", "hello", typeSDP, 400, signal.CodeInvalidSDP},
		"a drain": {&signal.Error{Code: signal.CodeDraining, Message: "the server is about to stop"}, "POST",
			"/v1/whip/studio", head + video, typeSDP, 503, signal.CodeDraining},
		"nothing published": {&signal.Error{Code: signal.CodeNotFound, Message: "nothing"}, "POST",
			"/v1/whep/studio/ada", watching, typeSDP, 409, signal.CodeNotFound},
		"no room": {&signal.Error{Code: signal.CodeNotFound, Message: "no room"}, "POST", "/v1/whip/studio",
			head + video, typeSDP, 404, signal.CodeNotFound},
		"no session": {nil, "DELETE", "/v1/whip/studio/x", "", "", 404, signal.CodeNotFound},
	} {
		s, h := serve(t, &room{refuses: test.refuses}, nil)
		w := ask(h, test.method, test.path, test.body, "Content-Type", test.contentType)
		var got details
		err := json.Unmarshal(w.Body.Bytes(), &got)
		if w.Code != test.status || err != nil || got.Code != test.code || got.Status != test.status ||
			got.Detail == "" || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: status is %d, expected %d %s: %s (%v)", name, w.Code, test.status, test.code, w.Body, err)
		}
		if retry := w.Header().Get("Retry-After") != ""; retry != (w.Code == 409 || w.Code == 503) {
			t.Errorf("%s: Retry-After is %q", name, w.Header().Get("Retry-After"))
		}
		if len(s.sessions) != 0 {
			t.Errorf("%s: %d sessions remain", name, len(s.sessions))
		}
	}
}

// TestPages checks requests of pages, and requests without an effect.
func TestPages(t *testing.T) {
	_, h := serve(t, &room{}, nil)
	const path, page, stranger = "/v1/whip/studio", "https://app.example.org", "https://evil.example"
	for name, test := range map[string]struct {
		method string
		header []string
		status int
		want   string
	}{
		"preflight": {"OPTIONS", []string{"Origin", page, "Access-Control-Request-Method", "POST"}, 204, typeSDP},
		"a hostile preflight": {"OPTIONS",
			[]string{"Origin", stranger, "Access-Control-Request-Method", "POST"}, 403, typeSDP},
		"OPTIONS":        {"OPTIONS", nil, 204, typeSDP},
		"GET":            {"GET", nil, 204, ""},
		"HEAD":           {"HEAD", nil, 204, ""},
		"another method": {"PUT", nil, 405, ""},
	} {
		w := ask(h, test.method, path, "", test.header...)
		if w.Code != test.status || w.Header().Get("Accept-Post") != test.want {
			t.Errorf("%s: status is %d, Accept-Post %q; expected %d and %q", name, w.Code,
				w.Header().Get("Accept-Post"), test.status, test.want)
		}
	}
	w := ask(h, http.MethodPost, path, head+video, "Content-Type", typeSDP, "Origin", page)
	if w.Code != http.StatusCreated || w.Header().Get("Access-Control-Allow-Origin") != page ||
		!strings.Contains(w.Header().Get("Access-Control-Expose-Headers"), "Location") {
		t.Errorf("the page of the allowed origin: status is %d, header %v", w.Code, w.Header())
	}
}
