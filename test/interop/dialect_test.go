package interop

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/interop/oldpeer"
	"github.com/volsfu/volsfu/test/testbed"
)

// small is the programme of old peers whose media does not matter.
func small(client int) programme {
	return programme{Client: client, Tiles: 3, Qualities: 2, Bytes: 1500, Interval: 20 * time.Millisecond}
}

// TestQualityMessagesToTheServer sends the original's messages, including their faults.
func TestQualityMessagesToTheServer(t *testing.T) {
	c := startServer(t)
	p := small(1)
	old(t, address(c), p)
	receiver := attend(t, connect(t, oldpeer.Config{Server: address(c), Client: 2, Tiles: 1, Qualities: 1}))
	goOn(t, receiver.flows(1, p.Tiles)...)
	arrives := func(what string, want ...int) {
		t.Helper()
		eventually(t, what, func() bool { return receiver.sees(1, want) })
		goOn(t, receiver.flows(1, p.Tiles)...)
		if !receiver.sees(1, want) {
			t.Errorf("after %s qualities change once more", what)
		}
	}
	choose := func(client int, qualities ...int) {
		receiver.peer.Choose(oldpeer.Decision{Client: client, Qualities: qualities})
	}
	choose(1, 0, 0, 0)
	arrives("all tiles at the lowest quality, the last one, too", 0, 0, 0)
	choose(0, 1, 0, 1)
	arrives("client 0 is the one with as many tiles", 1, 0, 1)
	choose(0, 0, 0)
	arrives("nobody has two tiles", 1, 0, 1)
	choose(1, 0)
	arrives("a part of the tiles", 0, 0, 1)
	choose(77, 1, 1, 1)
	choose(1, 1, 9, 0, 1, 1)
	arrives("clients, qualities and tiles that there are not", 1, 0, 0)
	if err := receiver.peer.Say("0@7@1,x,1,;;spoilt\x00\x00  "); err != nil {
		t.Fatal(err)
	}
	arrives("what can be read of a spoilt message", 1, 1, 0)
	choose(1, 1, -1, 0)
	off := oldpeer.Source{Client: 1, Tile: 1}
	eventually(t, "a tile is off", func() bool {
		before := receiver.of(off).Frames
		goOn(t, receiver.flows(1, 1)...)
		return receiver.of(off).Frames == before
	})
	choose(1, 1, 1, 0)
	goOn(t, receiver.flows(1, p.Tiles)...)
	receiver.whole(t, endedBy(c))
	// Client 77, one quality and two tiles, the two corrupted fields, and client 0 with a number of tiles that no
	// client has.
	if ignored := counted(t, c, "volsfu_vr2gather_ignored_total"); ignored < 6 {
		t.Errorf("%g things were ignored, expected at least 6", ignored)
	}
}

// counted reads one of the server's metrics.
func counted(t *testing.T, c *testbed.Conference, name string) float64 {
	t.Helper()
	response, err := http.Get("http://" + c.Server.AdminAddress() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+" "); ok {
			number, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			return number
		}
	}
	t.Fatalf("metric %s is missing", name)
	return 0
}

// refused reports whether a server ends a peer's websocket.
func refused(t *testing.T, p *oldpeer.Peer) {
	t.Helper()
	select {
	case <-p.Ended():
	case <-time.After(patience):
		t.Error("the server does not end the websocket")
	}
}

// TestRefusedPeersDoNotDisturbOthers lets peers join that are rejected, while others are in the room.
func TestRefusedPeersDoNotDisturbOthers(t *testing.T) {
	c := startServer(t)
	alice, bob := old(t, address(c), small(1)), old(t, address(c), small(2))
	going := append(alice.flows(2, 3), bob.flows(1, 3)...)
	goOn(t, going...)
	offers := alice.peer.Counts().Offers

	refused(t, dial(t, oldpeer.Config{Server: address(c), Client: 2, Tiles: 3, Qualities: 2}))
	goOn(t, going...)
	malformed := dial(t, oldpeer.Config{Server: address(c), Client: 3, Tiles: 1, Qualities: 1, Malformed: true})
	refused(t, malformed)
	goOn(t, going...)
	for _, query := range []string{"ntiles=1000000&nqualities=1&clientid=4", "ntiles=1&nqualities=1000000&clientid=4",
		"ntiles=0&nqualities=1&clientid=4",
		"ntiles=many", "clientid=-1", "clientid=4&ntiles=1&nqualities=1%00"} {
		conn, _, err := websocket.DefaultDialer.Dial("ws://"+address(c)+"/websocket?"+query, nil)
		if err == nil {
			_ = conn.Close()
		}
		if !errors.Is(err, websocket.ErrBadHandshake) {
			t.Errorf("%s: %v", query, err)
		}
	}
	goOn(t, going...)
	alice.whole(t, endedBy(c))
	bob.whole(t, endedBy(c))
	if refusals := counted(t, c, "volsfu_vr2gather_refused_total"); refusals != 8 {
		t.Errorf("%g peers were refused, expected 8", refusals)
	}
	// Rejected peers are not announced, except that the malformed one may have been for a moment.
	if now := alice.peer.Counts().Offers; now > offers+2 {
		t.Errorf("%d offers to a peer that is not concerned", now-offers)
	}
}

// TestOneOfferAtATime lets peers join and leave while one is slow to answer: it never gets a second offer before it has
// answered.
func TestOneOfferAtATime(t *testing.T) {
	c := startServer(t)
	slow := attend(t, connect(t, oldpeer.Config{Server: address(c), Client: 1, Tiles: 2, Qualities: 2,
		AnswerDelay: 200 * time.Millisecond}))
	var others []*audience
	for client := 2; client <= 5; client++ {
		others = append(others, old(t, address(c), small(client)))
	}
	for client := 2; client <= 5; client++ {
		goOn(t, slow.flows(client, 3)...)
	}
	for _, leaver := range others[:3] {
		leaver.peer.Leave()
	}
	// Client 2 rejoins at once, even if the server has not yet noticed that it left.
	connect(t, oldpeer.Config{Server: address(c), Client: 2, Tiles: 3, Qualities: 2}).Leave()
	again := old(t, address(c), small(6))
	goOn(t, append(slow.flows(6, 3), slow.flows(5, 3)...)...)
	goOn(t, append(again.flows(5, 3), others[3].flows(6, 3)...)...)
	if err := slow.peer.Fault(); err != nil {
		t.Error(err)
	}
	counts := slow.peer.Counts()
	eventually(t, "all offers are answered", func() bool {
		counts = slow.peer.Counts()
		return counts.Offers ==
			counts.Answers
	})
	// One for its own lines, and at most one for each peer that joined or left.
	if counts.Offers > 11 {
		t.Errorf("%d offers, expected at most 11", counts.Offers)
	}
}

// TestWithheldFromOldPeers lets a participant publish in another format than VR2Gather's: it is not sent to old peers,
// which continue.
func TestWithheldFromOldPeers(t *testing.T) {
	c := startServer(t)
	alice, bob := old(t, address(c), small(1)), old(t, address(c), small(2))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := c.Join(ctx, testbed.Part{
		Room: room, Identity: "carol", Receive: true,
		Loads: []testbed.Load{{Name: bodyName, Tiles: 3, Qualities: 1, FrameBytes: 3000, Rate: 30}},
	})
	if err != nil {
		t.Fatal(err)
	}
	dave, err := c.Join(ctx, testbed.Part{Room: room, Identity: "dave", Receive: true})
	if err != nil {
		t.Fatal(err)
	}
	carols := volumetric.TileRef{PublicationRef: volumetric.PublicationRef{Participant: "carol", Publication: bodyName}}
	eventually(t, "carol's frames arrive by v1", func() bool { return dave.Tile(carols).Frames > 10 })
	eventually(t, "the server counts what it withholds",
		func() bool { return counted(t, c, "volsfu_vr2gather_withheld_total") >= 2 })
	goOn(t, append(alice.flows(2, 3), bob.flows(1, 3)...)...)
	for source := range alice.peer.Receptions() {
		if source.Client != 2 {
			t.Errorf("frames of %+v arrived", source)
		}
	}
	alice.whole(t, endedBy(c))
	bob.whole(t, endedBy(c))
}

// TestSecondObject lets a v1 participant publish a second object in VR2Gather's format. Old peers name tracks by client
// and tile, so they are sent the first object while it exists, and then the second, on the same lines.
func TestSecondObject(t *testing.T) {
	c := startServer(t)
	alice := attend(t, connect(t, oldpeer.Config{Server: address(c), Client: 1, Tiles: 1, Qualities: 1}))
	p := small(100)
	carol := joinModern(t, c.Server.URL(), "carol", p)
	carols := clientOf(t, alice, p.Client)
	goOn(t, alice.flows(carols, p.Tiles)...)
	tracks := alice.peer.Counts().Tracks

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	desk := p.publications()[1]
	desk.Name = "desk"
	publisher, err := carol.session.Publish(ctx, desk)
	if err != nil {
		t.Fatal(err)
	}
	// The instants distinguish the objects.
	const deskInstants = 1 << 20
	publishing, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(p.Interval)
		defer ticker.Stop()
		for instant := uint32(deskInstants); publishing.Err() == nil; instant++ {
			p.show(publisher, instant, <-ticker.C)
		}
	})
	defer running.Wait()
	defer stop()
	eventually(t, "the server counts what it withholds",
		func() bool { return counted(t, c, "volsfu_vr2gather_withheld_total") == 1 })
	goOn(t, alice.flows(carols, p.Tiles)...)
	body := oldpeer.Source{Client: carols}
	if last := alice.of(body).Last; last.Instant >= deskInstants {
		t.Errorf("frames of the second object arrived: %+v", last)
	}

	if err := carol.session.Unpublish(ctx, bodyName); err != nil {
		t.Fatal(err)
	}
	eventually(t, "frames of the second object come",
		func() bool { return alice.of(body).Last.Instant >= deskInstants })
	goOn(t, alice.flows(carols, p.Tiles)...)
	alice.peer.Choose(oldpeer.Decision{Client: carols, Qualities: []int{0, 1, 0}})
	eventually(t, "the choice is of the second object", func() bool { return alice.sees(carols, []int{0, 1, 0}) })
	alice.whole(t, endedBy(c))
	if now := alice.peer.Counts().Tracks; now != tracks {
		t.Errorf("the second object has %d tracks of its own", now-tracks)
	}
}

// TestRoomsOfOldPeers uses the same numbers in two rooms.
func TestRoomsOfOldPeers(t *testing.T) {
	c := startServer(t)
	var rooms [2][2]*audience
	for i, name := range []string{"/r/first", "/r/second"} {
		for client := 1; client <= 2; client++ {
			p := small(client)
			// The frames distinguish the rooms.
			peer := connect(t, oldpeer.Config{Server: address(c) + name, Client: client, Tiles: p.Tiles,
				Qualities: p.Qualities})
			rooms[i][client-1] = attend(t, peer)
			p.Client += 10 * i
			p.publish(t, peer)
		}
	}
	for i := range rooms {
		for own := range 2 {
			other := 2 - own
			a := rooms[i][own]
			goOn(t, a.flows(other, 3)...)
			if got := a.of(oldpeer.Source{Client: other}).Last.Client; got != other+10*i {
				t.Errorf("client %d of room %d has frames of %d", own+1, i, got)
			}
			a.whole(t, endedBy(c))
		}
	}
}
