package browser

import (
	"strings"
	"testing"

	"github.com/volsfu/volsfu/internal/server"
	"github.com/volsfu/volsfu/test/testbed"
)

// TestConnectionTest opens the page /test: it asks for a token, and then finds the ways to the server.
func TestConnectionTest(t *testing.T) {
	var token string
	s := start(t, func(o *server.Options) {
		var err error
		if token, err = testbed.RequireToken(&o.Config); err != nil {
			t.Fatal(err)
		}
		// Browsers make no pair of loopback candidates and their own.
		o.Config.Media.Address = "0.0.0.0"
	})
	v := begin(t, "diagnosis.mjs", strings.Replace(s.URL(), "ws", "http", 1), token)
	var needed struct{ Message string }
	v.expect("token needed", &needed)
	if !strings.Contains(needed.Message, "asks for a token") {
		t.Errorf("without a token the page says %q", needed.Message)
	}
	var done struct {
		Message  string
		Findings []struct{ Status, Subject, Result string }
	}
	v.expect("done", &done)
	found := make(map[string]string)
	for _, f := range done.Findings {
		found[f.Subject] = f.Status
		t.Logf("%s %s: %s", f.Status, f.Subject, f.Result)
	}
	for subject, want := range map[string]string{
		"Certificate": "ok", "Websocket": "ok", "Clock": "ok", "NAT": "skipped", "Media over UDP": "ok",
		"Media over TCP": "ok", "Media over the relay": "skipped", "Media": "ok",
	} {
		if found[subject] != want {
			t.Errorf("%s is %q, expected %q", subject, found[subject], want)
		}
	}
	if !strings.Contains(done.Message, "no problem") {
		t.Errorf("the page says %q", done.Message)
	}
}
