package control

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/auth"
	"github.com/volsfu/volsfu/test/wait"
)

var admin = auth.Claims{Identity: "operator", Admin: true}

func TestOrdersReachTheEdge(t *testing.T) {
	r := newRig(t)
	edge := &recorder{}
	r.connect("studio", edge)
	o := r.operator(admin)
	ctx := t.Context()

	state, err := o.Order(ctx, "studio", Order{Rule: "conference", Copies: "fibre,lte"})
	if err != nil {
		t.Fatal(err)
	}
	// A poll that is held is answered at once, so that only a busy machine does not answer within the hold time.
	wait.Until(t, "the order is carried out", func() bool { return len(edge.applied()) == 1 })
	if got := edge.applied()[0]; got.Rule != "conference" || got.Copies != "fibre,lte" {
		t.Errorf("the edge has the order %+v (state %s)", got, state)
	}
	trigger := Order{Rule: "conference", Trigger: Start, For: Duration(time.Minute)}
	if _, err := o.Order(ctx, "studio", trigger); err != nil {
		t.Error(err)
	}
	wait.Until(t, "the states are known", func() bool {
		e, err := o.Edge(ctx, "studio")
		return err == nil && e.Connected && len(e.Orders) == 2 && e.Orders[0].State == Applied &&
			e.Orders[1].State == Applied && strings.Contains(string(e.Status), `"orders":2`)
	})
	edges, err := o.Edges(ctx)
	if err != nil || len(edges) != 1 || edges[0].Name != "studio" || edges[0].Orders[1].Expires.IsZero() {
		t.Errorf("the edges are %+v, %v", edges, err)
	}
}

func TestRefusedByTheEdge(t *testing.T) {
	r := newRig(t)
	r.hold = time.Minute
	edge := &recorder{}
	r.connect("studio", edge)
	_, err := r.operator(admin).Order(t.Context(), "studio", Order{Rule: "typo", Copies: "all"})
	if !errors.Is(err, ErrOrder) || !strings.Contains(err.Error(), "there is no rule typo") {
		t.Errorf("the error is %v, expected the reason of the edge", err)
	}
	if len(edge.applied()) != 0 {
		t.Errorf("the edge has the orders %v", edge.applied())
	}
}

// TestAbsentEdge makes an order for an edge that is not connected, which has it when it returns.
func TestAbsentEdge(t *testing.T) {
	r := newRig(t)
	_, leave := r.connect("studio", &recorder{})
	leave()
	r.mu.Lock()
	r.ledger.edges["studio"].lastPoll = time.Now().Add(-aliveFor)
	r.mu.Unlock()
	o := r.operator(admin)
	state, err := o.Order(t.Context(), "studio", Order{Copies: "all"})
	if err != nil || state != Pending {
		t.Errorf("the order is %q, %v, expected pending", state, err)
	}
	if _, err := o.Order(t.Context(), "other", Order{Copies: "all"}); !errors.Is(err, ErrNoEdge) {
		t.Errorf("an order for an unknown edge: %v", err)
	}
	edge := &recorder{}
	r.connect("studio", edge)
	wait.Until(t, "the order is carried out", func() bool { return len(edge.applied()) == 1 })
}

// TestControllerDiesAndReturns: the edge keeps its orders, those of the socket included.
func TestControllerDiesAndReturns(t *testing.T) {
	r := newRig(t)
	edge := &recorder{}
	link, leave := r.connect("studio", edge)
	o := r.operator(admin)
	if _, err := o.Order(t.Context(), "studio", Order{Rule: "conference", Copies: "all"}); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the order is carried out", func() bool { return len(edge.applied()) == 1 })

	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the edge notices", func() bool { return !link.State().Connected })
	if s := link.State(); s.Failures == 0 || !strings.Contains(s.Error, ErrUnreachable.Error()) {
		t.Errorf("the state is %+v", s)
	}
	// An operator on the host decides in the meantime.
	if err := edge.Apply(Order{Rule: "conference", Copies: "off"}); err != nil {
		t.Fatal(err)
	}
	r.start()
	wait.Until(t, "the edge is connected again", func() bool { return link.State().Connected })
	wait.Until(t, "the controller knows the order", func() bool {
		e, err := o.Edge(t.Context(), "studio")
		return err == nil && len(e.Orders) == 1 && e.Orders[0].State == Applied
	})
	if got := edge.applied(); len(got) != 2 || got[1].Copies != "off" {
		t.Errorf("the edge has carried out %+v, expected the order of the socket last", got)
	}

	// An edge that starts again has lost its orders.
	leave()
	edge = &recorder{}
	r.connect("studio", edge)
	wait.Until(t, "the new edge has the order", func() bool { return len(edge.applied()) == 1 })
}

func TestTokens(t *testing.T) {
	r := newRig(t)
	r.connect("studio", &recorder{})
	expired := time.Now().Add(-time.Hour)
	for _, test := range []struct {
		name          string
		claims        auth.Claims
		poll, operate error
	}{
		{"an operator", admin, ErrForbidden, nil},
		{"the edge", auth.Claims{Identity: "studio", Edge: true}, nil, ErrForbidden},
		{"another edge", auth.Claims{Identity: "office", Edge: true}, ErrForbidden, ErrForbidden},
		{"an edge without a name", auth.Claims{Edge: true}, ErrForbidden, ErrForbidden},
		{"a participant with the name of the edge", auth.Claims{Identity: "studio", Publish: true, Subscribe: true},
			ErrForbidden, ErrForbidden},
		{"an expired operator", auth.Claims{Admin: true, Expires: expired}, ErrUnauthorized, ErrUnauthorized},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := r.operator(test.claims)
			err := o.requests.do(t.Context(), http.MethodPost, "/v1/edges/studio/poll",
				poll{Run: "other", Status: []byte(`{}`)}, nil)
			if !errors.Is(err, test.poll) {
				t.Errorf("polling: %v, expected %v", err, test.poll)
			}
			if _, err := o.Edges(t.Context()); !errors.Is(err, test.operate) {
				t.Errorf("operating: %v, expected %v", err, test.operate)
			}
		})
	}
	t.Run("nobody", func(t *testing.T) {
		o := r.operator(admin)
		o.requests.tokenFile = ""
		if _, err := o.Edges(t.Context()); !errors.Is(err, ErrUnauthorized) {
			t.Errorf("without a token: %v", err)
		}
	})
}

func TestInvalidRequests(t *testing.T) {
	r := newRig(t)
	r.connect("studio", &recorder{})
	send := func(claims auth.Claims, path, body string) (int, string) {
		token, err := os.ReadFile(r.token(claims))
		if err != nil {
			t.Fatal(err)
		}
		request := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		recorder := httptest.NewRecorder()
		r.handler().ServeHTTP(recorder, request)
		return recorder.Code, recorder.Body.String()
	}
	studio := auth.Claims{Identity: "studio", Edge: true}
	large := `{"run":"r","status":"` + strings.Repeat("x", maxStatusBytes) + `"}`
	for _, test := range []struct {
		claims     auth.Claims
		path, body string
		status     int
		want       string
	}{
		{studio, "/v1/edges/studio/poll", "", http.StatusBadRequest, "EOF"},
		{studio, "/v1/edges/studio/poll", `{"status":{}}`, http.StatusBadRequest, "run has 0 bytes"},
		{studio, "/v1/edges/studio/poll", large, http.StatusBadRequest, "more than 65536 bytes"},
		{admin, "/v1/edges/studio/orders", `{"rule":"` + strings.Repeat("x", maxOrderBytes) + `"}`,
			http.StatusBadRequest, "more than 4096 bytes"},
		{admin, "/v1/edges/studio/orders", `{"rule":"a"}`, http.StatusUnprocessableEntity,
			"expected copies or trigger"},
		{admin, "/v1/edges/studio/orders", `{"verb":"a"}`, http.StatusBadRequest, "unknown field"},
		{admin, "/v1/edges/office/orders", `{"copies":"all"}`, http.StatusNotFound, `unknown edge \"office\"`},
		{auth.Claims{Identity: "a/b", Edge: true}, "/v1/edges/a%2Fb/poll", `{"run":"r","status":{}}`,
			http.StatusBadRequest, "printable"},
	} {
		status, body := send(test.claims, test.path, test.body)
		if status != test.status || !strings.Contains(body, test.want) {
			t.Errorf("%s %.60s: %d %s, expected %d with %q", test.path, test.body, status, body, test.status, test.want)
		}
	}
}

// TestRequestsAreLimited sends from an address that is not this host's: those are not limited.
func TestRequestsAreLimited(t *testing.T) {
	r := newRig(t)
	handler := r.limited(r.handler())
	limited := 0
	for range requestBurst + 20 {
		request := httptest.NewRequest(http.MethodGet, "/v1/edges", nil)
		request.RemoteAddr = "192.0.2.1:40000"
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		switch recorder.Code {
		case http.StatusTooManyRequests:
			limited++
		case http.StatusUnauthorized:
		default:
			t.Fatalf("status %d", recorder.Code)
		}
		if recorder.Header().Get("Connection") != "close" {
			t.Fatal("a stranger keeps the connection")
		}
	}
	if limited == 0 {
		t.Errorf("none of %d requests at once is limited", requestBurst+20)
	}
}

// TestPollsOfOneEdgeReplaceEachOther: an edge does not hold more than one request.
func TestPollsOfOneEdgeReplaceEachOther(t *testing.T) {
	r := newRig(t)
	r.hold = time.Minute
	o := r.operator(auth.Claims{Identity: "studio", Edge: true})
	first := make(chan error, 1)
	// The first poll of a run is answered at once.
	send := func(ctx context.Context) error {
		return o.requests.do(ctx, http.MethodPost, "/v1/edges/studio/poll", poll{Run: "r", Status: []byte(`{}`)}, nil)
	}
	if err := send(t.Context()); err != nil {
		t.Fatal(err)
	}
	go func() { first <- send(context.Background()) }()
	wait.Until(t, "the first poll is held", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.changed["studio"] != nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	second := make(chan error, 1)
	go func() { second <- send(ctx) }()
	if err := <-first; err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-second; !errors.Is(err, ErrUnreachable) {
		t.Errorf("the second poll ends with %v", err)
	}
}

// roundTripper is a function that answers requests.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestCancelledRequestIsAnswered: the answer to a cancelled request is not an error of the controller.
func TestCancelledRequestIsAnswered(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := requester{base: "http://controller", http: &http.Client{Transport: roundTripper(
		func(*http.Request) (*http.Response, error) {
			cancel()
			recorder := httptest.NewRecorder()
			recorder.WriteHeader(http.StatusInternalServerError)
			return recorder.Result(), nil
		})}}
	err := r.do(ctx, http.MethodGet, "/v1/edges", nil, nil)
	if !errors.Is(err, ErrUnreachable) || !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled request ends with %v", err)
	}
}

func TestForget(t *testing.T) {
	r := newRig(t)
	_, leave := r.connect("studio", &recorder{})
	leave()
	o := r.operator(admin)
	if err := o.requests.do(t.Context(), http.MethodDelete, "/v1/edges/studio", nil, nil); err != nil {
		t.Error(err)
	}
	if _, err := o.Edge(t.Context(), "studio"); !errors.Is(err, ErrNoEdge) {
		t.Errorf("a forgotten edge: %v", err)
	}
}

func TestControllerDoesNotStart(t *testing.T) {
	r := newRig(t)
	for name, change := range map[string]func(*ControllerConfig){
		"no certificate": func(c *ControllerConfig) { c.TLSCert = c.State + ".none" },
		"a file of something else": func(c *ControllerConfig) {
			c.State = c.TLSKey
		},
		"a port in use": func(*ControllerConfig) {},
	} {
		config := r.config
		change(&config)
		if c, err := StartController(config, zap.NewNop()); err == nil {
			_ = c.Stop()
			t.Errorf("%s: the controller starts", name)
		}
	}
}

func TestRemoteAddresses(t *testing.T) {
	for _, address := range []string{"", "controller:8443", "http://controller", "https://", "https://u:p@controller",
		"https://controller?x", "https://controller#x", "https://control ler"} {
		if _, err := NewOperator(address, "token"); !errors.Is(err, ErrRequest) {
			t.Errorf("%q: %v", address, err)
		}
	}
	r := newRig(t)
	o := r.operator(admin)
	for name, content := range map[string][]byte{"empty": nil, "two lines": []byte("a\nb\n"),
		"large": bytes.Repeat([]byte("x"), maxTokenFileBytes+1)} {
		write(t, o.requests.tokenFile, content)
		if _, err := o.Edges(t.Context()); !errors.Is(err, ErrRequest) {
			t.Errorf("a token file that is %s: %v", name, err)
		}
	}
}

func TestRetry(t *testing.T) {
	var got []time.Duration
	last := time.Duration(0)
	for range 7 {
		last = nextRetry(last)
		got = append(got, last)
	}
	if got[0] != minRetry || got[1] != 2*minRetry || got[6] != maxRetry {
		t.Errorf("the waits are %v", got)
	}
}
