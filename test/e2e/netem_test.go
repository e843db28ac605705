package e2e

import (
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/pion/rtcp"
	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/e2e/puppet"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

// repairTime is the time for which frames are repaired in these tests. It is far longer than in a conference: the
// success of repairs must not depend on the load of the machine. Other tests measure their speed.
const repairTime = signal.MaxDeadline

// patient makes the server wait as long as its clients.
func patient(c *config.Config) {
	c.Forward.MaxLag = 5 * repairTime
	c.Forward.CacheAge = 5 * repairTime
	c.Forward.LateWindow = 5 * repairTime
	c.Forward.NACK.Deadline, c.Forward.NACK.LongDeadline = repairTime, repairTime
}

// emulation is a conference on an emulated network, where every client has an access link.
type emulation struct{ *testbed.Emulation }

func emulate(t *testing.T, seed uint64, adjust ...func(*config.Config)) *emulation {
	t.Helper()
	settings := testbed.ConferenceConfig()
	patient(&settings)
	for _, f := range adjust {
		f(&settings)
	}
	e, err := testbed.NewEmulation(settings, seed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.Close()
		goleak.VerifyNone(t)
	})
	return &emulation{e}
}

// link connects one more host by an access link with these properties, and returns its address and a socket on it.
func (e *emulation) link(t *testing.T, up, down string) (netip.Addr, *netem.Conn) {
	t.Helper()
	var profiles [2]netem.Config
	for i, text := range []string{up, down} {
		var err error
		if profiles[i], err = netem.ParseProfile(text); err != nil {
			t.Fatal(err)
		}
	}
	address, err := e.Host(profiles[0], profiles[1])
	if err != nil {
		t.Fatal(err)
	}
	conn, err := e.Network.Listen(netip.AddrPortFrom(address, 0))
	if err != nil {
		t.Fatal(err)
	}
	return address, conn
}

// ahead is the number of frames that a publisher sends beyond the newest frame of its receiver. On an idle machine up
// to two frames, 33 ms apart, are in transit on links with a one-way delay of 20 ms, and up to four while one is
// repaired.
const ahead = 5

// following returns the Part.Admit of a publisher that waits for receivers. A machine that cannot process the frames
// in time has fewer of them, instead of a queue that grows beyond repairTime.
func following(receivers ...*testbed.Peer) func(*testbed.Peer, testbed.Load) bool {
	return func(p *testbed.Peer, load testbed.Load) bool {
		ref := tile(p.Session.Identity(), load.Name, 0)
		for _, r := range receivers {
			got := r.Tile(ref)
			if got.Frames > 0 && p.Published(load.Name)-got.Number > ahead && !settled(tileStats(r, ref)) {
				return false
			}
		}
		return true
	}
}

// join connects a peer over a separate link.
func (e *emulation) join(t *testing.T, up, down string, part testbed.Part) (*testbed.Peer, netip.Addr) {
	t.Helper()
	address, conn := e.link(t, up, down)
	part.Media, part.Deadline = conn, repairTime
	return join(t, e.Conference, part), address
}

// tileStats returns a peer's counts of one tile.
func tileStats(p *testbed.Peer, ref volumetric.TileRef) client.TileStats {
	for _, s := range p.Session.Stats() {
		if s.Track.TileRef == ref {
			return s
		}
	}
	return client.TileStats{}
}

// settled reports whether no frame of a tile is under way.
func settled(s client.TileStats) bool {
	return s.Expected > 0 && s.Expected == s.Complete+s.Undecodable+s.Missing+s.DroppedByServer
}

// TestImpairedLinks runs a publisher and a receiver on each kind of link. Both have access links of that kind, in both
// directions, with a round trip of 20 ms each.
func TestImpairedLinks(t *testing.T) {
	// No link is narrow: the test does not consider the cost of lost probes.
	e := emulate(t, 1, unhurried)
	load := testbed.Load{Name: "body", Tiles: 1, Qualities: 1, FrameBytes: 20_000, Rate: 30}
	// 60 frames are 1,080 packets on each hop: at 1 % loss about ten are lost.
	const wanted = 60
	ref := tile("alice", "body", 0)
	for _, test := range []struct {
		name, link string
		// lossy requires that packets are lost, and hence recovered.
		lossy bool
	}{
		{"loss 1 %", "delay=10ms,loss=1%", true},
		{"loss 5 %", "delay=10ms,loss=5%", true},
		{"bursts of loss", "delay=10ms,burst=3%/5", true},
		{"reordering and duplicates", "delay=10ms,reorder=5%,reorder_delay=8ms,duplicate=10%", false},
		{"jitter", "delay=10ms,jitter=5ms,jitter_reorders=true", false},
	} {
		// One link after the other: ten clients at once need more time of the processors than a busy machine has.
		t.Run(test.name, func(t *testing.T) {
			bob, address := e.join(t, test.link, test.link,
				testbed.Part{Room: test.name, Identity: "bob", Receive: true})
			defer bob.Leave()
			alice, _ := e.join(t, test.link, test.link, atLeisure(testbed.Part{Room: test.name, Identity: "alice",
				Loads: []testbed.Load{load}, Admit: following(bob)}))
			defer alice.Leave()
			wait.Until(t, "frames arrived", func() bool { return frames(bob, ref) >= wanted })
			alice.StopPublishing()
			var s client.TileStats
			wait.Until(t, "no frame is on its way", func() bool {
				s = tileStats(bob, ref)
				return settled(s)
			})
			_, down := e.Network.AccessStats(address)
			t.Logf("%d of %d frames complete, %d packets missed by bob, %d of them recovered, %d requests; "+
				"his downlink: %+v", s.Complete, s.Expected, s.Lost,
				s.Recovered, s.Requests, down)
			// At least 99 %: of so few frames, all but one.
			if s.Complete < s.Expected-1 {
				t.Errorf("%d of %d frames complete: %+v\nthe server of all rooms: %+v", s.Complete, s.Expected, s,
					e.Server.Stats())
			}
			// Counted frames have been delivered, though perhaps not yet read.
			wait.Until(t, "the frames that are counted were taken",
				func() bool { return int64(frames(bob, ref)) == s.Complete })
			if test.lossy && s.Recovered == 0 {
				t.Error("nothing was recovered, though the link loses")
			}
			if err := bob.Failure(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLossesOfThePublisherAreRepairedOnce has many receivers of packets that the publisher's link loses.
func TestLossesOfThePublisherAreRepairedOnce(t *testing.T) {
	// The server waits longer before it considers a packet lost: on a busy machine the publisher's pacing is irregular,
	// and late packets are not lost.
	e := emulate(t, 2, unhurried, func(c *config.Config) {
		c.Forward.NACK.TailWait, c.Forward.NACK.ReorderWait = 200*time.Millisecond, 200*time.Millisecond
	})
	stalls := wait.WatchStalls(t)
	const receivers = 4
	var peers []*testbed.Peer
	for i := range receivers {
		p, _ := e.join(t, "delay=10ms", "delay=10ms",
			testbed.Part{Room: "room", Identity: string(rune('b' + i)), Receive: true})
		peers = append(peers, p)
	}
	// With a long round trip, the load of the machine matters less to the timing of requests.
	alice, address := e.join(t, "delay=75ms,loss=5%", "delay=75ms", atLeisure(testbed.Part{
		Room: "room", Identity: "alice", Loads: []testbed.Load{{Name: "body", Tiles: 1, Qualities: 1,
			FrameBytes: 20_000, Rate: 20}},
		Admit: following(peers...),
	}))
	ref := tile("alice", "body", 0)
	for _, p := range peers {
		wait.Until(t, "every peer receives", func() bool { return frames(p, ref) > 0 })
	}
	before, lossesBefore := e.Server.Stats(), losses(e.Network, address)
	wait.Until(t, "many packets were lost", func() bool { return losses(e.Network, address)-lossesBefore >= 60 })
	alice.StopPublishing()
	for _, p := range peers {
		var s client.TileStats
		wait.Until(t, "no frame is on its way", func() bool {
			s = tileStats(p, ref)
			return settled(s)
		})
		if s.Complete < s.Expected-1 {
			t.Errorf("%s: %d of %d frames complete: %+v", p.Session.Identity(), s.Complete, s.Expected, s)
		}
		if err := p.Failure(); err != nil {
			t.Error(err)
		}
	}
	after, lost := e.Server.Stats(), losses(e.Network, address)-lossesBefore
	repaired := after.Received.Retransmission.Packets - before.Received.Retransmission.Packets
	asked := after.Requested - before.Requested
	t.Logf("%d packets lost on the publisher's link, %d asked for, %d retransmitted, %d owed to receivers who asked",
		lost, asked, repaired,
		after.NACKed.Owed-before.NACKed.Owed)
	// Lost packets are media, except for occasional reports or checks, and for one in twenty retransmissions, which is
	// requested again. A repeated request may cross the reply, more often on a busy machine. Twice the losses is still
	// half of the number with one request per receiver.
	if repaired < lost*3/4 {
		t.Errorf("%d retransmissions for %d losses, expected about as many", repaired, lost)
	}
	if longest := stalls.Longest(); longest > stalled {
		t.Logf("repeated requests are not judged: the machine stalled for %v", longest)
		return
	}
	if repaired > lost*receivers/2 {
		t.Errorf("%d retransmissions for %d losses, expected about as many", repaired, lost)
	}
	if asked > lost*receivers/2 {
		t.Errorf("%d requests for %d losses, expected about as many", asked, lost)
	}
}

// TestParityForThePublishersUplink checks that a publisher whose round trip is longer than the server waits for repairs
// is asked for parity, so that a receiver on a short path gets the frames of which the uplink has lost packets.
func TestParityForThePublishersUplink(t *testing.T) {
	e := emulate(t, 3, unhurried, func(c *config.Config) {
		c.Forward.NACK.Deadline, c.Forward.NACK.LongDeadline = 150*time.Millisecond, 150*time.Millisecond
	})
	load := testbed.Load{Name: "body", Tiles: 1, Qualities: 1, FrameBytes: 40_000, Rate: 20}
	bob, _ := e.join(t, "delay=10ms", "delay=10ms", testbed.Part{Room: "room", Identity: "bob", Receive: true})
	alice, address := e.join(t, "delay=80ms,loss=5%", "delay=80ms", atLeisure(testbed.Part{Room: "room",
		Identity: "alice", Loads: []testbed.Load{load}, Admit: following(bob)}))
	ref := tile("alice", "body", 0)
	sentParity := func() uint64 { return e.Server.Stats().Sent.Parity.Packets }
	wait.Until(t, "parity comes", func() bool { return sentParity() > 0 })
	before, lost := tileStats(bob, ref), losses(e.Network, address)
	wait.Until(t, "many frames were sent with it",
		func() bool { return tileStats(bob, ref).Expected-before.Expected >= 200 })
	alice.StopPublishing()
	var s client.TileStats
	wait.Until(t, "no frame is on its way", func() bool {
		s = tileStats(bob, ref)
		return settled(s)
	})
	expected, complete := s.Expected-before.Expected, s.Complete-before.Complete
	t.Logf("%d of %d frames complete, %d packets of parity; the uplink lost %d packets", complete, expected,
		sentParity(), losses(e.Network, address)-lost)
	// A frame has 35 packets, so that 83 % miss at least one. With 4 of parity 5 % are expected to miss more: a quarter
	// allows for a share of parity that has only begun to rise.
	if complete < expected*3/4 {
		t.Errorf("%d of %d frames complete, expected three quarters", complete, expected)
	}
	if err := bob.Failure(); err != nil {
		t.Error(err)
	}
}

// losses returns the number of packets that the uplink of a host has lost.
func losses(n *netem.Network, address netip.Addr) uint64 {
	up, _ := n.AccessStats(address)
	return up.LostRandom + up.LostBurst
}

// TestAHoleThatThePublisherOwesIsFilled withholds a packet until the server and two receivers have requested it.
func TestAHoleThatThePublisherOwesIsFilled(t *testing.T) {
	c := startConference(t, patient)
	asked := &requests{counts: map[uint16]int{}}
	alice, err := puppet.Dial(puppet.Config{URL: c.Server.URL(), RTCP: asked.take})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(alice.Close)
	join1 := &signal.Join{Version: 1, Room: "room", Identity: "alice",
		Publications: []volumetric.Publication{body(1, 1).Publication()}}
	if _, err := alice.Join(join1); err != nil {
		t.Fatal(err)
	}
	var receivers []*client.Session
	for _, name := range []string{"bob", "carol"} {
		receivers = append(receivers, joinAs(t,
			client.Config{URL: c.Server.URL(), Room: "room", Identity: name, Receive: true, Deadline: repairTime}))
	}
	wait.Until(t, "alice is connected", alice.Connected)
	line := alice.Line(puppet.Track{Publication: "body"})
	number := uint32(0)
	sendWhole := func() {
		packets, err := line.Frame(number, []byte("whole"))
		if err != nil {
			t.Fatal(err)
		}
		number++
		if err := line.Write(packets...); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range receivers {
		flowing := false
		wait.Until(t, "frames flow", func() bool {
			sendWhole()
			select {
			case <-r.Frames():
				flowing = true
			default:
			}
			return flowing
		})
	}
	holed := make([]byte, 8*1144)
	for i := range holed {
		holed[i] = byte(i / 1144)
	}
	packets, err := line.Frame(number, holed)
	if err != nil {
		t.Fatal(err)
	}
	const hole = 3
	if err := line.Write(packets[:hole]...); err != nil {
		t.Fatal(err)
	}
	if err := line.Write(packets[hole+1:]...); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the server asks for the packet", func() bool { return asked.of(packets[hole].SequenceNumber) > 0 })
	wait.Until(t, "both receivers ask for it in vain", func() bool { return c.Server.Stats().NACKed.Owed >= 2 })
	if err := line.Repair(packets[hole]); err != nil {
		t.Fatal(err)
	}
	for _, r := range receivers {
		for {
			f := nextFrame(t, r)
			if uint32(f.Number) != number {
				continue
			}
			if string(f.Data) != string(holed) {
				t.Error("the frame differs from the sent one")
			}
			break
		}
	}
	// Within repairTime, eight requests follow one another quickly, and six at doubling distances.
	const most = 8 + 6
	if n := asked.of(packets[hole].SequenceNumber); n > most {
		t.Errorf("the packet was asked for %d times, expected at most %d", n, most)
	}
}

// requests counts the packets requested from a publisher.
type requests struct {
	mu     sync.Mutex
	counts map[uint16]int
}

func (r *requests) take(packet []byte) {
	packets, err := rtcp.Unmarshal(packet)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range packets {
		if nack, ok := p.(*rtcp.TransportLayerNack); ok {
			for _, pair := range nack.Nacks {
				pair.Range(func(sequence uint16) bool {
					r.counts[sequence]++
					return true
				})
			}
		}
	}
}

func (r *requests) of(sequence uint16) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[sequence]
}
