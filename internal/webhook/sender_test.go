package webhook

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/volsfu/volsfu/pkg/webhook"
	"github.com/volsfu/volsfu/test/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// keyText returns the text of a key.
func keyText(letter string) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, 32)))
}

func keyFile(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// backend is an endpoint that verifies requests and records events.
type backend struct {
	*httptest.Server
	receiver *webhook.Receiver

	mu     sync.Mutex
	events []webhook.Event
	wrong  []error
	// answer handles a request instead if it returns true.
	answer func(w http.ResponseWriter, r *http.Request) bool
}

func newBackend(t *testing.T, answer func(http.ResponseWriter, *http.Request) bool) *backend {
	t.Helper()
	receiver, err := webhook.NewReceiver(keyText("a"))
	if err != nil {
		t.Fatal(err)
	}
	b := &backend{receiver: receiver, answer: answer}
	b.Server = httptest.NewServer(b)
	t.Cleanup(b.Close)
	return b
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if b.answer != nil && b.answer(w, r) {
		return
	}
	e, err := b.receiver.Event(r)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		b.wrong = append(b.wrong, err)
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	b.events = append(b.events, e)
}

func (b *backend) received() ([]webhook.Event, []error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.events), slices.Clone(b.wrong)
}

func (b *backend) count() int {
	events, _ := b.received()
	return len(events)
}

func begin(t *testing.T, log *zap.Logger, keys []string, urls ...string) *Sender {
	t.Helper()
	s, err := Start(Config{URLs: urls, KeyFile: keyFile(t, keys...)}, "test", log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		s.Stop(over)
	})
	return s
}

func eventOf(room string, sequence uint64) webhook.Event {
	return webhook.Event{Kind: webhook.ParticipantJoined, At: time.Now(), Room: webhook.Room{Name: room, ID: room},
		Sequence: sequence, Participant: &webhook.Participant{Identity: "ada"}}
}

// TestDelivery: events arrive signed, once, and in the order of their room at two endpoints, one of which fails at
// first. The bodies of both have the same ids.
func TestDelivery(t *testing.T) {
	failures := 3
	var mu sync.Mutex
	steady := newBackend(t, nil)
	flaky := newBackend(t, func(w http.ResponseWriter, _ *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if failures--; failures >= 0 {
			http.Error(w, "not yet", http.StatusBadGateway)
			return true
		}
		return false
	})
	s := begin(t, zap.NewNop(), []string{"# keys", keyText("b"), "", keyText("a")}, steady.URL, flaky.URL+"/hook?x=1")
	const rooms, events = 5, 20
	for n := range events {
		for room := range rooms {
			s.RoomEvent(eventOf(fmt.Sprint(room), uint64(n+1)))
		}
	}
	wait.Until(t, "all events", func() bool { return s.Stats().Delivered == 2*rooms*events })
	var ids [2]map[string]bool
	for i, b := range []*backend{steady, flaky} {
		got, wrong := b.received()
		if len(got) != rooms*events || len(wrong) > 0 {
			t.Fatalf("%d events, errors %v", len(got), wrong)
		}
		ids[i] = make(map[string]bool)
		last := make(map[string]uint64)
		for _, e := range got {
			if e.Sequence != last[e.Room.Name]+1 {
				t.Errorf("room %s: event %d follows event %d", e.Room.Name, e.Sequence, last[e.Room.Name])
			}
			last[e.Room.Name] = e.Sequence
			ids[i][e.ID] = true
		}
		if len(ids[i]) != rooms*events {
			t.Errorf("%d different ids", len(ids[i]))
		}
	}
	for id := range ids[0] {
		if !ids[1][id] {
			t.Errorf("event %s has different ids at the endpoints", id)
		}
	}
	if stats := s.Stats(); stats.Rejected != 3 || stats.Failed != 0 || stats.Queued != 0 ||
		stats.Accepted != 2*rooms*events {
		t.Errorf("counted: %+v", stats)
	}
}

// TestSlowEndpoint: an endpoint that never answers delays neither the server nor another endpoint.
func TestSlowEndpoint(t *testing.T) {
	release := make(chan struct{})
	slow := newBackend(t, func(_ http.ResponseWriter, r *http.Request) bool {
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return true
	})
	defer close(release)
	quick := newBackend(t, nil)
	s := begin(t, zap.NewNop(), []string{keyText("a")}, slow.URL, quick.URL)
	const events = 2 * maxQueued
	began := time.Now()
	for n := range events {
		s.RoomEvent(eventOf(fmt.Sprint(n%40), uint64(n)))
		if n%1000 == 999 {
			// The queue of the quick endpoint must not become full.
			wait.Until(t, "the quick endpoint", func() bool { return quick.count() > n-maxQueued/2 })
		}
	}
	t.Logf("%d events were queued in %v", events, time.Since(began))
	wait.Until(t, "all events at the quick endpoint", func() bool { return s.Stats().Delivered == events })
	if got := quick.count(); got != events {
		t.Errorf("the quick endpoint has received %d of %d events", got, events)
	}
	if stats := s.Stats(); stats.Queued != maxQueued || stats.Full != events-maxQueued {
		t.Errorf("counted: %+v, expected a full queue", stats)
	}
}

// TestRedirect: a redirect is not followed.
func TestRedirect(t *testing.T) {
	internal := newBackend(t, nil)
	open := newBackend(t, func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, internal.URL, http.StatusTemporaryRedirect)
		return true
	})
	s := begin(t, zap.NewNop(), []string{keyText("a")}, open.URL)
	s.RoomEvent(eventOf("lab", 1))
	wait.Until(t, "the redirect", func() bool { return s.Stats().Rejected > 0 })
	if got, wrong := internal.received(); len(got)+len(wrong) > 0 {
		t.Error("the redirect was followed")
	}
}

// TestLogHidesSecrets: the log names the host of an endpoint, and neither the address's query nor a key. Failures are
// logged once, and so is the recovery.
func TestLogHidesSecrets(t *testing.T) {
	core, lines := observer.New(zapcore.DebugLevel)
	b := newBackend(t, nil)
	s := begin(t, zap.New(core), []string{keyText("a")}, b.URL+"/secretpath?token=secretquery")
	b.CloseClientConnections()
	refusing := b.Listener.Addr().String()
	b.Listener.Close()
	s.RoomEvent(eventOf("lab", 1))
	// A failure is counted before its line is written.
	wait.Until(t, "two failures and a line", func() bool { return s.Stats().Failed >= 2 && lines.Len() > 0 })
	if lines.Len() != 1 {
		t.Errorf("%d lines, expected one", lines.Len())
	}
	for _, line := range lines.All() {
		text := fmt.Sprint(line.Message, line.ContextMap())
		if strings.Contains(text, "secret") || strings.Contains(text, "whsec") || !strings.Contains(text, refusing) {
			t.Errorf("logged: %s", text)
		}
	}
}

// TestStop: the waiting events are sent when the server stops. Events for an endpoint that does not answer are dropped
// and counted.
func TestStop(t *testing.T) {
	b := newBackend(t, nil)
	s := begin(t, zap.NewNop(), []string{keyText("a")}, b.URL)
	for n := range 100 {
		s.RoomEvent(eventOf("lab", uint64(n+1)))
	}
	s.Stop(context.Background())
	if got, _ := b.received(); len(got) != 100 {
		t.Errorf("%d events arrived, expected 100", len(got))
	}
	dead := newBackend(t, func(_ http.ResponseWriter, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
		return true
	})
	s = begin(t, zap.NewNop(), []string{keyText("a")}, dead.URL)
	s.RoomEvent(eventOf("lab", 1))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	s.Stop(ctx)
	if stats := s.Stats(); stats.Stopped != 1 {
		t.Errorf("counted: %+v", stats)
	}
}

// TestReload: requests are signed with the keys of the file as it was read last, and an invalid file changes nothing.
func TestReload(t *testing.T) {
	b := newBackend(t, nil)
	path := keyFile(t, keyText("b"))
	s, err := Start(Config{URLs: []string{b.URL}, KeyFile: path}, "test", zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop(context.Background())
	s.RoomEvent(eventOf("lab", 1))
	wait.Until(t, "a refusal of the wrong key", func() bool { return s.Stats().Rejected > 0 })
	for _, text := range []string{"", "whsec_short", keyText("a")} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := s.Reload()
		if (err == nil) != (text == keyText("a")) || err != nil && strings.Contains(err.Error(), "short") {
			t.Errorf("keys %q: error is %v", text, err)
		}
	}
	wait.Until(t, "delivery by the new key", func() bool { return b.count() == 1 })
}

func TestConfig(t *testing.T) {
	many := slices.Repeat([]string{"https://a.example"}, maxEndpoints+1)
	for _, test := range []struct {
		urls  []string
		file  string
		valid bool
	}{
		{nil, "", true},
		{nil, "keys", true},
		{[]string{"https://backend.example.org/volsfu?tenant=1", "http://127.0.0.1:8000"}, "keys", true},
		{[]string{"https://backend.example.org"}, "", false},
		{[]string{"backend.example.org"}, "keys", false},
		{[]string{"ftp://backend.example.org"}, "keys", false},
		{[]string{"https://"}, "keys", false},
		{[]string{"https://user:pass@backend.example.org"}, "keys", false},
		{[]string{"https://backend.example.org/#x"}, "keys", false},
		{many, "keys", false},
	} {
		err := Config{URLs: test.urls, KeyFile: test.file}.Validate()
		if (err == nil) != test.valid || err != nil && (!errors.Is(err, ErrConfig) ||
			strings.Contains(err.Error(), "pass@")) {
			t.Errorf("%+v: error is %v", test, err)
		}
	}
	for name, file := range map[string]string{
		"an absent file": filepath.Join(t.TempDir(), "absent"), "no key": keyFile(t, "# none"),
		"many keys": keyFile(t, slices.Repeat([]string{keyText("a")}, maxKeys+1)...),
		"huge":      keyFile(t, strings.Repeat("#", maxKeyFileBytes+1)),
	} {
		if _, err := Start(Config{URLs: []string{"http://127.0.0.1:1"}, KeyFile: file}, "", zap.NewNop()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
