package interop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/interop/oldpeer"
	"github.com/volsfu/volsfu/test/long"
	"github.com/volsfu/volsfu/test/testbed"
)

// room is the room of these tests.
const room = "lobby"

// serverSettings are the defaults, with old peers admitted.
func serverSettings() config.Config {
	settings := testbed.ConferenceConfig()
	settings.VR2Gather.Enabled, settings.VR2Gather.RequireToken = true, false
	settings.VR2Gather.DefaultRoom = room
	return settings
}

// patient lets a server drop no late data, for tests that count every frame on busy machines. With -full, the machine
// is idle.
func patient(settings *config.Config) {
	if *full {
		return
	}
	testbed.Unhurried(settings)
	settings.Forward.QueueBudget = 5 * signal.MaxDeadline
}

// endedBy returns the number of frames that the server may have begun to send, and ended: their rest was late, packets
// were lost on the way from the publisher, which old peers do not repair, or the machine was too busy to read or send
// them.
func endedBy(c *testbed.Conference) int {
	s := c.Server.Stats()
	return int(s.DroppedExpired + s.DroppedIncomplete + s.DroppedOverrun + s.DroppedBlocked)
}

// startServer starts the server with adjusted test settings, and ends it with the test.
func startServer(t *testing.T, adjust ...func(*config.Config)) *testbed.Conference {
	t.Helper()
	settings := serverSettings()
	for _, f := range adjust {
		f(&settings)
	}
	c, err := testbed.NewConference(settings, nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		goleak.VerifyNone(t)
	})
	return c
}

// address is the address of a server for old peers.
func address(c *testbed.Conference) string { return strings.TrimPrefix(c.Server.URL(), "ws://") }

// clientOf waits until an old peer has the publisher with the given number of its own, and returns the number that the
// peer uses for it.
func clientOf(t *testing.T, a *audience, number int) (client int) {
	t.Helper()
	eventually(t, fmt.Sprintf("something of %d arrives", number), func() bool {
		var known bool
		client, known = a.clients()[number]
		return known
	})
	return client
}

// TestOldPeersSwitchOnTheServer has two old peers and a v1 participant publish and receive 9 tiles × 3 qualities and
// sound, while one of the old peers switches qualities of both others' tiles 1,000 times.
func TestOldPeersSwitchOnTheServer(t *testing.T) {
	long.Test(t)
	c := startServer(t)
	alice := old(t, address(c), conversation(1))
	bob := old(t, address(c), conversation(2))
	p := conversation(100)
	carol := joinModern(t, c.Server.URL(), "carol", p)
	carols := clientOf(t, alice, p.Client)
	for _, client := range []int{2, carols} {
		goOn(t, alice.flows(client, p.Tiles)...)
	}
	goOn(t, bob.flows(1, p.Tiles)...)
	goOn(t, carol.flows("1", p.Tiles)...)
	goOn(t, carol.flows("2", p.Tiles)...)
	const wanted = 1000
	onlooker := bob.pace(p.Tiles, 1, clientOf(t, bob, p.Client))
	switched := randomSwitches(t, alice, p.Tiles, p.Qualities, wanted, 2, carols)
	pace := onlooker()
	goOn(t, bob.flows(carols, p.Tiles)...)
	goOn(t, carol.flows("1", p.Tiles)...)
	alice.whole(t, endedBy(c))
	bob.whole(t, endedBy(c))
	carol.whole(t, endedBy(c))
	measured(t, claim.AtLeast("tiles switched to a quality at random, or off", float64(switched.tiles), "", wanted))
	measured(t, claim.Information("from a choice of 9 tiles to the last of them, median",
		milliseconds(switched.quantile(0.5)), "ms"))
	measured(t, claim.Information("from a choice of 9 tiles to the last of them, p99",
		milliseconds(switched.quantile(0.99)), "ms"))
	measureTally(t, add(alice.tally(), bob.tally(), carol.tally()))
	// The publisher skips one in 11 frames of a quality.
	published := p.rate() * 10 / 11
	measurePace(t, fmt.Sprintf("frames per second of the slowest tile at the one that does not switch, "+
		"of %.1f that are published", published), pace, published)
	for _, identity := range []string{"1", "2"} {
		if got := carol.codecs(identity); got[bodyName] != "codec=cwi0" || got[voiceName] != "codec=VR2A" {
			t.Errorf("the codecs of client %s are %v", identity, got)
		}
	}
	for _, a := range []*audience{alice, bob} {
		if counts := a.peer.Counts(); counts.LostCandidates > 0 || counts.Answers != counts.Offers {
			t.Errorf("%+v", counts)
		}
	}
}

// gathering is a room of old peers, by their numbers, and v1 participants, all of which publish the same without
// skipping frames.
type gathering struct {
	programme
	server *testbed.Conference
	old    map[int]*audience
	modern map[string]*modern
	// numbers are those in the publications of v1 participants.
	numbers map[string]int
}

// gather lets old peers join a room with v1 participants.
func gather(t *testing.T, clients int, identities ...string) *gathering {
	t.Helper()
	interval := time.Second / 10
	if *full {
		interval = time.Second / 30
	}
	g := &gathering{
		programme: programme{Tiles: 4, Qualities: 2, Bytes: 1500, Interval: interval, Steady: true},
		server:    startServer(t, patient), old: make(map[int]*audience), modern: make(map[string]*modern),
		numbers: make(map[string]int),
	}
	for client := 1; client <= clients; client++ {
		g.Client = client
		g.old[client] = old(t, address(g.server), g.programme)
	}
	for i, identity := range identities {
		g.Client = 100 + i
		g.numbers[identity] = g.Client
		g.modern[identity] = joinModern(t, g.server.Server.URL(), identity, g.programme)
	}
	return g
}

// loss has the frames that a participant has not received from the others, and the packets and frames that a busy
// machine lost in full buffers or dropped because they were late.
type loss struct {
	frames, packets int
	// of has the frames by publisher.
	of map[string]int
}

// fullFrames is the number of new frames of each flow that are checked before and after a peer leaves: those of 4 s. A
// server that loses one in 100 loses some of them.
const fullFrames = 120

// goOn waits until every participant has new frames of all others, and returns the missing ones so far by receiver.
func (g *gathering) goOn(t *testing.T) map[string]loss {
	t.Helper()
	var flows []flow
	var count []func()
	losses := map[string]loss{}
	lose := func(who, whose string, frames, packets int) {
		l := losses[who]
		if l.of == nil {
			l.of = map[string]int{}
		}
		l.of[whose] = frames
		l.frames, l.packets = l.frames+frames, packets
		losses[who] = l
	}
	for client, a := range g.old {
		of := func(other int) {
			flows = append(flows, a.flows(other, g.Tiles)...)
			count = append(count, func() {
				lose(fmt.Sprint(client), fmt.Sprint(other), a.lost(other, g.Tiles), a.peer.Counts().SequenceGaps)
			})
		}
		for other := range g.old {
			if other != client {
				of(other)
			}
		}
		for identity := range g.modern {
			of(clientOf(t, a, g.numbers[identity]))
		}
	}
	for identity, m := range g.modern {
		of := func(other string) {
			flows = append(flows, m.flows(other, g.Tiles)...)
			count = append(count, func() { lose(identity, other, m.lost(other, g.Tiles), m.missing()+m.undecodable()) })
		}
		for client := range g.old {
			of(fmt.Sprint(client))
		}
		for other := range g.modern {
			if other != identity {
				of(other)
			}
		}
	}
	enough := 4
	if *full {
		enough = fullFrames
	}
	goOnBy(t, enough, flows...)
	for _, f := range count {
		f()
	}
	return losses
}

// dropped returns the number of frames that the server has dropped because the machine stalled: the frames or their
// packets were late, or a receiver's answers to checks of consent were.
func (g *gathering) dropped() int {
	stats := g.server.Server.Stats()
	return int(stats.DroppedOverrun + stats.DroppedLate + stats.DroppedBudget + stats.DroppedExpired +
		stats.DroppedIncomplete + stats.DroppedBlocked + stats.DroppedUnbound)
}

// TestLeavingTheServer ends three old peers, one by one: one is killed, one leaves, one sends garbage. Another old peer
// and two v1 participants continue and lose nothing.
func TestLeavingTheServer(t *testing.T) {
	g := gather(t, 4, "grace", "linus")
	g.goOn(t)
	ends := []struct {
		what string
		end  func(p *oldpeer.Peer)
	}{
		{"was killed", (*oldpeer.Peer).Kill},
		{"left", (*oldpeer.Peer).Leave},
		{"sent garbage", func(p *oldpeer.Peer) { garbage(t, p) }},
	}
	for i, end := range ends {
		client := 1 + i
		leaver := g.old[client]
		// Missing frames of the leaving peer are not checked.
		delete(g.old, client)
		// Frames that the server drops before the receivers' counts may be missed by them after.
		dropped := g.dropped()
		before := g.goOn(t)
		end.end(leaver.peer)
		for identity, m := range g.modern {
			eventually(t, identity+" is told of the one that "+end.what,
				func() bool { return m.sawLeave(fmt.Sprint(client)) })
		}
		lost, explained := 0, 0
		for who, now := range g.goOn(t) {
			frames, packets := now.frames-before[who].frames, now.packets-before[who].packets
			if frames > 0 {
				t.Logf("%s lost %d frames, and %d packets, when a peer %s; of whom, before and after: %v %v", who,
					frames, packets, end.what, before[who].of, now.of)
			}
			lost, explained = lost+frames, explained+min(frames, packets)
		}
		explained += g.dropped() - dropped
		if *full {
			measured(t, claim.Exactly("frames that others lost when an old peer "+end.what, int64(lost), "", 0))
		} else {
			measured(t, claim.Exactly("frames that others lost when an old peer "+end.what+", but for want of time",
				int64(max(0, lost-explained)), "", 0))
		}
	}
	if t.Failed() {
		t.Logf("the counts of the server: %+v", g.server.Server.Stats())
	}
	var sums []tally
	for _, a := range g.old {
		a.whole(t, endedBy(g.server))
		sums = append(sums, a.tally())
	}
	for _, m := range g.modern {
		m.whole(t, endedBy(g.server))
		sums = append(sums, m.tally())
	}
	measureTally(t, add(sums...))
	// A number that has become free can be reused.
	g.Client = 2
	g.old[2] = old(t, address(g.server), g.programme)
	g.goOn(t)
}

// garbage sends invalid payloads and then invalid messages, until the server closes the websocket.
func garbage(t *testing.T, p *oldpeer.Peer) {
	t.Helper()
	for size := range 60 {
		if err := p.WriteTilePayload(size%4, size%2, []byte(strings.Repeat("\xff", size))); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"1@7@1,2,x;;,,;9999999999999,1", "1@4@candidate:nonsense", "nothing like a message"} {
		if p.Say(text) != nil {
			break
		}
	}
	eventually(t, "the server ends the websocket", func() bool {
		select {
		case <-p.Ended():
			return true
		default:
			return false
		}
	})
}
