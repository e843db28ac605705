// Package chaos has one participant of a room of five misbehave in many ways, while the frames that the other four send
// each other are counted.
package chaos

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/long"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

const (
	// patience limits each wait on a busy machine.
	patience = 60 * time.Second
	// repairTime is the time for which frames are repaired: far longer than in a conference, so that a stalled machine
	// does not lose frames.
	repairTime = signal.MaxDeadline
	// everything is a bit rate above all bit rates of the test.
	everything = testbed.Everything
	// longestGap is the maximum pause of a stream: many times the duration of a machine's stall, and much less than the
	// pause of a stream that has stopped.
	longestGap = 10 * time.Second
	// stalled is the delay of a goroutine beyond which the machine may lose frames. Up to eight goroutines take turns
	// to repair a frame: reader and timer of the receiver, reader of the server, reader and sender of the publisher,
	// reader and writer of the server, reader of the receiver.
	stalled = repairTime / 8
	// enough is the number of frames of every stream that have to arrive after each mischief.
	enough = 15
)

// frameRate is in frames per second.
const frameRate = 15

// load is the publication of each participant: frames of three packets.
var load = testbed.Load{Name: "body", Tiles: 2, Qualities: 2, FrameBytes: 2500, Rate: frameRate}

// room has four participants that behave.
type room struct {
	*testbed.Conference
	names []string
	peers map[string]*testbed.Peer
	// addresses are the source addresses of their media.
	addresses map[string]netip.AddrPort
	// goroutines is the number of goroutines with these four in the room.
	goroutines int
}

// open starts a server and lets the four join.
func open(t *testing.T) *room {
	t.Helper()
	settings := testbed.ConferenceConfig()
	testbed.Unhurried(&settings)
	// A dead client has to be removed by the end; a client that stalls for a few seconds must not be.
	settings.Rooms.ResumeGrace = 5 * time.Second
	settings.Signalling.PingInterval = 5 * time.Second
	// Floods must reach the code behind the limits of signalling.
	settings.Signalling.MessageRate, settings.Signalling.MessageBurst = 1e6, 1e6
	settings.Signalling.ByteRate, settings.Signalling.ByteBurst = 1e9, 1e9
	c, err := testbed.NewConference(settings, nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		goleak.VerifyNone(t)
	})
	r := &room{Conference: c, names: []string{"alice", "bob", "carol", "dave"}, peers: map[string]*testbed.Peer{},
		addresses: map[string]netip.AddrPort{}}
	for _, name := range r.names {
		r.peers[name] = r.join(t, name)
	}
	for _, f := range r.flows() {
		wait.Until(t, f.String()+" has begun", func() bool { return r.peers[f.receiver].Tile(f.tile).Frames > 0 })
	}
	r.goroutines = runtime.NumGoroutine()
	return r
}

// join connects a participant that behaves.
func (r *room) join(t *testing.T, name string) *testbed.Peer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	r.addresses[name] = conn.LocalAddr().(*net.UDPAddr).AddrPort()
	p, err := r.Join(ctx, testbed.Part{
		Room: "room", Identity: name, Loads: []testbed.Load{load}, Receive: true, Deadline: repairTime,
		MinUplink: everything, QueueBudget: repairTime, Media: conn, Record: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// flow is one tile on its way from one of the four to another.
type flow struct {
	receiver string
	tile     volumetric.TileRef
}

func (f flow) String() string { return fmt.Sprintf("%v at %s", f.tile, f.receiver) }

func tileOf(participant string, index int) volumetric.TileRef {
	return volumetric.TileRef{PublicationRef: volumetric.PublicationRef{Participant: participant,
		Publication: load.Name}, Tile: index}
}

func (r *room) flows() []flow {
	var flows []flow
	for _, receiver := range r.names {
		for _, publisher := range r.names {
			for i := range load.Tiles {
				if publisher != receiver {
					flows = append(flows, flow{receiver, tileOf(publisher, i)})
				}
			}
		}
	}
	return flows
}

// count has the frames and losses of a flow so far.
type count struct {
	testbed.Reception
	client.TileStats
}

// lost is the number of frames that a receiver will never complete.
func (c count) lost() int64 { return c.Undecodable + c.Missing + c.DroppedByServer + c.Overflowed }

func (r *room) count(f flow) count {
	p := r.peers[f.receiver]
	var c count
	for _, s := range p.Session.Stats() {
		if s.Track.TileRef == f.tile {
			c.TileStats = s
		}
	}
	// The reception is read after the losses: a frame whose loss is in an earlier state and whose number is not would
	// never be accounted for.
	c.Reception = p.Tile(f.tile)
	return c
}

// toll has the effects of an action on the flows.
type toll struct {
	frames int
	lost   int64
	gap    time.Duration
	// stalls are the delays of a goroutine meanwhile that may cost frames.
	stalls []wait.Stall
	// unexplained is the number of lost frames that no stall concerns.
	unexplained int64
}

// here checks whether the four are still in the room.
func (r *room) here(t *testing.T) {
	t.Helper()
	for _, name := range r.names {
		if err := r.peers[name].Session.Err(); err != nil {
			t.Fatalf("%s is not in the room any more: %v", name, err)
		}
	}
}

// during counts frames during an action, and until enough have arrived after it.
func (r *room) during(t *testing.T, do func(t *testing.T)) toll {
	t.Helper()
	before, stalls, flows := r.state(), wait.WatchStalls(t), r.flows()
	var total toll
	t.Cleanup(func() {
		if t.Failed() || total.lost > 0 {
			r.explain(t, before, stalls)
		}
	})
	for _, p := range r.peers {
		p.ResetGaps()
	}
	do(t)
	done := make([]int, len(flows))
	for i, f := range flows {
		done[i] = r.count(f).Frames
	}
	lost := map[flow]int64{}
	for i, f := range flows {
		wait.Until(t, f.String()+" goes on", func() bool {
			r.here(t)
			return r.count(f).Frames >= done[i]+enough
		})
		was := before.flows[f]
		var now count
		wait.Until(t, f.String()+" is accounted for", func() bool {
			now = r.count(f)
			return now.Number-was.Number <= int64(now.Frames-was.Frames)+now.lost()-was.lost() || r.wasOff(f, before)
		})
		if now.Corrupt > 0 {
			t.Errorf("%v: %d frames differ from the sent ones", f, now.Corrupt)
		}
		if r.wasOff(f, before) {
			t.Errorf("the server switched %v off, expected all tiles at an estimate of %v", f, everything)
		}
		total.frames += now.Frames - was.Frames
		lost[f] = now.lost() - was.lost()
		total.lost += lost[f]
		total.gap = max(total.gap, now.LongestGap)
	}
	total.stalls = stalls.From(stalled)
	for f, n := range lost {
		if n > 0 {
			holes := findHoles(r.peers[f.receiver].Arrivals(), f.tile, before.at)
			total.unexplained += max(0, n-concerned(holes, total.stalls))
		}
	}
	t.Logf("%d frames, %d lost, longest gap %v, longest stall of the machine %v, %d goroutines",
		total.frames, total.lost, total.gap, stalls.Longest(), runtime.NumGoroutine())
	return total
}

// wasOff reports whether the server has told the receiver of a flow since an earlier state that it does not send the
// tile.
func (r *room) wasOff(f flow, since state) bool {
	sendings := r.peers[f.receiver].Sendings()[since.sendings[f.receiver]:]
	return slices.ContainsFunc(sendings, func(s client.Sending) bool {
		return s.Track.TileRef == f.tile && s.Quality == volumetric.QualityOff
	})
}

// expectNone checks that no frames were lost but in stalls of the machine, and no more in these than were captured
// meanwhile.
func (suffered toll) expectNone(t *testing.T) {
	t.Helper()
	most := captured(suffered.stalls)
	switch {
	case suffered.unexplained > 0 || suffered.lost > most:
		t.Errorf("%d frames were lost, %d of them in no stall of the machine; stalls explain at most %d: %v",
			suffered.lost, suffered.unexplained, most, suffered.stalls)
	case suffered.lost > 0:
		t.Logf("%d frames were lost in stalls of the machine: %v", suffered.lost, suffered.stalls)
	}
}

// ready requests the server's readiness.
func (r *room) ready(t *testing.T) {
	t.Helper()
	response, err := http.Get("http://" + r.Server.AdminAddress() + "/readyz")
	if err != nil {
		t.Error(err)
		return
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("the server is not ready: %s", response.Status)
	}
	http.DefaultClient.CloseIdleConnections()
}

// transient is the number of goroutines of the four that exist only temporarily: a timer that fires, a pending request.
const transient = 5

// mayhem limits the goroutines that one misbehaving participant may cause at any time, including its own, which run in
// this process.
const mayhem = 300

// mischief is a way to misbehave.
type mischief struct {
	name string
	do   func(t *testing.T, r *room)
}

func TestMisbehavingClientsDoNotStopOthers(t *testing.T) {
	long.Test(t)
	r := open(t)
	r.endure(t, []mischief{
		{"behaves", behave},
		{"leaves", leave},
		{"dies", die},
		{"stops reading its websocket", stopReading},
		{"hangs up and comes back", comeBack},
		{"sends garbage on its websocket", sendGarbageMessages},
		{"sends garbage for descriptions", sendGarbageDescriptions},
		{"sends garbage for candidates", sendGarbageCandidates},
		{"sends garbage for RTP", sendGarbageRTP},
		{"sends garbage for RTCP", sendGarbageRTCP},
		{"asks for everything", askForEverything},
		{"uses streams without end", useStreamsWithoutEnd},
		{"has absurd names", haveAbsurdNames},
		{"publishes and unpublishes", publishAndUnpublish},
		{"switches qualities", switchQualities},
		{"floods with data messages", floodData},
	})
}

// endure lets one participant misbehave in one way after the other. In the first of them it behaves.
func (r *room) endure(t *testing.T, mischiefs []mischief) {
	t.Helper()
	for _, m := range mischiefs {
		t.Run(m.name, func(t *testing.T) {
			suffered := r.during(t, func(t *testing.T) { m.do(t, r) })
			suffered.expectNone(t)
			if suffered.gap > longestGap {
				t.Errorf("a stream paused for %v, expected at most %v", suffered.gap, longestGap)
			}
			if n := runtime.NumGoroutine(); n > r.goroutines+mayhem {
				t.Errorf("%d goroutines, %d with four participants", n, r.goroutines)
			}
			r.ready(t)
		})
	}
	for _, p := range r.peers {
		wait.Until(t, "all others have left", func() bool { return len(p.Session.Participants()) == len(r.names)-1 })
	}
	wait.Until(t, "only resources of the four remain",
		func() bool { return runtime.NumGoroutine() <= r.goroutines+transient })
	want := len(r.names) * load.Tiles * load.Qualities
	wait.Until(t, fmt.Sprintf("%d tracks, and the receivers and ingresses of the four, are left", want), func() bool {
		stats := r.Server.Stats()
		return stats.Tracks == want && stats.Receivers == len(r.names) && stats.Ingresses == len(r.names)
	})
}
