package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.yaml.in/yaml/v3"

	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/internal/sfu/directory"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/recording"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// fakeRooms is one room, "lab", with ada in it.
type fakeRooms struct {
	past   atomic.Bool
	ban    time.Duration
	lasts  time.Duration
	silent bool
	// settings are those of the last SetRoom.
	settings admission.RoomSettings
	// actions are those on a room's content, in their order.
	actions []string
	// recorded are the qualities of the last request to record.
	recorded recording.Qualities
}

func (f *fakeRooms) States(ctx context.Context, room string, past bool) ([]sfu.RoomState, error) {
	if f.silent {
		return nil, context.DeadlineExceeded
	}
	f.past.Store(past)
	if room != "" && room != "lab" {
		return nil, nil
	}
	reception := &subscriber.State{Known: true, Estimate: 5e6, L4S: "marked",
		Slots: []subscriber.SlotState{{MID: "3", Participant: "bob", Publication: "body", Reason: "auto"}}}
	if past {
		reception.History = []subscriber.Sample{{At: 7, Estimate: 4e6}}
	}
	publication := sfu.PublicationState{
		Name: "body", Kind: "video", Mode: "alternatives", Codec: "video/volumetric", Tiles: 1,
		Muted:     &signal.MuteState{Publication: "body", Own: true, Operator: true},
		Qualities: []string{"low"}, Rates: [][]volumetric.Bitrate{{4}}, Paused: [][]bool{{false}},
	}
	settings := &admission.RoomSettings{MaxParticipants: 2, MaxPublications: 3, MaxBitrate: 4e6, EmptyTimeoutMS: 5000}
	metadata := map[string]string{"title": "Talk"}
	return []sfu.RoomState{{Name: "lab", ID: "r", Settings: settings, Metadata: metadata, Recorded: true,
		Participants: []sfu.ParticipantState{
			{Identity: "ada", Joined: time.Unix(9, 0).UTC(), ECN: &sfu.ECNState{ECT1: 9, CE: 1},
				Publications: []sfu.PublicationState{publication}, Reception: reception},
		}}}, nil
}

func (f *fakeRooms) Kick(_ context.Context, room, identity string, ban time.Duration) error {
	f.ban = ban
	if room != "lab" || identity != "ada" {
		return fmt.Errorf("%w: %q in room %q", sfu.ErrNotFound, identity, room)
	}
	return nil
}

func (f *fakeRooms) CloseRoom(_ context.Context, room string) error {
	if room != "lab" {
		return fmt.Errorf("%w: room %q", sfu.ErrNotFound, room)
	}
	return nil
}

func (f *fakeRooms) SetRoom(_ context.Context, room string, s admission.RoomSettings, onlyNew bool) (bool, error) {
	f.settings = s
	switch {
	case room == "attic":
		return false, fmt.Errorf("%w: full", directory.ErrRooms)
	case s.MaxParticipants < 0:
		return false, fmt.Errorf("%w: max_participants", admission.ErrSettings)
	case onlyNew:
		return false, fmt.Errorf("%w: %q", directory.ErrExists, room)
	}
	return s.MaxParticipants == 1, nil
}

// done records an action.
func (f *fakeRooms) done(format string, arguments ...any) {
	f.actions = append(f.actions, fmt.Sprintf(format, arguments...))
}

func (f *fakeRooms) SetMetadata(_ context.Context, room string, m map[string]string) error {
	f.done("metadata %s %v", room, m)
	_, err := signal.MergeAttributes("metadata", nil, m)
	return err
}

func (f *fakeRooms) SetAttributes(_ context.Context, room, identity string, m map[string]string) error {
	f.done("attributes %s %s %v", room, identity, m)
	return nil
}

func (f *fakeRooms) SendData(_ context.Context, room string, m signal.Data) error {
	f.done("data %s %q %s %s %x", room, m.To, m.Topic, m.Text, m.Binary)
	switch m.Topic {
	case "many":
		return &signal.Error{Code: signal.CodeRateLimited, Message: "too many"}
	case "full":
		return &signal.Error{Code: signal.CodeLimit, Message: "too large"}
	case "slow":
		return context.DeadlineExceeded
	}
	return m.Validate()
}

func (f *fakeRooms) Mute(_ context.Context, room, identity, publication string, muted bool) error {
	f.done("mute %s %s %s %t", room, identity, publication, muted)
	if publication == "nothing" {
		return fmt.Errorf("%w: publication %q", sfu.ErrNotFound, publication)
	}
	return nil
}

func (f *fakeRooms) SetPermissions(_ context.Context, room, identity string, p signal.SetPermissions) error {
	text := ""
	for name, value := range map[string]*bool{"publish": p.Publish, "subscribe": p.Subscribe, "data": p.Data} {
		if value != nil {
			text += fmt.Sprintf(" %s %t", name, *value)
		}
	}
	f.done("permit %s %s%s", room, identity, text)
	return nil
}

func (f *fakeRooms) Bans() []admission.Ban {
	return []admission.Ban{{Room: "lab", Identity: "eve", TokenID: "e", Until: time.Unix(9, 0).UTC()}}
}

func (f *fakeRooms) Unban(room, identity string) error {
	if room != "lab" || identity != "ada" {
		return fmt.Errorf("%w: a ban of %q", sfu.ErrNotFound, identity)
	}
	return nil
}

func (f *fakeRooms) Revoke(id string, lasts time.Duration) error {
	f.lasts = lasts
	if id == "many" {
		return fmt.Errorf("%w: many", admission.ErrFull)
	}
	return nil
}

func (f *fakeRooms) Revocations() []admission.Revocation {
	return []admission.Revocation{{ID: "e", Until: time.Unix(9, 0).UTC(), Seen: true}}
}

func (f *fakeRooms) Restore(id string) error {
	if id != "e" {
		return fmt.Errorf("%w: token %q", sfu.ErrNotFound, id)
	}
	return nil
}

func (f *fakeRooms) StartRecording(_ context.Context, room string, q recording.Qualities) error {
	if room != "lab" {
		return fmt.Errorf("%w: room %q", sfu.ErrNotFound, room)
	}
	f.recorded = q
	return nil
}

func (f *fakeRooms) StopRecording(_ context.Context, room string) error {
	if room != "lab" {
		return fmt.Errorf("%w: %q", sfu.ErrNotRecorded, room)
	}
	f.recorded = ""
	return nil
}

type fakeHost struct{ drained atomic.Bool }

func (h *fakeHost) State() ServerState {
	return ServerState{Version: "test", Started: time.Unix(1, 0).UTC(), Now: time.Unix(2, 0).UTC(),
		Addresses: []string{"192.0.2.1:7882"}, TURN: &TURNState{URLs: []string{"turn:192.0.2.1:3478"}, Tested: true,
			Error: "no allocation"}}
}
func (h *fakeHost) StartDrain() { h.drained.Store(true) }

// gate admits, or refuses with its error.
type gate struct{ err error }

func (g gate) Admit(*http.Request) error { return g.err }

// quiet is a log without output.
type quiet struct{ *zap.Logger }

func (quiet) Refused(time.Time, string, string, ...zap.Field) {}

func ask(a *API, method, path string) *httptest.ResponseRecorder { return askWith(a, method, path, "") }

func askWith(a *API, method, path, body string) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	a.ServeHTTP(recorder, httptest.NewRequest(method, path, strings.NewReader(body)).WithContext(ctx))
	return recorder
}

func TestAPI(t *testing.T) {
	host := &fakeHost{}
	a := NewAPI(gate{}, &fakeRooms{}, host, quiet{zap.NewNop()}, nil)
	for _, test := range []struct {
		method, path string
		status       int
		text         string
	}{
		{"GET", "/admin/v1/server", 200, `"version":"test"`},
		{"GET", "/admin/v1/rooms", 200, `"identity":"ada"`},
		{"GET", "/admin/v1/rooms/lab", 200, `"estimate_bps":5000000`},
		{"GET", "/admin/v1/rooms/lab?past=1", 200, `"history":[{"at":7,`},
		{"GET", "/admin/v1/rooms/attic", 404, `there is no room \"attic\"`},
		{"GET", "/admin/v1/openapi.yaml", 200, "openapi: 3.1.0"},
		{"DELETE", "/admin/v1/rooms/lab/participants/ada", 204, ""},
		{"DELETE", "/admin/v1/rooms/lab/participants/eve", 404, `\"eve\" in room`},
		{"DELETE", "/admin/v1/rooms/lab/participants/ada?ban=90m", 204, ""},
		{"DELETE", "/admin/v1/rooms/lab/participants/ada?ban=long", 400, "expected a duration over 0"},
		{"DELETE", "/admin/v1/rooms/lab/participants/ada?ban=-1h", 400, "expected a duration over 0"},
		{"GET", "/admin/v1/bans", 200, `"token_id":"e"`},
		{"DELETE", "/admin/v1/rooms/lab/bans/ada", 204, ""},
		{"DELETE", "/admin/v1/rooms/lab/bans/eve", 404, "eve"},
		{"GET", "/admin/v1/revocations", 200, `"seen":true`},
		{"PUT", "/admin/v1/revocations/e?for=2160h", 204, ""},
		{"PUT", "/admin/v1/revocations/e?for=x", 400, "for is"},
		{"PUT", "/admin/v1/revocations/many", 507, "many"},
		{"DELETE", "/admin/v1/revocations/e", 204, ""},
		{"DELETE", "/admin/v1/revocations/x", 404, "x"},
		{"DELETE", "/admin/v1/rooms/lab", 204, ""},
		{"DELETE", "/admin/v1/rooms/attic", 404, "attic"},
		{"POST", "/admin/v1/rooms/lab", 405, ""},
		{"GET", "/admin/v1/secrets", 404, ""},
	} {
		got := ask(a, test.method, test.path)
		if got.Code != test.status || !strings.Contains(got.Body.String(), test.text) ||
			got.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s: %d %s, expected %d with %s", test.method, test.path, got.Code, got.Body,
				test.status, test.text)
		}
	}
	if host.drained.Load() {
		t.Error("drained before it was asked for")
	}
	if got := ask(a, "POST", "/admin/v1/drain"); got.Code != http.StatusNoContent || !host.drained.Load() {
		t.Errorf("drain: %d, drained %t", got.Code, host.drained.Load())
	}
	if got := ask(NewAPI(gate{}, &fakeRooms{silent: true}, host, quiet{zap.NewNop()}, nil), "GET",
		"/admin/v1/rooms"); got.Code != http.StatusServiceUnavailable {
		t.Errorf("rooms that do not answer: %d", got.Code)
	}
}

func TestPutRoom(t *testing.T) {
	rooms := &fakeRooms{}
	a := NewAPI(gate{}, rooms, &fakeHost{}, quiet{zap.NewNop()}, nil)
	for _, test := range []struct {
		room, body, noneMatch string
		status                int
		text                  string
	}{
		{"lab", `{"max_participants": 1, "max_bitrate_bps": 5000000, "empty_timeout_ms": 9000}`, "", 201,
			`"settings":{`},
		{"lab", `{"max_participants": 2}`, "", 200, `"id":"r"`},
		{"lab", "", "", 200, `"name":"lab"`},
		{"lab", "{}", "*", 412, "exists"},
		{"lab", `{"max_participants": -1}`, "", 400, "max_participants"},
		{"lab", `{"max_guests": 2}`, "", 400, "max_guests"},
		{"lab", `{"max_participants": "2"}`, "", 400, "invalid body"},
		{"lab", `{"max_participants": 2`, "", 400, "invalid body"},
		{"lab", `{} {}`, "", 400, "one JSON object"},
		{"lab", `[]`, "", 400, "invalid body"},
		{"lab", `{"max_participants":` + strings.Repeat(" ", maxBodyBytes) + "1}", "", 400,
			"at most 131072 bytes"},
		{"attic", "{}", "", 507, "full"},
		{"cellar", "{}", "", 404, "has just ended"},
	} {
		r := httptest.NewRequest("PUT", "/admin/v1/rooms/"+test.room, strings.NewReader(test.body))
		if test.noneMatch != "" {
			r.Header.Set("If-None-Match", test.noneMatch)
		}
		w := httptest.NewRecorder()
		a.ServeHTTP(w, r)
		if w.Code != test.status || !strings.Contains(w.Body.String(), test.text) {
			t.Errorf("%s %.60s: %d %s, expected %d with %s", test.room, test.body, w.Code, w.Body, test.status,
				test.text)
		}
		if test.status == 201 && rooms.settings != (admission.RoomSettings{MaxParticipants: 1, MaxBitrate: 5e6,
			EmptyTimeoutMS: 9000}) {
			t.Errorf("the settings are %+v", rooms.settings)
		}
	}
}

// TestContent: the requests about messages, metadata, permissions, muting and attributes.
func TestContent(t *testing.T) {
	const room, ada = "/admin/v1/rooms/lab", "/admin/v1/rooms/lab/participants/ada"
	for _, test := range []struct {
		method, path, body string
		status             int
		actions            []string
	}{
		{"PUT", room, `{"max_participants": 1, "metadata": {"title": "Talk"}}`, 201,
			[]string{"metadata lab map[title:Talk]"}},
		{"PUT", room, `{"metadata": {"a\u0000": "x"}}`, 400, nil},
		{"PATCH", room, `{"metadata": {"title": ""}}`, 204, []string{"metadata lab map[title:]"}},
		{"PATCH", room, `{}`, 204, []string{"metadata lab map[]"}},
		{"PATCH", room, `{"settings": {}}`, 400, nil},
		{"POST", room + "/messages", `{"to": ["ada"], "topic": "chat", "text": "Hi"}`, 204,
			[]string{`data lab ["ada"] chat Hi `}},
		{"POST", room + "/messages", `{"topic": "state", "binary": "AQI="}`, 204, []string{`data lab [] state  0102`}},
		{"POST", room + "/messages", `{"binary": "!"}`, 400, nil},
		{"POST", room + "/messages", `{"text": "a", "binary": "AQI="}`, 400, []string{`data lab []  a 0102`}},
		{"POST", room + "/messages", `{"topic": "many"}`, 429, []string{`data lab [] many  `}},
		{"POST", room + "/messages", `{"topic": "full"}`, 400, []string{`data lab [] full  `}},
		{"POST", room + "/messages", `{"topic": "slow"}`, 503, []string{`data lab [] slow  `}},
		{"PATCH", ada, `{"muted": {"voice": true, "body": false}, "permissions": {"publish": false},
			"attributes": {"role": "guest"}}`, 204, []string{"permit lab ada publish false", "mute lab ada body false",
			"mute lab ada voice true", "attributes lab ada map[role:guest]"}},
		{"PATCH", ada, `{"muted": {"nothing": true}, "attributes": {}}`, 404, []string{"mute lab ada nothing true"}},
		{"PATCH", ada, `{"permissions": {"admin": true}}`, 400, nil},
		{"PATCH", ada, `{}`, 204, nil},
	} {
		rooms := &fakeRooms{}
		w := httptest.NewRecorder()
		NewAPI(gate{}, rooms, &fakeHost{}, quiet{zap.NewNop()}, nil).ServeHTTP(w,
			httptest.NewRequest(test.method, test.path, strings.NewReader(test.body)))
		if w.Code != test.status || !slices.Equal(rooms.actions, test.actions) {
			t.Errorf("%s %s %s: %d %s, actions %q, expected %d, %q", test.method, test.path, test.body, w.Code, w.Body,
				rooms.actions, test.status, test.actions)
		}
	}
}

func TestGate(t *testing.T) {
	for err, status := range map[error]int{
		nil:                                     200,
		fmt.Errorf("%w: why", ErrUnauthorized):  401,
		fmt.Errorf("%w: why", ErrForbidden):     403,
		errors.New("something that went wrong"): 401,
	} {
		got := ask(NewAPI(gate{err}, &fakeRooms{}, &fakeHost{}, quiet{zap.NewNop()}, nil), "GET", "/admin/v1/rooms")
		if got.Code != status || err != nil && !strings.Contains(got.Body.String(), err.Error()) {
			t.Errorf("%v: %d %s, expected %d", err, got.Code, got.Body, status)
		}
	}
}

func TestLoopback(t *testing.T) {
	for _, test := range []struct {
		peer, host, origin string
		admitted           bool
	}{
		{"127.0.0.1:5000", "127.0.0.1:9090", "", true},
		{"[::1]:5000", "[::1]:9090", "", true},
		{"[::ffff:127.0.0.1]:5000", "localhost:9090", "http://localhost:9090", true},
		{"127.0.0.1:5000", "localhost", "", true},
		{"192.0.2.1:5000", "127.0.0.1:9090", "", false},
		{"127.0.0.1:5000", "rebound.example.org:9090", "", false},
		{"127.0.0.1:5000", "127.0.0.1:9090", "https://example.org", false},
		{"127.0.0.1:5000", "127.0.0.1:9090", "http://127.0.0.1:8080", false},
		{"nonsense", "127.0.0.1:9090", "", false},
	} {
		r := httptest.NewRequest("POST", "/admin/v1/drain", nil)
		r.RemoteAddr, r.Host = test.peer, test.host
		if test.origin != "" {
			r.Header.Set("Origin", test.origin)
		}
		if err := (Loopback{}).Admit(r); (err == nil) != test.admitted || err != nil && !errors.Is(err, ErrForbidden) {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

func TestEvents(t *testing.T) {
	rooms := &fakeRooms{}
	server := httptest.NewServer(NewAPI(gate{}, rooms, &fakeHost{}, quiet{zap.NewNop()}, nil))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, "GET", server.URL+"/admin/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for i := range 2 {
		var s Snapshot
		for lines.Scan() && lines.Text() != "" {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				if err := json.Unmarshal([]byte(data), &s); err != nil {
					t.Fatal(err)
				}
			}
		}
		if s.Server.Version != "test" || len(s.Rooms) != 1 {
			t.Fatalf("event %d is %+v (%v)", i, s, lines.Err())
		}
		if samples := len(s.Rooms[0].Participants[0].Reception.History); (samples > 0) != (i == 0) {
			t.Errorf("event %d has %d samples", i, samples)
		}
	}
	cancel()
	server.CloseClientConnections()
	server.Client().CloseIdleConnections()
}

// TestLasting: the duration of a request is passed to the rooms.
func TestLasting(t *testing.T) {
	rooms := &fakeRooms{}
	a := NewAPI(gate{}, rooms, &fakeHost{}, quiet{zap.NewNop()}, nil)
	ask(a, "DELETE", "/admin/v1/rooms/lab/participants/ada?ban=90m")
	ask(a, "PUT", "/admin/v1/revocations/e?for=2160h")
	if rooms.ban != 90*time.Minute || rooms.lasts != 2160*time.Hour {
		t.Errorf("the ban lasts %v, the revocation %v", rooms.ban, rooms.lasts)
	}
}

// closingGate admits a limited number of times.
type closingGate struct{ left atomic.Int64 }

func (g *closingGate) Admit(*http.Request) error {
	if g.left.Add(-1) < 0 {
		return fmt.Errorf("%w: the token has ended", ErrUnauthorized)
	}
	return nil
}

// TestEventsEndWithTheToken: a stream of events ends with the token with which it was opened.
func TestEventsEndWithTheToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &closingGate{}
		g.left.Store(3)
		recorder := httptest.NewRecorder()
		// Returns only if the stream ends by itself.
		NewAPI(g, &fakeRooms{}, &fakeHost{}, quiet{zap.NewNop()}, nil).ServeHTTP(recorder,
			httptest.NewRequest("GET", "/admin/v1/events", nil))
		if events := strings.Count(recorder.Body.String(), "event: state"); events != 3 {
			t.Errorf("%d events arrived, expected 3", events)
		}
	})
}

// TestDescription compares openapi.yaml with the API: the operations are those of the API, and answers have exactly the
// described properties.
func TestDescription(t *testing.T) {
	var d struct {
		Paths      map[string]map[string]yaml.Node
		Components struct{ Schemas map[string]schema }
	}
	if err := yaml.Unmarshal(description, &d); err != nil {
		t.Fatal(err)
	}
	nodes := newTestCluster()
	a := NewAPI(gate{}, &fakeRooms{}, &fakeHost{}, quiet{zap.NewNop()}, &testCluster{
		nodes: []*testNode{nodes["a"], nodes["b"], nodes["d"]}, self: "a"})
	nodes["a"].api = a
	replace := strings.NewReplacer("{room}", "lab", "{identity}", "ada", "{id}", "e", "{node}", "b")
	body := func(path string) string {
		if strings.HasSuffix(path, "/move") {
			return `{"node": "b"}`
		}
		return ""
	}
	var described []string
	for path, methods := range d.Paths {
		for method := range methods {
			if method == "parameters" {
				continue
			}
			described = append(described, strings.ToUpper(method)+" "+path)
			got := askWith(a, strings.ToUpper(method), "/admin/v1"+replace.Replace(path), body(path))
			if got.Code >= 300 {
				t.Errorf("%s %s: %d %s", method, path, got.Code, got.Body)
			}
		}
	}
	routes := slices.Sorted(maps.Keys(a.routes()))
	if slices.Sort(described); !slices.Equal(described, routes) {
		t.Errorf("described are\n%s\nexpected\n%s", strings.Join(described, "\n"), strings.Join(routes, "\n"))
	}
	for _, route := range routes {
		if method, _, _ := strings.Cut(route, " "); !slices.Contains(Methods, method) {
			t.Errorf("%s has none of the methods %q that pages may use", route, Methods)
		}
	}
	for path, name := range map[string]string{
		"/admin/v1/server": "Server", "/admin/v1/rooms/lab?past=1": "Room", "/admin/v1/bans": "Bans",
		"/admin/v1/revocations": "Revocations", "/admin/v1/nodes": "Nodes",
	} {
		var body any
		if err := json.Unmarshal(ask(a, "GET", path).Body.Bytes(), &body); err != nil {
			t.Fatal(err)
		}
		conform(t, d.Components.Schemas, schema{Ref: "#/components/schemas/" + name}, name, body)
	}
}

// schema is the part of JSON Schema that the description uses.
type schema struct {
	Ref        string `yaml:"$ref"`
	Type       string
	Properties map[string]schema
	// Additional describes the values of a map.
	Additional *schema `yaml:"additionalProperties"`
	Required   []string
	Items      *schema
	Enum       []string
}

func conform(t *testing.T, all map[string]schema, s schema, where string, value any) {
	t.Helper()
	if s.Ref != "" {
		named, ok := all[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
		if !ok {
			t.Fatalf("%s: %s is not described", where, s.Ref)
		}
		s = named
	}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range s.Required {
			if _, ok := v[name]; !ok {
				t.Errorf("%s lacks %s", where, name)
			}
		}
		for name, part := range v {
			property, ok := s.Properties[name]
			if s.Additional != nil {
				property, ok = *s.Additional, true
			}
			if !ok {
				t.Errorf("%s.%s is not described", where, name)
				continue
			}
			conform(t, all, property, where+"."+name, part)
		}
	case []any:
		if s.Type != "array" || s.Items == nil {
			t.Errorf("%s is a list, described as %s", where, s.Type)
			return
		}
		for i, part := range v {
			conform(t, all, *s.Items, fmt.Sprintf("%s[%d]", where, i), part)
		}
	case string:
		if s.Type != "string" || len(s.Enum) > 0 && !slices.Contains(s.Enum, v) {
			t.Errorf("%s is %q, described as %s %v", where, v, s.Type, s.Enum)
		}
	case bool:
		if s.Type != "boolean" {
			t.Errorf("%s is %t, described as %s", where, v, s.Type)
		}
	case float64:
		if s.Type != "number" && s.Type != "integer" {
			t.Errorf("%s is %g, described as %s", where, v, s.Type)
		}
	}
}

func TestRecordings(t *testing.T) {
	rooms := &fakeRooms{}
	a := NewAPI(gate{}, rooms, &fakeHost{}, quiet{zap.NewNop()}, nil)
	for _, test := range []struct {
		method, path string
		status       int
		recorded     recording.Qualities
	}{
		{"POST", "/admin/v1/rooms/lab/recording", http.StatusNoContent, recording.Best},
		{"POST", "/admin/v1/rooms/lab/recording?qualities=all", http.StatusNoContent, recording.All},
		{"POST", "/admin/v1/rooms/lab/recording?qualities=worst", http.StatusBadRequest, recording.All},
		{"POST", "/admin/v1/rooms/attic/recording", http.StatusNotFound, recording.All},
		{"DELETE", "/admin/v1/rooms/attic/recording", http.StatusConflict, recording.All},
		{"DELETE", "/admin/v1/rooms/lab/recording", http.StatusNoContent, ""},
	} {
		if got := ask(a, test.method, test.path); got.Code != test.status || rooms.recorded != test.recorded {
			t.Errorf("%s %s: %d, recorded %q, expected %d and %q", test.method, test.path, got.Code, rooms.recorded,
				test.status, test.recorded)
		}
	}
}
