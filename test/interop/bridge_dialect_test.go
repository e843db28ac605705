package interop

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/test/interop/standin"
	"github.com/volsfu/volsfu/test/long"
	"github.com/volsfu/volsfu/test/testbed"
)

// oldDialect makes a bridge speak VR2Gather's dialect.
var oldDialect = []string{"--dialect", "vr2gather"}

// TestBridgeDialect has volbridge speak VR2Gather's dialect, to our server and to what stands in for the original.
func TestBridgeDialect(t *testing.T) {
	long.Test(t)
	tools := buildBridgeTools(t)
	t.Run("both by the dialect", func(t *testing.T) {
		sides := openSides(t, tools, startServer(t).Server.URL(), 2, 3, oldDialect, oldDialect)
		dialectFrames(t, sides)
		dialectQualities(t, sides)
		stopSides(t, sides)
	})
	t.Run("one by v1", func(t *testing.T) {
		byPath := append([]string{"--room", room}, oldDialect...)
		sides := openSides(t, tools, startServer(t).Server.URL(), 2, 3, byPath, []string{"--room", room})
		dialectFrames(t, sides)
		dialectQualities(t, sides)
		dialectQualities(t, [2]side{sides[1], sides[0]})
		stopSides(t, sides)
	})
	t.Run("the original", func(t *testing.T) {
		original := startStandIn(t, standin.Faults{CandidatesFirst: true, SecondOffer: true, Padding: true,
			MidFrame: true, KeepNumbers: true, StrictNumbers: true})
		sides := openSides(t, tools, "ws://"+original.Address(), 2, 3, oldDialect, oldDialect)
		dialectFrames(t, sides)
		dialectQualities(t, sides)
		stopSides(t, sides)
	})
	t.Run("server restarts", func(t *testing.T) { dialectServerRestarts(t, tools) })
	t.Run("refused", func(t *testing.T) { dialectRefused(t, tools) })
}

// dialectFrames sends frames of 40 kB and sound in both directions until enough have arrived. Since losses are not
// repaired, only the frames that arrive are checked.
func dialectFrames(t *testing.T, sides [2]side) {
	t.Helper()
	const frames, sounds = 30, 30
	for i, s := range sides {
		from, to := s.connector, sides[1-i].connector
		before, _ := to.heard("tile", from)
		eventually(t, fmt.Sprintf("frames and sound of connector %d arrive", i+1), func() bool {
			done := from.count("done audio")
			from.say("tiles 5 40000 33000 2 3")
			from.say("audio 5 3000 20000")
			eventually(t, "sound is sent", func() bool { return from.count("done audio") > done })
			came, _ := to.heard("tile", from)
			heard, _ := to.heard("audio", from)
			return came >= before+frames && heard >= sounds
		})
	}
	for i, s := range sides {
		from, to := s.connector, sides[1-i].connector
		for _, kind := range []string{"tile", "audio"} {
			if n, wrong := to.wrong(kind, from); wrong > 0 {
				t.Errorf("%d of %d %s frames differ from those that connector %d sent", wrong, n, kind, i+1)
			}
		}
	}
}

// dialectQualities lets the second connector choose the qualities that it receives from the first, as VR2Gather does:
// without a client number.
func dialectQualities(t *testing.T, sides [2]side) {
	t.Helper()
	from, to := sides[0].connector, sides[1].connector
	done := from.count("done tiles")
	from.say("tiles 60 3000 20000 2 3")
	for _, choice := range []struct{ text, want string }{{"0,2,2", "2"}, {"0,0,0", "0"}, {"0,1,1", "1"},
		{"0,2,2", "2"}} {
		to.say("control %s", choice.text)
		before := to.count("received")
		eventually(t, "quality "+choice.want, func() bool {
			if from.count("done tiles") > done {
				done = from.count("done tiles")
				from.say("tiles 60 3000 20000 2 3")
			}
			return to.latest() == choice.want && to.count("received") > before+20
		})
	}
	eventually(t, "the last frame is sent", func() bool { return from.count("done tiles") > done })
}

// stopSides ends the bridges. A connector only gets whole frames, unless its socket's buffer was full.
func stopSides(t *testing.T, sides [2]side) (summaries [2]*bridgeSummary) {
	t.Helper()
	for i, s := range sides {
		for _, text := range s.connector.refused() {
			if !strings.HasSuffix(text, "incomplete") {
				t.Errorf("connector %d: %s", i+1, text)
			}
		}
		summaries[i] = s.bridge.stop()
	}
	return summaries
}

// dialectServerRestarts stops and restarts the server.
func dialectServerRestarts(t *testing.T, tools bridgeTools) {
	open := func(listen string) *testbed.Conference {
		settings := serverSettings()
		settings.Server.Listen = listen
		c, err := testbed.NewConference(settings, nil, zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := open("127.0.0.1:0")
	url := c.Server.URL()
	sides := openSides(t, tools, url, 1, 1, oldDialect, oldDialect)
	c.Close()
	c = open(strings.TrimPrefix(url, "ws://"))
	defer c.Close()
	meet(t, sides, 1, 1)
	for i, s := range stopSides(t, sides) {
		if s.Sessions < 2 {
			t.Errorf("bridge %d had %d sessions, expected another after the server's end", i+1, s.Sessions)
		}
	}
}

// dialectRefused starts a bridge without the token that the server requires: it reports this and ends.
func dialectRefused(t *testing.T, tools bridgeTools) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/websocket" && r.URL.Query().Get("clientid") == "1" {
			http.Error(w, "unauthorized: no token", http.StatusUnauthorized)
		}
	}))
	defer server.Close()
	port := portPair(t)
	b := startBridge(t, tools, strings.TrimPrefix(server.URL, "http://"), port, 1, 1, 1, oldDialect...)
	startConnector(t, tools, port, 1).say("listen")
	select {
	case err := <-b.ended:
		if err == nil || !strings.Contains(b.log.String(),
			"refused by the server: 401 Unauthorized: unauthorized: no token") {
			t.Errorf("the bridge ends with %v, and says\n%s", err, b.log.String())
		}
	case <-time.After(patience):
		t.Error("the bridge does not end")
	}
}
