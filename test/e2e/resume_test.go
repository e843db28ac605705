package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/proxy"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

func TestResumeAfterTheWebsocketBreaks(t *testing.T) {
	c := startConference(t, unhurried)
	p := proxy.New(t, strings.TrimPrefix(c.Server.URL(), "ws://"))
	alice := join(t, c, atLeisure(testbed.Part{Room: "room", Identity: "alice", Loads: []testbed.Load{body(2, 2)},
		Receive: true, URL: "ws://" + p.Address()}))
	bob := join(t, c, atLeisure(testbed.Part{Room: "room", Identity: "bob", Loads: []testbed.Load{body(2, 2)},
		Receive: true}))
	wait.Until(t, "media flows both ways", func() bool {
		return frames(alice, tile("bob", "body", 0)) > 5 && frames(bob, tile("alice", "body", 0)) > 5
	})
	choose(t, alice, signal.Choice{PublicationRef: tile("bob", "body", 0).PublicationRef, Quality: signal.Only(0)})
	wait.Until(t, "the choice takes effect", func() bool { return alice.Tile(tile("bob", "body", 0)).Quality == 0 })
	for range 3 {
		resumed := alice.Count("resumed")
		p.Cut()
		wait.Until(t, "alice resumes", func() bool { return alice.Count("resumed") == resumed+1 })
		before := frames(bob, tile("alice", "body", 0))
		wait.Until(t, "alice's frames go on", func() bool { return frames(bob, tile("alice", "body", 0)) > before+10 })
	}
	if got := alice.Tile(tile("bob", "body", 0)).Quality; got != 0 {
		t.Errorf("quality after resuming is %d, expected the choice from before, 0", got)
	}
	if n := bob.Count("left"); n != 0 {
		t.Errorf("bob saw %d leaves, expected none", n)
	}
	choose(t, alice, signal.Choice{PublicationRef: tile("bob", "body", 0).PublicationRef, Quality: signal.Only(1)})
	wait.Until(t, "choices work after resuming", func() bool { return alice.Tile(tile("bob", "body", 0)).Quality == 1 })
	if err := errors.Join(alice.Failure(), bob.Failure()); err != nil {
		t.Error(err)
	}
}

func TestGraceTimeExpires(t *testing.T) {
	c := startConference(t, func(c *config.Config) { c.Rooms.ResumeGrace = 300 * time.Millisecond })
	p := proxy.New(t, strings.TrimPrefix(c.Server.URL(), "ws://"))
	alice := join(t, c, testbed.Part{Room: "room", Identity: "alice", Loads: []testbed.Load{body(1, 1)},
		URL: "ws://" + p.Address()})
	bob := join(t, c, testbed.Part{Room: "room", Identity: "bob", Receive: true})
	wait.Until(t, "media flows", func() bool { return frames(bob, tile("alice", "body", 0)) > 5 })
	p.SetDown(true)
	p.Cut()
	wait.Until(t, "bob is notified that alice has left", func() bool { return bob.Count("left") == 1 })
	wait.Until(t, "alice gives up", func() bool { return errors.Is(alice.Session.Err(), client.ErrLost) })
}

func TestResumeWithANewConnection(t *testing.T) {
	c := startConference(t, unhurried)
	bob := join(t, c, testbed.Part{Room: "room", Identity: "bob", Receive: true})
	raw := dialRaw(t, c.Server.URL())
	joined := raw.join(&signal.Join{
		Version: 1, Room: "room", Identity: "alice", Receive: true,
		Publications: []volumetric.Publication{body(1, 1).Publication()},
	})
	raw.close()
	wait.Until(t, "bob sees alice", func() bool { return bob.Count("joined") == 1 })
	again := dialRaw(t, c.Server.URL())
	resumed := again.join(&signal.Join{
		Version: 1, Room: "room", Identity: "alice", Receive: true,
		Resume: &signal.ResumeRequest{Session: joined.Session, Secret: joined.Resume.Secret, NewConnection: true},
	})
	if !resumed.Resumed || resumed.Session != joined.Session || resumed.Resume.Secret == joined.Resume.Secret {
		t.Errorf("resumed is %v, session %q (was %q), secret rotated %v", resumed.Resumed, resumed.Session,
			joined.Session,
			resumed.Resume.Secret != joined.Resume.Secret)
	}
	if offer := expectMessage[*signal.Offer](again); offer.Offer != 1 {
		t.Errorf("offer %d, expected the first of a new connection", offer.Offer)
	}
	// The old secret becomes invalid once the client has sent a message.
	again.send(&signal.Time{Header: signal.Header{ID: "2"}})
	expectMessage[*signal.TimeReply](again)
	third := dialRaw(t, c.Server.URL())
	third.send(&signal.Join{
		Version: 1, Room: "room", Identity: "alice",
		Resume: &signal.ResumeRequest{Session: joined.Session, Secret: joined.Resume.Secret},
	})
	if refused := expectMessage[*signal.Error](third); refused.Code != signal.CodeResume {
		t.Errorf("code %q, expected %q", refused.Code, signal.CodeResume)
	}
	if n := bob.Count("left"); n != 0 {
		t.Errorf("bob saw %d leaves, expected none", n)
	}
	again.close()
	third.close()
}

func TestDrain(t *testing.T) {
	c := startConference(t, unhurried)
	alice := join(t, c, testbed.Part{Room: "room", Identity: "alice", Loads: []testbed.Load{body(1, 1)}})
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		c.Server.Drain(context.Background())
	}()
	wait.Until(t, "the server refuses newcomers", func() bool {
		raw := dialRaw(t, c.Server.URL())
		defer raw.close()
		raw.send(&signal.Join{Version: 1, Room: "room", Identity: "bob"})
		refused, ok := raw.receive().(*signal.Error)
		if !ok {
			// The drain has not begun, and must not wait for bob to resume.
			raw.send(&signal.Leave{})
		}
		return ok && refused.Code == signal.CodeDraining
	})
	select {
	case <-drained:
		t.Fatal("drained while a client is in a room")
	default:
	}
	alice.Leave()
	select {
	case <-drained:
	case <-time.After(patience):
		t.Fatal("not drained although all rooms are empty")
	}
}
