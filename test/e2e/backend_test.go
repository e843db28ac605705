package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/pkg/webhook"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

// webhookKey is the key of the server and the backend.
var webhookKey = "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))

// backend records the events that it receives.
type backend struct {
	*httptest.Server
	mu     sync.Mutex
	events []webhook.Event
	errs   []error
}

func newBackend(t *testing.T) *backend {
	t.Helper()
	receiver, err := webhook.NewReceiver(webhookKey)
	if err != nil {
		t.Fatal(err)
	}
	b := &backend{}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e, err := receiver.Event(r)
		b.mu.Lock()
		defer b.mu.Unlock()
		if err != nil {
			b.errs = append(b.errs, err)
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		b.events = append(b.events, e)
	}))
	return b
}

// lines returns the events of a room as text.
func (b *backend) lines(t *testing.T, room string) (lines []string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, err := range b.errs {
		t.Error(err)
	}
	for _, e := range b.events {
		if e.Room.Name != room {
			continue
		}
		line := string(e.Kind)
		if e.Participant != nil {
			line += " " + e.Participant.Identity
		}
		if e.Publication != nil {
			line += fmt.Sprintf(" %s %s %d×%d", e.Publication.Name, e.Publication.Codec, e.Publication.Tiles,
				e.Publication.Qualities)
		}
		if e.Reason != "" {
			line += ": " + e.Reason
		}
		lines = append(lines, line)
	}
	return lines
}

// startWithBackend starts a conference whose events are posted to the backend, and to an address without a listener.
func startWithBackend(t *testing.T, b *backend) *testbed.Conference {
	t.Helper()
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte(webhookKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := startConference(t, func(c *config.Config) {
		c.Admin.Listen = "127.0.0.1:0"
		c.Webhooks.URLs, c.Webhooks.KeyFile = []string{b.URL, "http://127.0.0.1:1/nobody"}, keys
	})
	// Before the conference ends, whose end checks for goroutines.
	t.Cleanup(b.Close)
	return c
}

// TestWebhooks: a backend receives the events of a conference in their order, although another address is dead.
func TestWebhooks(t *testing.T) {
	b := newBackend(t)
	c := startWithBackend(t, b)
	ada := join(t, c, testbed.Part{Identity: "ada", Room: "lab", Loads: []testbed.Load{body(2, 2)}})
	eye := join(t, c, testbed.Part{Identity: "eye", Room: "lab", Receive: true})
	ada.Leave()
	eye.Leave()
	want := []string{
		"room_started", "participant_joined ada", "published ada body video/volumetric 2×2", "participant_joined eye",
		"unpublished ada body video/volumetric 2×2", "participant_left ada: left", "participant_left eye: left",
		"room_ended",
	}
	wait.Until(t, "all events arrived", func() bool { return len(b.lines(t, "lab")) >= len(want) })
	if got := b.lines(t, "lab"); !slices.Equal(got, want) {
		t.Errorf("the events are\n%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for series, least := range map[string]float64{
		`volsfu_webhook_events_total{outcome="delivered"}`:   8,
		`volsfu_webhook_deliveries_total{result="accepted"}`: 8,
		`volsfu_webhook_deliveries_total{result="failed"}`:   1,
		`volsfu_webhook_queued_events`:                       8,
	} {
		wait.Until(t, series, func() bool {
			value, err := c.Metric(t.Context(), series)
			return err == nil && value >= least
		})
	}
}

// curl is a request of a shell example.
type curl struct{ method, url, body, noneMatch string }

// curls returns the requests in the shell examples of a page.
func curls(t *testing.T, page string) (requests []curl) {
	t.Helper()
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(page, -1) {
		for line := range strings.Lines(strings.ReplaceAll(block[1], "\\\n", " ")) {
			words := regexp.MustCompile(`'[^']*'|\S+`).FindAllString(line, -1)
			if len(words) == 0 || words[0] != "curl" {
				continue
			}
			r := curl{method: http.MethodGet}
			for i := 1; i < len(words); i++ {
				word := strings.Trim(words[i], "'")
				switch word {
				case "-X", "-d", "-H":
					i++
					value := strings.Trim(words[i], "'")
					switch name, header, _ := strings.Cut(value, ": "); {
					case word == "-X":
						r.method = value
					case word == "-d":
						r.body = value
						if r.method == http.MethodGet {
							r.method = http.MethodPost
						}
					case name == "If-None-Match":
						r.noneMatch = header
					default:
						t.Fatalf("the header %q is unknown to this test", name)
					}
				default:
					r.url = word
				}
			}
			requests = append(requests, r)
		}
	}
	return requests
}

// TestAPIPage runs the examples of docs/api.md, and compares its event with those of the server.
func TestAPIPage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "api.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	b := newBackend(t)
	c := startWithBackend(t, b)
	const listener = "http://127.0.0.1:9090"
	requests := curls(t, page)
	if len(requests) < 4 {
		t.Fatalf("the page has %d requests, expected more: does the test still see them?", len(requests))
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	joined := false
	for _, r := range requests {
		if !strings.HasPrefix(r.url, listener) {
			t.Fatalf("the request is for %s, expected %s", r.url, listener)
		}
		request, err := http.NewRequestWithContext(t.Context(), r.method,
			"http://"+c.Server.AdminAddress()+strings.TrimPrefix(r.url, listener), strings.NewReader(r.body))
		if err != nil {
			t.Fatal(err)
		}
		if r.noneMatch != "" {
			request.Header.Set("If-None-Match", r.noneMatch)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode >= 300 {
			t.Errorf("%+v: %s", r, response.Status)
		}
		if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if !joined {
			joined = true
			join(t, c, testbed.Part{Identity: "ada", Room: "lab", Loads: []testbed.Load{body(1, 1)}})
		}
	}
	wait.Until(t, "the events of both rooms arrived", func() bool {
		return slices.Contains(b.lines(t, "attic"), "room_ended") && len(b.lines(t, "lab")) >= 3
	})
	example := regexp.MustCompile("(?s)```http\n.*?\n\n(.*?)```").FindStringSubmatch(page)
	if example == nil {
		t.Fatal("the page has no event")
	}
	decoder := json.NewDecoder(strings.NewReader(example[1]))
	decoder.DisallowUnknownFields()
	var e webhook.Event
	if err := decoder.Decode(&e); err != nil || e.Kind != webhook.ParticipantLeft || e.Sequence == 0 ||
		!strings.Contains(example[0], "\nWebhook-Id: "+e.ID+"\n") {
		t.Errorf("the event of the page is %+v, %v", e, err)
	}
	for _, kind := range []webhook.Kind{webhook.RoomStarted, webhook.RoomEnded, webhook.ParticipantJoined,
		webhook.ParticipantLeft, webhook.Published, webhook.Unpublished, webhook.RecordingStarted,
		webhook.RecordingEnded} {
		if !strings.Contains(page, "`"+string(kind)+"`") {
			t.Errorf("the page does not describe %s", kind)
		}
	}
}
