package browser

import (
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/auth"
	"github.com/volsfu/volsfu/internal/server"
	"github.com/volsfu/volsfu/test/long"
	"github.com/volsfu/volsfu/test/proxy"
)

// TestViewer watches two people: they are visible and move, the eye walks, a quality is selected, and the room is left.
func TestViewer(t *testing.T) {
	tools(t)
	s := start(t, nil)
	publish(t, s, "ada")
	publish(t, s, "grace")
	v := begin(t, "viewer.mjs", pageURL(s))
	var seen struct {
		Shown   float64
		Changed bool
		People  []string
		Failed  int
	}
	v.expect("seen", &seen)
	if slices.Sort(seen.People); !slices.Equal(seen.People, []string{"ada", "grace"}) || seen.Shown < 0.03 ||
		!seen.Changed || seen.Failed > 0 {
		t.Errorf("seen: %+v, expected ada and grace on 3 %% of the picture and more, moving, and no failed frame", seen)
	}
	var walked struct{ Metres float64 }
	v.expect("walked", &walked)
	if walked.Metres < 0.2 {
		t.Errorf("walked %g m", walked.Metres)
	}
	v.expect("chosen", nil)
	var layers struct {
		Publisher, Uplink, Server, Downlink, Wait, Decode, Show, All float64
		Bounds                                                       struct{ Uplink, Downlink, All float64 }
	}
	v.expect("layers", &layers)
	l := &layers
	sum := l.Publisher + l.Uplink + l.Server + l.Downlink + l.Wait + l.Decode + l.Show
	// One host has one clock: the latency between hosts is at most negative by the error of the estimate.
	if math.Abs(sum-l.All) > 0.01 || l.Publisher <= 0 || l.Server < 0 || l.Uplink < -l.Bounds.Uplink ||
		l.Downlink < -l.Bounds.Downlink || l.Bounds.All <= 0 {
		t.Errorf("layers: %+v, sum %g ms, expected the total", layers, sum)
	}
	v.expect("tinted", nil)
	var left struct{ Rooms []string }
	v.expect("left", &left)
	if !slices.Equal(left.Rooms, []string{"demo"}) {
		t.Errorf("the lobby lists %q", left.Rooms)
	}
	v.expect("done", nil)
}

// TestKeyboard uses only the keyboard, while others join and leave, with caps lock, and when the browser rejects
// requests and the server has newer files.
func TestKeyboard(t *testing.T) {
	tools(t)
	s := start(t, nil)
	publish(t, s, "grace")
	v := begin(t, "keyboard.mjs", pageURL(s))
	v.expect("focused", nil)
	publish(t, s, "linus", "--room", "attic")
	v.goOn()
	var kept struct{ Room, Who string }
	v.expect("entered", &kept)
	if kept.Room != "demo" {
		t.Errorf("the focus went to room %q when another one was opened, expected it to stay with demo", kept.Room)
	}
	publish(t, s, "ada")
	v.goOn()
	v.expect("joined by another", &kept)
	if kept.Who != "grace" {
		t.Errorf("the focus went to %q when a participant joined, expected it to stay with grace", kept.Who)
	}
	v.expect("inspected", nil)
	for _, words := range []string{
		"Full screen: the browser refuses it", "Show yourself: a required module cannot be loaded",
	} {
		var said step
		v.expect("said", &said)
		if !strings.Contains(said.Message, words) {
			t.Errorf("the page shows %q, expected %q", said.Message, words)
		}
	}
	v.expect("done", nil)
}

// TestConsole compares the console's figures with the actual ones, removes a participant, closes the room and drains
// the server.
func TestConsole(t *testing.T) {
	tools(t)
	s := start(t, nil)
	publish(t, s, "ada")
	publish(t, s, "grace")
	watch(t, s, "eye")
	v := begin(t, "console.mjs", pageURL(s))
	var shown struct {
		Participants        string
		Rooms, Names, Chips []string
	}
	v.expect("shown", &shown)
	if shown.Participants != "3" || !slices.Equal(shown.Rooms, []string{"demo"}) ||
		!slices.Equal(shown.Names, []string{"ada", "eye", "grace"}) || len(shown.Chips) != 4 {
		t.Errorf("shown: %+v", shown)
	}
	v.goOn()
	v.expect("removed", nil)
	v.expect("closed", nil)
	v.expect("asked to drain", nil)
	select {
	case <-s.DrainRequested():
		s.Drain(t.Context())
	case <-time.After(patience):
		t.Fatal("the server does not drain")
	}
	v.expect("draining", nil)
	v.expect("done", nil)
}

// TestTokens visits without a token, with a wrong one, with one for watching and with an operator's.
func TestTokens(t *testing.T) {
	tools(t)
	keys := auth.Config{Keys: []string{"k:" + strings.Repeat("s", 32)}}
	s := start(t, func(o *server.Options) {
		o.Config.Server.Dev = false
		o.Config.Auth.Keys = keys.Keys
	})
	watcher := mint(t, keys, auth.Claims{Room: "demo", Identity: "eye", Subscribe: true})
	operator := mint(t, keys, auth.Claims{Identity: "op", Admin: true})
	v := begin(t, "token.mjs", pageURL(s), watcher, operator)
	var said step
	v.expect("without", &said)
	if !strings.Contains(said.Message, "requires a token") || !strings.Contains(said.Message, "volsfu token") {
		t.Errorf("without a token the page says %q", said.Message)
	}
	v.expect("wrong", &said)
	if !strings.Contains(said.Message, "malformed") {
		t.Errorf("with a wrong token the page shows %q", said.Message)
	}
	v.expect("wrong link", &said)
	if !strings.Contains(said.Message, "The token is not accepted") {
		t.Errorf("with a link to a room and a wrong token the page shows %q", said.Message)
	}
	v.expect("link without", &said)
	if !strings.Contains(said.Message, "volsfu token") {
		t.Errorf("with a link to a room and no token the page shows %q", said.Message)
	}
	var right struct{ Address string }
	v.expect("right", &right)
	if strings.Contains(right.Address, "token") {
		t.Errorf("the address of the page has the token: %s", right.Address)
	}
	v.expect("no operator", &said)
	if !strings.Contains(said.Message, "does not grant administration") {
		t.Errorf("without the grant the console shows %q", said.Message)
	}
	v.expect("operator", nil)
	v.expect("done", nil)
}

// TestNetworkLoss disconnects a page for some seconds, both signalling and media.
func TestNetworkLoss(t *testing.T) {
	tools(t)
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	media := &mutedConn{PacketConn: conn}
	s := start(t, func(o *server.Options) { o.Media = media })
	publish(t, s, "ada")
	way := proxy.New(t, strings.TrimPrefix(pageURL(s), "http://"))
	v := begin(t, "network.mjs", "http://"+way.Address())
	v.expect("watching", nil)
	media.muted.Store(true)
	way.SetDown(true)
	way.Cut()
	v.goOn()
	v.expect("broken", nil)
	media.muted.Store(false)
	way.SetDown(false)
	var resumed struct{ Same bool }
	v.expect("resumed", &resumed)
	if !resumed.Same {
		t.Error("another session was begun, expected the one before to be resumed")
	}
	v.expect("done", nil)
}

// TestJoins joins 50 times, and 200 times when measuring, for a second each: no frame may bypass the script and reach
// the browser's own decoder.
func TestJoins(t *testing.T) {
	long.Test(t)
	tools(t)
	s := start(t, nil)
	publish(t, s, "ada", "--qualities", "only=500")
	joins := 50
	if *measure {
		joins = 200
	}
	v := begin(t, "joins.mjs", pageURL(s), strconv.Itoa(joins))
	var joined struct{ Joins, Bypassed int }
	v.patience = 4 * patience
	v.expect("joined", &joined)
	if joined.Joins != joins || joined.Bypassed != 0 {
		t.Errorf("of %d joins, %d frames went past the script", joined.Joins, joined.Bypassed)
	}
}

// TestCollectedTransformers joins while the browser collects garbage at the worst moment: the frames of all tiles
// arrive.
func TestCollectedTransformers(t *testing.T) {
	tools(t)
	t.Setenv("CHROMIUM_ARGUMENTS", "--js-flags=--expose-gc")
	s := start(t, nil)
	publish(t, s, "ada", "--qualities", "only=500")
	v := begin(t, "collected.mjs", pageURL(s))
	var seen struct{ Collecting, Decoding, Tiles int }
	v.expect("seen", &seen)
	if seen.Collecting != seen.Decoding || seen.Decoding < 2 {
		t.Errorf("%d of %d workers collect garbage on request", seen.Collecting, seen.Decoding)
	}
	if seen.Tiles != 2 {
		t.Errorf("frames of %d tiles arrived, expected 2", seen.Tiles)
	}
}

// TestChannels uses a browser without scripts between network and decoder, as some are: frames arrive over data
// channels, from the same slots.
func TestChannels(t *testing.T) {
	tools(t)
	s := start(t, nil)
	publish(t, s, "ada")
	publish(t, s, "grace")
	v := begin(t, "channels.mjs", pageURL(s))
	var seen struct {
		Shown                  float64
		Video, Failed, Decoded int
		MIDs                   []string
	}
	v.expect("seen", &seen)
	if seen.Shown < 0.03 || seen.Video != 0 || seen.Failed > 0 || len(seen.MIDs) != 4 ||
		!strings.HasPrefix(seen.MIDs[0], "slot-") {
		t.Errorf("seen: %+v, expected two people on at least 3 %% of the picture, over four channels and no media "+
			"line, and no failed frame", seen)
	}
	v.expect("chosen", nil)
	publish(t, s, "linus")
	v.goOn()
	v.expect("joined by another", nil)
	v.expect("done", nil)
}

// TestPictures makes the documents' pictures, if requested.
func TestPictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("pictures are made on demand: go test ./test/browser -run TestPictures -args -pictures DIR")
	}
	tools(t)
	s := start(t, nil)
	publish(t, s, "Ada", "--points", "30000", "--tiles", "4")
	volpeerPublishes(t, s, "Grace", "--virtual-cameras", filepath.Join(root, "docs", "cameras", "ring.yaml"),
		"--codec", "rgbd", "--tiles", "1", "--fps", "10")
	v := begin(t, "screenshots.mjs", pageURL(s))
	v.patience = 5 * patience
	v.expect("made", nil)
	v.expect("done", nil)
}

// TestUnits runs the pages' unit tests, which need no browser.
func TestUnits(t *testing.T) {
	tools(t)
	if out, err := exec.Command(filepath.Join(root, "scripts", "web.sh"), "test").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestMutationsLong gives the pages' decoders many more mutations of frames than TestUnits.
func TestMutationsLong(t *testing.T) {
	long.Test(t)
	tools(t)
	command := exec.Command(filepath.Join(root, "scripts", "web.sh"), "test", "test/unit/mutations.test.ts")
	command.Env = append(os.Environ(), "VOLSFU_MUTATIONS=300")
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestAddresses checks the responses at the pages' addresses.
func TestAddresses(t *testing.T) {
	s := start(t, nil)
	for path, status := range map[string]int{"/": 200, "/console": 200, "/v1/rooms": 200, "/admin/v1/rooms": 200,
		"/nothing": 404} {
		response, err := http.Get(pageURL(s) + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != status {
			t.Errorf("%s: %d, expected %d", path, response.StatusCode, status)
		}
	}
}

// mint returns a token that is valid for an hour.
func mint(t *testing.T, keys auth.Config, claims auth.Claims) string {
	t.Helper()
	ring, err := auth.NewKeyring(keys)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	claims.Expires = now.Add(time.Hour)
	token, err := ring.Mint("", claims, now)
	if err != nil {
		t.Fatal(err)
	}
	return token
}
