package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/pkg/signal"
)

// acted is a server that records the actions of operators.
type acted struct {
	fakeRooms
	fakeHost
	done []string
}

func (a *acted) note(what ...string) error {
	a.done = append(a.done, what...)
	return nil
}

func (a *acted) Kick(_ context.Context, room, identity string, _ time.Duration) error {
	return a.note("kick", room, identity)
}
func (a *acted) SetRoom(_ context.Context, room string, _ admission.RoomSettings, _ bool) (bool, error) {
	return true, a.note("set", room)
}
func (a *acted) States(_ context.Context, room string, _ bool) ([]sfu.RoomState, error) {
	return []sfu.RoomState{{Name: room}}, nil
}
func (a *acted) SetMetadata(_ context.Context, room string, _ map[string]string) error {
	return a.note("metadata", room)
}
func (a *acted) SendData(_ context.Context, room string, _ signal.Data) error {
	return a.note("send", room)
}
func (a *acted) CloseRoom(_ context.Context, room string) error { return a.note("close", room) }
func (a *acted) Unban(room, identity string) error              { return a.note("unban", room, identity) }
func (a *acted) Revoke(id string, _ time.Duration) error        { return a.note("revoke", id) }
func (a *acted) Restore(id string) error                        { return a.note("restore", id) }
func (a *acted) StartDrain()                                    { _ = a.note("drain") }

// meant returns the action of a request, by the segments of its path; nil if it changes nothing.
func meant(method string, u *url.URL) []string {
	segments := strings.Split(strings.TrimPrefix(u.EscapedPath(), APIPath), "/")
	for i, s := range segments {
		decoded, err := url.PathUnescape(s)
		if err != nil {
			return nil
		}
		segments[i] = decoded
	}
	switch n := len(segments); {
	case method == http.MethodPut && n == 2 && segments[0] == "rooms":
		return []string{"set", segments[1]}
	case method == http.MethodPatch && n == 2 && segments[0] == "rooms":
		return []string{"metadata", segments[1]}
	case method == http.MethodPost && n == 3 && segments[0] == "rooms" && segments[2] == "messages":
		return []string{"send", segments[1]}
	case method == http.MethodDelete && n == 2 && segments[0] == "rooms":
		return []string{"close", segments[1]}
	case method == http.MethodDelete && n == 4 && segments[0] == "rooms" && segments[2] == "participants":
		return []string{"kick", segments[1], segments[3]}
	case method == http.MethodDelete && n == 4 && segments[0] == "rooms" && segments[2] == "bans":
		return []string{"unban", segments[1], segments[3]}
	case method == http.MethodPut && n == 2 && segments[0] == "revocations":
		return []string{"revoke", segments[1]}
	case method == http.MethodDelete && n == 2 && segments[0] == "revocations":
		return []string{"restore", segments[1]}
	case method == http.MethodPost && n == 1 && segments[0] == "drain":
		return []string{"drain"}
	}
	return nil
}

// FuzzPath: a request has the effect of its method and the segments of its path, on the named room and participant, or
// none. Requests from pages of other servers and requests that are not admitted have no effect and read nothing.
func FuzzPath(f *testing.F) {
	for _, path := range []string{
		"/admin/v1/server", "/admin/v1/rooms", "/admin/v1/rooms/lab", "/admin/v1/rooms/lab?past=1", "/admin/v1/events",
		"/admin/v1/rooms/lab/participants/ada?ban=90m", "/admin/v1/rooms/a%2fb/participants/..",
		"/admin/v1/rooms/lab/participants/ada/x", "/admin/v1/rooms/lab/x", "/admin/v1/rooms/lab/messages",
		"/admin/v1/rooms/lab/bans/ada",
		"/admin/v1/revocations/e?for=24h", "/admin/v1/drain", "/admin/v1/../v1/drain", "/admin/v1//drain",
		"/admin/v1/drain/",
		"/metrics", "/healthz", "/readyz", "/debug/pprof/", "/debug/pprof/cmdline", "/%2e%2e/metrics", "/",
	} {
		for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPut, http.MethodPost, "CONNECT"} {
			f.Add(method, path)
		}
	}
	f.Fuzz(func(t *testing.T, method, path string) {
		u, err := url.ParseRequestURI(path)
		if err != nil || !strings.HasPrefix(path, "/") {
			t.Skip("net/http rejects the request")
		}
		server := &acted{}
		ask := func(h http.Handler, origin string) *httptest.ResponseRecorder {
			// The client has disconnected, so that every answer ends.
			gone, cancel := context.WithCancel(context.Background())
			cancel()
			asked := *u
			r := (&http.Request{
				Method: method, URL: &asked, RequestURI: path, Host: "127.0.0.1:9090", RemoteAddr: "127.0.0.1:1",
				Header: http.Header{}, Body: http.NoBody,
			}).WithContext(gone)
			if origin != "" {
				r.Header.Set("Origin", origin)
			}
			recorder := httptest.NewRecorder()
			h.ServeHTTP(recorder, r)
			return recorder
		}
		admits := NewAPI(gate{}, server, server, quiet{zap.NewNop()}, nil)
		refuses := NewAPI(gate{ErrForbidden}, server, server, quiet{zap.NewNop()}, nil)
		listener := Handler(Endpoints{API: admits})
		for what, recorder := range map[string]*httptest.ResponseRecorder{
			"a page of another server": ask(listener, "https://evil.example.net"),
			"who is not admitted":      ask(refuses, ""),
		} {
			if recorder.Code != http.StatusForbidden || len(server.done) > 0 {
				t.Fatalf("%s %q of %s: status %d and %q, expected 403 and nothing",
					method, path, what, recorder.Code, server.done)
			}
		}
		recorder := ask(admits, "")
		if recorder.Code >= http.StatusInternalServerError {
			t.Fatalf("%s %q: status %d", method, path, recorder.Code)
		}
		if len(server.done) > 0 && !slices.Equal(server.done, meant(method, u)) {
			t.Fatalf("%s %q has %q done, expected %q", method, path, server.done, meant(method, u))
		}
		if method == http.MethodPatch && recorder.Code == http.StatusNoContent && len(server.done) == 0 {
			// A participant, of which an empty body changes nothing.
			return
		}
		acts := recorder.Code == http.StatusNoContent || recorder.Code == http.StatusCreated
		if acts != (len(server.done) > 0) {
			t.Fatalf("%s %q has %q done, with status %d", method, path, server.done, recorder.Code)
		}
	})
}

// FuzzBody: only JSON is accepted as a body, and every refusal has a reason and is not the server's fault.
func FuzzBody(f *testing.F) {
	for _, body := range []string{
		"", "{}", "null", "[]", "{} {}", `{"max_participants": 1, "empty_timeout_ms": 1e99}`,
		`{"metadata": {"title": "Talk", "": "x"}}`, `{"to": ["ada", ""], "topic": "chat", "text": "Hi"}`,
		`{"binary": "AQI="}`, `{"permissions": {"publish": null}, "muted": {"body": true}, "attributes": {"a": "b"}}`,
		strings.Repeat("[", 20000), `{"text": "\ud800"}`,
	} {
		f.Add(body)
	}
	targets := map[string]string{
		"/admin/v1/rooms/lab": http.MethodPut, "/admin/v1/rooms/lab?": http.MethodPatch,
		"/admin/v1/rooms/lab/messages": http.MethodPost, "/admin/v1/rooms/lab/participants/ada": http.MethodPatch,
	}
	f.Fuzz(func(t *testing.T, body string) {
		for path, method := range targets {
			rooms := &fakeRooms{}
			recorder := httptest.NewRecorder()
			NewAPI(gate{}, rooms, &fakeHost{}, quiet{zap.NewNop()}, nil).ServeHTTP(recorder,
				httptest.NewRequest(method, path, strings.NewReader(body)))
			switch code := recorder.Code; {
			case code >= http.StatusInternalServerError:
				t.Fatalf("%s %s %q: status %d", method, path, body, code)
			case code < http.StatusMultipleChoices && strings.Trim(body, " \t\r\n") != "" &&
				!json.Valid([]byte(body)):
				t.Fatalf("%s %s accepts %q, which is no JSON", method, path, body)
			case code >= http.StatusMultipleChoices && !strings.Contains(recorder.Body.String(), `"error"`):
				t.Fatalf("%s %s %q: status %d without a reason", method, path, body, code)
			}
		}
	})
}

// FuzzNodeAnswer: every answer of another node is either decoded and merged with the rooms of this node, or is an error
// with a reason.
func FuzzNodeAnswer(f *testing.F) {
	for _, text := range []string{
		"", "{}", "null", `{"rooms": null}`, `{"rooms": [{"name": "lab"}, {"name": "lab"}]}`, `{"error": "busy"}`,
		`{"name": "lab", "participants": [{"identity": "ada"}, {}], "settings": {}, "metadata": {"a": "b"}}`,
	} {
		f.Add(200, []byte(text), true)
		f.Add(421, []byte(text), false)
	}
	own := []Room{{RoomState: sfu.RoomState{Name: "lab"}, Nodes: []string{"a"}}}
	f.Fuzz(func(t *testing.T, status int, body []byte, one bool) {
		reply := &result{node: "b", status: status, body: body}
		rooms, err := reply.rooms(one)
		if err != nil {
			if reply.failure().Error == "" || len(rooms) > 0 {
				t.Fatalf("status %d %q: %d rooms and the error %q", status, body, len(rooms), reply.failure().Error)
			}
			return
		}
		merged := merge([][]Room{own, roomsOn("b", rooms)})
		if !slices.ContainsFunc(merged, func(r Room) bool { return r.Name == "lab" && r.Nodes[0] == "a" }) {
			t.Fatalf("status %d %q: the rooms of this node are not in %v", status, body, merged)
		}
	})
}
