package server

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/test/interop/oldpeer"
)

// TestVR2GatherConference has two VR2Gather peers and a participant of signalling v1 in one room: all receive the
// streams that they can decode, byte for byte.
func TestVR2GatherConference(t *testing.T) {
	s := newStage(t)
	var sent sums
	ada := attend(t, s, "ada", &sent)
	one := s.connect(t, oldpeer.Config{Client: 1, Tiles: 2, Qualities: 2})
	hears := listen(t, one, &sent)
	play(t, one, 2, 2, &sent)
	two := s.connect(t, oldpeer.Config{Client: 2, Tiles: 1, Qualities: 1})
	listens := listen(t, two, &sent)
	const named = 1000 // The participant's name has no number.

	ada.more(t, "ada gets tile 0 of client 1", "1/0", 10)
	ada.more(t, "ada gets tile 1 of client 1", "1/1", 10)
	ada.more(t, "ada hears client 1", "sound", 10)
	listens.more(t, "client 2 gets tile 1 of client 1", 1, 1, 10)
	listens.more(t, "client 2 hears client 1", 1, oldpeer.SoundTile, 10)
	listens.more(t, "client 2 gets ada", named, 0, 10)
	hears.more(t, "client 1 gets ada", named, 0, 10)

	two.Choose(oldpeer.Decision{Client: 1, Qualities: []int{1, 0}})
	eventually(t, "client 2 gets its choice",
		func() bool { return listens.qualityOf(1, 0) == 1 && listens.qualityOf(1, 1) == 0 })
	two.Choose(oldpeer.Decision{Client: 0, Qualities: []int{0, 1}}, oldpeer.Decision{Client: 77, Qualities: []int{1}})
	eventually(t, "client 2 gets its choice for clients with two tiles", func() bool {
		return listens.qualityOf(1, 0) == 0 && listens.qualityOf(1, 1) == 1
	})
	two.Choose(oldpeer.Decision{Client: 1, Qualities: []int{-1}})
	eventually(t, "tile 0 is off", func() bool {
		before := listens.count(1, 0)
		listens.more(t, "tile 1 goes on", 1, 1, 5)
		return listens.count(1, 0) == before
	})
	two.Choose(oldpeer.Decision{Client: 1, Qualities: []int{1}})
	listens.more(t, "tile 0 is on again", 1, 0, 5)
	if got := s.dialect.Ignored(); got != 1 {
		t.Errorf("%d parts of quality messages ignored, expected 1", got)
	}

	ada.mu.Lock()
	if body, voice := ada.codecs["1/body"], ada.codecs["1/voice"]; body != "codec=cwi1" || voice != "codec=VR2A" {
		t.Errorf("codecs are named %q and %q", body, voice)
	}
	if ada.unknown > 0 {
		t.Errorf("ada: %d frames that were not sent", ada.unknown)
	}
	ada.mu.Unlock()
	if got := s.node.Withheld(); got != 2 {
		t.Errorf("%d publications withheld, expected one from each of two peers", got)
	}
	hears.sound(t, "client 1", one)
	listens.sound(t, "client 2", two)
}

// TestVR2GatherSwitching switches qualities at random: no frame is damaged, and numbers never decrease although the
// publisher's diverge.
func TestVR2GatherSwitching(t *testing.T) {
	s := newStage(t)
	var sent sums
	one := s.connect(t, oldpeer.Config{Client: 1, Tiles: 2, Qualities: 2})
	play(t, one, 2, 2, &sent)
	two := s.connect(t, oldpeer.Config{Client: 2, Tiles: 1, Qualities: 1})
	listens := listen(t, two, &sent)
	listens.more(t, "client 2 gets client 1", 1, 0, 5)
	for range 50 {
		two.Choose(oldpeer.Decision{Client: 1, Qualities: []int{rand.IntN(2), rand.IntN(2)}})
		listens.more(t, "tile 0 goes on", 1, 0, 1+rand.IntN(3))
	}
	listens.more(t, "tile 1 goes on", 1, 1, 5)
	listens.sound(t, "client 2", two)
}

// TestVR2GatherPeersComeAndGo kills a peer, which returns under the same number: the others lose nothing, and its lines
// are reused.
func TestVR2GatherPeersComeAndGo(t *testing.T) {
	s := newStage(t)
	var sent sums
	ada := attend(t, s, "ada 7", &sent)
	two := s.connect(t, oldpeer.Config{Client: 2, Tiles: 1, Qualities: 1})
	listens := listen(t, two, &sent)
	for range 3 {
		one := s.connect(t, oldpeer.Config{Client: 1, Tiles: 1, Qualities: 1})
		play(t, one, 1, 1, &sent)
		listens.more(t, "client 2 gets client 1", 1, 0, 5)
		ada.more(t, "ada gets client 1", "1/0", 5)
		one.Kill()
		listens.more(t, "client 2 gets ada, whose name ends in 7", 7, 0, 5)
		eventually(t, "client 1 has left", func() bool {
			return s.logs.FilterMessage("participant left").FilterField(zap.String("participant", "1")).Len() ==
				s.logs.FilterMessage("participant joined").FilterField(zap.String("participant", "1")).Len()
		})
	}
	listens.sound(t, "client 2", two)
	// A tile and a sound of client 1, and a tile of ada: their lines are created once.
	if counts := two.Counts(); counts.Tracks > 3 {
		t.Errorf("client 2 was sent %d tracks, expected 3 at most", counts.Tracks)
	}
}

// TestVR2GatherPeersReturn has a peer whose host vanished without closing and which returns under its number: it is
// admitted when the former connection does not answer. A peer that answers keeps its number.
func TestVR2GatherPeersReturn(t *testing.T) {
	s := newStage(t)
	gone, _, err := websocket.DefaultDialer.Dial(s.URL()+"/websocket?ntiles=1&nqualities=1&clientid=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	// This websocket is not read any more, so that there is no answer.
	defer func() { _ = gone.Close() }()
	eventually(t, "client 1 is in the room", func() bool { return s.joined("vr2gather", "1") == 1 })
	back := s.connect(t, oldpeer.Config{Client: 1, Tiles: 1, Qualities: 1})
	if n := s.logs.FilterMessageSnippet("is replaced").Len(); n != 1 || s.refusals("") != 0 {
		t.Errorf("%d peers were replaced, and %d were refused; expected 1 and 0", n, s.refusals(""))
	}

	twice := s.dial(t, oldpeer.Config{Client: 1, Tiles: 1, Qualities: 1})
	select {
	case <-twice.Ended():
	case <-time.After(patience):
		t.Fatal("a number that is taken is let in")
	}
	if n := s.joined("vr2gather", "1"); n != 2 || s.refusals(`"1" is in the room`) != 1 {
		t.Errorf("client 1 joined %d times, expected 2, and %d were refused, expected one", n, s.refusals(""))
	}
	select {
	case <-back.Ended():
		t.Error("the present client has left")
	default:
	}
}

// TestVR2GatherRefusals has peers that cannot be served: the log has the reason, their websockets are closed, and other
// clients are not affected.
func TestVR2GatherRefusals(t *testing.T) {
	s := newStage(t)
	var sent sums
	one := s.connect(t, oldpeer.Config{Client: 1, Tiles: 1, Qualities: 1})
	play(t, one, 1, 1, &sent)
	two := s.connect(t, oldpeer.Config{Client: 2, Tiles: 1, Qualities: 1})
	listens := listen(t, two, &sent)
	listens.more(t, "client 2 gets client 1", 1, 0, 5)

	ended := func(name string, p *oldpeer.Peer, reason string) {
		t.Helper()
		select {
		case <-p.Ended():
		case <-time.After(patience):
			t.Fatalf("%s: the websocket is open", name)
		}
		eventually(t, name+" is in the log: "+reason, func() bool { return s.refusals(reason) > 0 })
	}
	ended("a number twice", s.dial(t, oldpeer.Config{Client: 2, Tiles: 1, Qualities: 1}), `"2" is in the room`)
	ended("malformed tracks", s.dial(t, oldpeer.Config{Client: 3, Tiles: 1, Qualities: 2, Malformed: true}),
		errTrackText)
	garbage := s.connect(t, oldpeer.Config{Client: 4, Tiles: 1, Qualities: 1})
	if err := garbage.Say("no at sign at all"); err != nil {
		t.Fatal(err)
	}
	ended("text without @", garbage, "expected CLIENT@TYPE@VALUE")
	stranger := s.connect(t, oldpeer.Config{Client: 5, Tiles: 1, Qualities: 1})
	if err := stranger.Say(`1@3@{"type":"answer","sdp":"v=1"}`); err != nil {
		t.Fatal(err)
	}
	ended("an answer that is none", stranger, "session description")
	ended("more tracks than the limit", s.dial(t, oldpeer.Config{Client: 8, Tiles: 65, Qualities: 1}), "65 tracks")
	// There are more refusals than log lines, so the answers must have the reason.
	for _, tiles := range []string{"1000000000", "0", "-1", "many"} {
		_, response, err := websocket.DefaultDialer.Dial(s.URL()+"/websocket?nqualities=1&clientid=6&ntiles="+tiles,
			nil)
		if err == nil || response == nil || response.StatusCode != http.StatusBadRequest {
			t.Errorf("%s tiles: %v", tiles, err)
			continue
		}
		if reason, err := io.ReadAll(response.Body); err != nil || !strings.Contains(string(reason), "ntiles") {
			t.Errorf("%s tiles: refused for %q (%v)", tiles, reason, err)
		}
	}
	listens.more(t, "client 2 goes on", 1, 0, 5)
	listens.sound(t, "client 2", two)
}

// TestVR2GatherLinesAreRenamed has another peer join when there may be no more lines: it gets the line of a departed
// one.
func TestVR2GatherLinesAreRenamed(t *testing.T) {
	s := newStage(t, func(c *config.Config) { c.Rooms.MaxSlots = 1 })
	var sent sums
	two := s.connect(t, oldpeer.Config{Client: 2, Tiles: 1, Qualities: 1})
	listens := listen(t, two, &sent)
	for _, client := range []int{1, 3, 4} {
		other := s.connect(t, oldpeer.Config{Client: client, Tiles: 1, Qualities: 1})
		play(t, other, 1, 1, &sent)
		listens.more(t, fmt.Sprintf("client 2 gets client %d", client), client, 0, 5)
		other.Kill()
		eventually(t, "it has left", func() bool {
			return s.logs.FilterMessage("participant left").FilterField(
				zap.String("participant", strconv.Itoa(client))).Len() == 1
		})
	}
	// The original reads packets correctly. It reads the names of a line only when its first packet arrives.
	listens.mu.Lock()
	defer listens.mu.Unlock()
	if listens.unknown > 0 {
		t.Errorf("%d frames that were not sent", listens.unknown)
	}
}
