package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/cmd/volsfu/internal/operate"
	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

// run runs a command line, and returns its standard output.
func run(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := newRoot()
	root.SetOut(&out)
	root.SetArgs(arguments)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// TestOperate lists, removes and drains by the commands, on a server with two participants.
func TestOperate(t *testing.T) {
	t.Setenv(config.TokenVariable, "")
	c, err := testbed.NewConference(testbed.ConferenceConfig(), nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	server := "--server=http://" + c.Server.AdminAddress()
	for _, identity := range []string{"ada", "grace hopper"} {
		if _, err := c.Join(t.Context(), testbed.Part{Room: "a/b c", Identity: identity, Receive: true}); err != nil {
			t.Fatal(err)
		}
	}
	table, err := run(t, "rooms", server)
	if lines := strings.Split(table, "\n"); err != nil || len(lines) != 3 || !strings.HasPrefix(lines[1], "a/b c  2 ") {
		t.Errorf("the rooms are %q, %v", table, err)
	}
	table, err = run(t, "rooms", "a/b c", server)
	if err != nil || !strings.Contains(table, "\nada ") || !strings.Contains(table, "\ngrace hopper ") {
		t.Errorf("the room is %q, %v", table, err)
	}
	var room sfu.RoomState
	text, err := run(t, "rooms", "a/b c", server, "--json")
	if err != nil || json.Unmarshal([]byte(text), &room) != nil || len(room.Participants) != 2 {
		t.Errorf("as JSON the room is %q, %v", text, err)
	}
	if text, err := run(t, "kick", "a/b c", "grace hopper", "--ban", "1h", server); err != nil || text != "" {
		t.Errorf("kick: %q, %v", text, err)
	}
	wait.Until(t, "one participant remains", func() bool {
		table, err := run(t, "rooms", "a/b c", server)
		return err == nil && strings.Contains(table, "\nada ") && !strings.Contains(table, "grace")
	})
	for _, test := range []struct {
		arguments []string
		want      error
		status    int
	}{
		{[]string{"rooms", "none", server}, operate.ErrAbsent, statusAbsent},
		{[]string{"kick", "a/b c", "nobody", server}, operate.ErrAbsent, statusAbsent},
		// The segment ".." of a path would make the request one for the room.
		{[]string{"kick", "a/b c", "..", server}, operate.ErrAbsent, statusAbsent},
		{[]string{"kick", "a/b c", "..", "--ban", "1h", server}, operate.ErrAnswer, statusFailed},
		{[]string{"kick", "a/b c", "ada", "--ban", "-1h", server}, operate.ErrAnswer, statusFailed},
		{[]string{"rooms", "--server", "http://127.0.0.1:1"}, operate.ErrUnreachable, statusUnreachable},
		{[]string{"rooms", "--server", "127.0.0.1:9090"}, nil, statusFailed},
		{[]string{"rooms", "--server", "wss://127.0.0.1:9090"}, nil, statusFailed},
		{[]string{"rooms", "--ca", "/nonexistent", server}, nil, statusFailed},
		{[]string{"rooms", "a", "b", server}, nil, statusFailed},
	} {
		text, err := run(t, test.arguments...)
		if err == nil || test.want != nil && !errors.Is(err, test.want) || statusOf(err) != test.status || text != "" {
			t.Errorf("%q: %q, %v with status %d", test.arguments, text, err, statusOf(err))
		}
	}
	if _, err := run(t, "drain", server); err != nil {
		t.Error(err)
	}
	select {
	case <-c.Server.DrainRequested():
	case <-time.After(wait.Patience):
		t.Error("no drain was requested")
	}
}

// TestOperateWithToken uses the clients' listener, which needs a token with the admin grant.
func TestOperateWithToken(t *testing.T) {
	settings := testbed.ConferenceConfig()
	participant, err := testbed.RequireToken(&settings)
	if err != nil {
		t.Fatal(err)
	}
	c, err := testbed.NewConference(settings, nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	server := "--server=" + strings.Replace(c.Server.URL(), "ws", "http", 1)
	operator, err := run(t, "token", "--auth-keys", settings.Auth.Keys[0], "--admin")
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]error{"": operate.ErrRefused, participant: operate.ErrRefused, operator: nil} {
		t.Setenv(config.TokenVariable, strings.TrimSpace(token))
		if _, err := run(t, "rooms", server); !errors.Is(err, want) || want != nil && statusOf(err) != statusRefused {
			t.Errorf("with the token %q: %v", token, err)
		}
	}
	t.Setenv(config.TokenVariable, participant)
	if _, err := run(t, "rooms", server, "--token", strings.TrimSpace(operator)); err != nil {
		t.Errorf("with the token as a flag: %v", err)
	}
}

// TestDrainWaits: drain --wait returns when the server has ended, and fails if it has not.
func TestDrainWaits(t *testing.T) {
	t.Setenv(config.TokenVariable, "")
	asked := make(chan struct{}, 16)
	handler := http.NewServeMux()
	handler.HandleFunc("POST /admin/v1/drain", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	})
	handler.HandleFunc("GET /admin/v1/server", func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		_, _ = w.Write([]byte("{}"))
	})
	server := httptest.NewServer(handler)
	go func() {
		<-asked
		server.Close()
	}()
	if _, err := run(t, "drain", "--wait", wait.Patience.String(), "--server", server.URL); err != nil {
		t.Errorf("the server has ended: %v", err)
	}
	running := httptest.NewServer(handler)
	defer running.Close()
	if _, err := run(t, "drain", "--wait", "1ms", "--server", running.URL); err == nil {
		t.Error("the server runs: expected an error")
	}
}

// TestNodes: the commands show the nodes of a cluster, name those that do not answer, and wait for one to end.
func TestNodes(t *testing.T) {
	t.Setenv(config.TokenVariable, "")
	var draining atomic.Bool
	handler := http.NewServeMux()
	handler.HandleFunc("GET /admin/v1/nodes", func(w http.ResponseWriter, _ *http.Request) {
		state := "alive"
		if draining.Load() {
			state = "dead"
		}
		_, _ = fmt.Fprintf(w, `{"nodes": [
			{"name": "a", "self": true, "state": "alive", "load": 0.25, "rooms": 2, "participants": 7},
			{"name": "b", "region": "eu", "state": %q, "draining": true, "url": "wss://b.example.org",
				"trunk": {"lanes": 1, "rtt_ms": 0.42}}]}`, state)
	})
	handler.HandleFunc("POST /admin/v1/nodes/b/drain", func(w http.ResponseWriter, _ *http.Request) {
		draining.Store(true)
		w.WriteHeader(http.StatusNoContent)
	})
	handler.HandleFunc("GET /admin/v1/rooms", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"rooms": [{"name": "lab", "nodes": ["a", "b"], "participants": [{}]}],
			"failed": [{"node": "c", "error": "the node does not answer within 3s"}]}`))
	})
	handler.HandleFunc("GET /admin/v1/rooms/lab", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"name": "lab", "participants": [{"identity": "ada", "node": "b"}]}`))
	})
	server := httptest.NewServer(handler)
	defer server.Close()
	for _, test := range []struct {
		arguments, want []string
	}{
		{[]string{"nodes"}, []string{"\na     -       alive, replies ", " 25 %  2      7 ", "eu      alive, draining ",
			" 0.4 ms  wss://b.example.org\n"}},
		{[]string{"rooms"}, []string{"NODES\n", " a,b\n"}},
		{[]string{"rooms", "lab"}, []string{"NODE\nada ", " b\n"}},
		{[]string{"nodes", "--json"}, []string{`"draining": true`}},
	} {
		text, err := run(t, append(test.arguments, "--server", server.URL)...)
		for _, want := range test.want {
			if err != nil || !strings.Contains(text, want) {
				t.Errorf("%q: %s, %v, expected %q", test.arguments, text, err, want)
			}
		}
	}
	var missing bytes.Buffer
	root := newRoot()
	root.SetOut(io.Discard)
	root.SetErr(&missing)
	root.SetArgs([]string{"rooms", "--server", server.URL})
	err := root.ExecuteContext(t.Context())
	if err != nil || !strings.Contains(missing.String(), "of node c are missing") {
		t.Errorf("standard error is %q, %v", &missing, err)
	}
	if _, err := run(t, "drain", "--node", "b", "--wait", wait.Patience.String(), "--server", server.URL); err != nil {
		t.Errorf("node b has ended: %v", err)
	}
	if _, err := run(t, "drain", "--node", "z", "--server", server.URL); !errors.Is(err, operate.ErrAnswer) {
		t.Errorf("an unknown node: %v", err)
	}
}

// TestForeignAnswers: answers of another program, and texts that a terminal would interpret.
func TestForeignAnswers(t *testing.T) {
	t.Setenv(config.TokenVariable, "secret")
	answering := func(status int, body string) (url string) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if sent := r.Header.Get("Authorization"); sent != "Bearer secret" {
				t.Errorf("the server received %q", sent)
			}
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	for _, test := range []struct {
		status int
		body   string
		want   error
	}{
		{200, "<html>", operate.ErrAnswer}, {200, "[]", operate.ErrAnswer}, {502, "bad gateway", operate.ErrAnswer},
		{302, "", operate.ErrAnswer}, {403, `{"error":"\u001b[31mno"}`, operate.ErrRefused},
	} {
		_, err := run(t, "rooms", "--server", answering(test.status, test.body))
		if !errors.Is(err, test.want) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%d %q: %q", test.status, test.body, err)
		}
	}
	url := answering(200, `{"rooms":[{"name":"a\u009b31m","participants":[]}]}`)
	if table, err := run(t, "rooms", "--server", url); err != nil || strings.Contains(table, "\u009b") {
		t.Errorf("the table is %q, %v", table, err)
	}
}
