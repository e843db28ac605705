package e2e

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

// operate sends a request to the admin interface of a server, from its host.
func operate(t *testing.T, address, method, path string) (int, []byte) {
	t.Helper()
	return operateWith(t, address, method, path, "")
}

// operateWith is operate with the body of the request.
func operateWith(t *testing.T, address, method, path, sent string) (int, []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+"/admin/v1/"+path,
		strings.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, body
}

// TestOperating inspects a conference as an operator, removes a participant, and closes the room.
func TestOperating(t *testing.T) {
	c := startConference(t, func(c *config.Config) { c.Admin.Listen = "127.0.0.1:0" })
	address := c.Server.AdminAddress()
	ada := join(t, c, testbed.Part{Identity: "ada", Room: "lab", Loads: []testbed.Load{body(2, 2)}})
	eye := join(t, c, testbed.Part{Identity: "eye", Room: "lab", Receive: true})
	choose(t, eye, signal.Choice{PublicationRef: tile("ada", "body", 0).PublicationRef, Quality: signal.Only(1)})
	wait.Until(t, "frames of both tiles arrived",
		func() bool { return frames(eye, tile("ada", "body", 0)) > 5 && frames(eye, tile("ada", "body", 1)) > 5 })

	var room sfu.RoomState
	wait.Until(t, "the room is described with the receiver's media", func() bool {
		status, said := operate(t, address, "GET", "rooms/lab?past=1")
		room = sfu.RoomState{}
		if err := json.Unmarshal(said, &room); err != nil || status != http.StatusOK {
			t.Fatalf("%d %s: %v", status, said, err)
		}
		r := room.Participants[len(room.Participants)-1].Reception
		return r != nil && r.Known && len(r.History) > 0 && len(r.Slots) == 2 && r.Slots[0].Quality == 1 &&
			r.Slots[1].Frames > 5
	})
	if got := room.Participants[0]; got.Identity != "ada" || !got.Connected || !got.Present ||
		len(got.Publications) != 1 || got.Publications[0].Rates[1][1] == 0 {
		t.Errorf("the publisher is described as %+v", got)
	}
	if got := room.Participants[1].Reception.Slots[0]; got.Participant != "ada" || got.Reason != signal.ReasonChoice {
		t.Errorf("the slot is described as %+v", got)
	}

	if status, said := operate(t, address, "DELETE", "rooms/lab/participants/nobody"); status != http.StatusNotFound {
		t.Errorf("removing an unknown participant: %d %s", status, said)
	}
	if status, said := operate(t, address, "DELETE", "rooms/lab/participants/ada"); status != http.StatusNoContent {
		t.Fatalf("removing ada: %d %s", status, said)
	}
	endsWith(t, ada, signal.CodeKicked)
	wait.Until(t, "the others are notified", func() bool { return len(eye.Session.Participants()) == 0 })
	if status, said := operate(t, address, "DELETE", "rooms/lab"); status != http.StatusNoContent {
		t.Fatalf("closing the room: %d %s", status, said)
	}
	endsWith(t, eye, signal.CodeClosed)
	wait.Until(t, "the room is closed", func() bool {
		status, _ := operate(t, address, "GET", "rooms/lab")
		return status == http.StatusNotFound
	})
	if status, said := operate(t, address, "POST", "drain"); status != http.StatusNoContent {
		t.Errorf("draining: %d %s", status, said)
	}
	select {
	case <-c.Server.DrainRequested():
	default:
		t.Error("the process does not drain")
	}
}

// endsWith waits until a peer's session has ended with a code.
func endsWith(t *testing.T, p *testbed.Peer, code signal.Code) {
	t.Helper()
	var refused *signal.Error
	wait.Until(t, "the session ends with "+string(code), func() bool { return errors.As(p.Session.Err(), &refused) })
	if refused.Code != code {
		t.Errorf("the session ended with %q, expected %q", refused.Code, code)
	}
}

// TestOperatorsListener checks a running server: a page whose name was resolved to the listener (DNS rebinding) and a
// page of another origin read nothing, and the command line is shown without secrets.
func TestOperatorsListener(t *testing.T) {
	arguments := os.Args
	os.Args = []string{"volsfu", "serve", "--auth-keys", "first:0123456789abcdef0123456789abcdef"}
	t.Cleanup(func() { os.Args = arguments })
	c := startConference(t, func(c *config.Config) { c.Admin.Listen = "127.0.0.1:0" })
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, path := range []string{"/metrics", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2",
		"/admin/v1/rooms"} {
		for _, page := range []struct {
			host, origin string
			status       int
		}{
			{"", "", http.StatusOK},
			{"evil.example:9090", "", http.StatusForbidden},
			{"evil.example:9090", "http://evil.example:9090", http.StatusForbidden},
			{"", "https://evil.example", http.StatusForbidden},
		} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
				"http://"+c.Server.AdminAddress()+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			// As a browser sends the request.
			request.Header.Set("User-Agent", "Mozilla/5.0")
			request.Header.Set("Accept-Language", "de")
			if page.host != "" {
				request.Host = page.host
			}
			if page.origin != "" {
				request.Header.Set("Origin", page.origin)
			}
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if err != nil || response.StatusCode != page.status {
				t.Errorf("%s for host %q from %q: %s, %v, expected %d", path, page.host, page.origin, response.Status,
					err, page.status)
			}
			if strings.Contains(string(body), "0123456789abcdef") ||
				path == "/debug/pprof/cmdline" && page.status == http.StatusOK &&
					!strings.Contains(string(body), "--auth-keys") {
				t.Errorf("%s shows %.200q", path, body)
			}
		}
	}
}
