package sfu

import (
	"slices"
	"testing"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/forward/trace"
	"github.com/volsfu/volsfu/internal/sfu/roomevent"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// nowhere is a peer that sends nothing.
type nowhere struct{}

func (nowhere) Blocked(time.Time) bool        { return false }
func (nowhere) Post(egress.Batch)             {}
func (nowhere) WriteRTCP([]rtcp.Packet) error { return nil }
func (nowhere) RTT() time.Duration            { return 0 }
func (nowhere) TransportSequenceID() uint8    { return 0 }
func (nowhere) SetECN(ecn.Codepoint)          {}
func (nowhere) ReportsByStream() bool         { return false }
func (nowhere) AcceptsReportsByStream() bool  { return false }
func (nowhere) Fail()                         {}

// tracingStage returns a stage whose players have receivers.
func tracingStage(t *testing.T, adjust func(*Config)) *stage {
	t.Helper()
	s := newStage(t, adjust)
	endpoint, err := transport.Listen(mediaOnLoopback())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = endpoint.Close() })
	s.room.node.endpoint = endpoint
	return s
}

func (s *stage) enterTraced(identity string, receive bool, publications ...volumetric.Publication) *player {
	p := s.enter(identity, receive, false, publications...)
	p.connection.Receiver = s.engine.NewReceiver(nowhere{}, 0)
	s.ask(func(r *Room) { r.participants.askForTimes(r.span) })
	return p
}

// timesOf returns a sender's message with the times of a number of frames of each tile.
func timesOf(publication string, tiles, frames int) *signal.FrameTimes {
	m := &signal.FrameTimes{Host: signal.FrameHostSender, Clock: signal.HostClock{Source: signal.ClockEstimated,
		Bound: 7}}
	for tile := range tiles {
		track := signal.TrackTimes{Publication: publication, Tile: tile}
		for n := range frames {
			row := make([]int64, signal.FrameTimesHead+signal.SenderStamps)
			row[0] = int64(n)
			track.Frames = append(track.Frames, row)
		}
		m.Tracks = append(m.Tracks, track)
	}
	return m
}

// TestTrace checks that publishers are asked for times while another participant wants them, and once to stop.
func TestTrace(t *testing.T) {
	s := tracingStage(t, nil)
	alice := s.enterTraced("alice", true, ladder(2, 1))
	bob, carol := s.enterTraced("bob", true), s.enterTraced("carol", true)
	asked := func(want int, on bool) {
		t.Helper()
		m, n := latest[*signal.Trace](alice.shelf)
		if n != want || n > 0 && m.FrameTimes != on {
			t.Fatalf("asked %d times, last %+v; expected %d times, last %v", n, m, want, on)
		}
	}
	asked(0, false)
	bob.say(&signal.Trace{FrameTimes: true})
	asked(1, true)
	carol.say(&signal.Trace{FrameTimes: true})
	bob.say(&signal.Trace{FrameTimes: false})
	asked(1, true)
	carol.say(&signal.Trace{FrameTimes: false})
	asked(2, false)
	// A publisher is not asked for times that only itself wants.
	alice.say(&signal.Trace{FrameTimes: true})
	asked(2, false)
	if _, n := latest[*signal.Trace](bob.shelf); n != 0 {
		t.Error("a participant without publications is asked")
	}
	bob.say(&signal.Trace{FrameTimes: true})
	s.ask(func(*Room) { alice.sendTrace() })
	asked(4, true)
}

// TestTraceRequestsAreLimited checks that a receiver cannot make the server ask publishers without end.
func TestTraceRequestsAreLimited(t *testing.T) {
	s := tracingStage(t, nil)
	alice, bob := s.enterTraced("alice", false, ladder(1, 1)), s.enterTraced("bob", true)
	for i := range 1000 {
		s.room.do(s.now, messageRequest{participant: bob.participant, outbox: bob.shelf,
			message: &signal.Trace{FrameTimes: i%2 == 0}, at: s.now})
	}
	most := s.room.node.config.PublishBurst
	if _, n := latest[*signal.Trace](alice.shelf); n != most {
		t.Errorf("a publisher was asked %d times at once, expected %d", n, most)
	}
	if refused, n := latest[*signal.Error](bob.shelf); n == 0 || refused.Code != signal.CodeLimit {
		t.Errorf("%d requests were refused, the last with %v, expected refusals with %q", n, refused, signal.CodeLimit)
	}
	s.now = s.now.Add(time.Second)
	bob.say(&signal.Trace{FrameTimes: true})
	if m, n := latest[*signal.Trace](alice.shelf); n != most+1 || !m.FrameTimes {
		t.Errorf("a second later a publisher was asked %d times, last %+v", n, m)
	}
}

// TestTimesArePassedOn checks that times of existing tracks are forwarded under the publisher's name to participants
// that asked.
func TestTimesArePassedOn(t *testing.T) {
	s := tracingStage(t, nil)
	alice := s.enterTraced("alice", false, ladder(2, 1))
	bob, carol := s.enterTraced("bob", true), s.enterTraced("carol", true)
	bob.say(&signal.Trace{FrameTimes: true})
	m := timesOf("body", 2, 3)
	m.Tracks[0].Participant = "mallory"
	m.Tracks = append(m.Tracks, signal.TrackTimes{Publication: "desk"}, signal.TrackTimes{Publication: "body", Tile: 2},
		signal.TrackTimes{Publication: "body", Quality: 1})
	m.Dropped = 5
	alice.say(m)
	got, n := latest[*signal.FrameTimes](bob.shelf)
	if n != 1 || len(got.Tracks) != 2 || got.Dropped != 5 || got.Clock.Bound != 7 ||
		got.Host != signal.FrameHostSender {
		t.Fatalf("%d messages, last %+v, expected the two tracks", n, got)
	}
	for _, track := range got.Tracks {
		if track.Participant != "alice" || len(track.Frames) != 3 {
			t.Errorf("got %+v, expected three frames of alice's", track)
		}
	}
	for _, p := range []*player{alice, carol} {
		if _, n := latest[*signal.FrameTimes](p.shelf); n != 0 {
			t.Errorf("%s did not ask and is told", p.Identity)
		}
	}
}

// TestOnlyPublishersSendTimes checks that times of a participant without publications are not forwarded.
func TestOnlyPublishersSendTimes(t *testing.T) {
	s := tracingStage(t, nil)
	alice, bob := s.enterTraced("alice", false), s.enterTraced("bob", true)
	bob.say(&signal.Trace{FrameTimes: true})
	m := timesOf("body", 1, 1)
	m.Dropped = 1
	alice.say(m)
	if got, n := latest[*signal.FrameTimes](bob.shelf); n != 0 {
		t.Errorf("%d messages of a participant without publications were forwarded, last %+v", n, got)
	}
}

// TestTimesAreLimited checks that a publisher cannot flood others.
func TestTimesAreLimited(t *testing.T) {
	s := tracingStage(t, nil)
	alice := s.enterTraced("alice", false, ladder(1, 1))
	bob := s.enterTraced("bob", true)
	bob.say(&signal.Trace{FrameTimes: true})
	passed, dropped := 0, 0
	count := func() {
		m, _ := latest[*signal.FrameTimes](bob.shelf)
		for _, track := range m.Tracks {
			passed += len(track.Frames)
		}
		dropped += m.Dropped
	}
	for range 100 {
		alice.say(timesOf("body", 1, signal.MaxFrameTimes))
		count()
		s.now = s.now.Add(10 * time.Millisecond)
	}
	if passed == 0 || dropped == 0 || passed+dropped != 100*signal.MaxFrameTimes {
		t.Errorf("%d of %d frames in a second were passed on, %d dropped; expected some and the rest", passed,
			100*signal.MaxFrameTimes, dropped)
	}
}

// TestServerTimes checks the conversion of times of the data plane to rows by track, with the clock that clients see.
func TestServerTimes(t *testing.T) {
	s := tracingStage(t, func(c *Config) {
		c.ClockOffset, c.ClockSource = 50*time.Millisecond, string(signal.ClockPTP)
	})
	alice := s.enterTraced("alice", false, ladder(2, 2))
	bob := s.enterTraced("bob", true)
	bob.attach()
	bob.say(&signal.Trace{FrameTimes: true})
	publication := alice.Publication("body")
	slots := []*egress.Slot{{}, {}}
	s.ask(func(*Room) {
		for i, slot := range bob.subscriber.Slots.All()[:2] {
			slot.Output = slots[i]
		}
	})
	at := start.UnixNano()
	frame := func(slot *egress.Slot, tile, number int) egress.FrameTimes {
		track, _ := publication.Track(tile, 1)
		return egress.FrameTimes{
			Slot: slot, Track: track, Frame: uint32(number), Bytes: 100,
			FirstInKernel: at + 1500, FirstIn: at + 20_000, LastIn: at + 3e6, FirstOut: at + 90_000, LastOut: at + 4e6,
		}
	}
	tile := bob.subscriber.Slots.All()[0].Target.Tile.Tile
	other := bob.subscriber.Slots.All()[1].Target.Tile.Tile
	s.room.do(s.now, frameTimes{bob.connection, []egress.FrameTimes{
		frame(slots[0], tile, 7), frame(slots[0], tile, 8), frame(slots[1], other, 7), frame(&egress.Slot{}, 0, 7),
	}})
	m, n := latest[*signal.FrameTimes](bob.shelf)
	if n != 1 || m.Host != signal.FrameHostServer || m.Clock.Source != signal.ClockPTP || len(m.Tracks) != 2 ||
		len(m.Tracks[0].Frames) != 2 {
		t.Fatalf("%d messages, last %+v", n, m)
	}
	want := []int64{7, 100, (at+50e6)/1000 + 1, -1, 500, 19_000, 3e6 - 1000, 89_000, -1, -1, 4e6 - 1000}
	if got := m.Tracks[0].Frames[0]; !slices.Equal(got, want) {
		t.Errorf("the first row is %v, expected %v", got, want)
	}
	if track := m.Tracks[0]; track.Participant != "alice" || track.Quality != 1 || track.Tile != tile {
		t.Errorf("the first track is %+v", track)
	}
	bob.say(&signal.Trace{FrameTimes: false})
	s.room.do(s.now, frameTimes{bob.connection, []egress.FrameTimes{frame(slots[0], tile, 9)}})
	if _, n := latest[*signal.FrameTimes](bob.shelf); n != 1 {
		t.Error("a participant that stopped the trace receives times")
	}
	bob.say(&signal.Time{T0: 1})
	reply, _ := latest[*signal.TimeReply](bob.shelf)
	if got := time.UnixMicro(reply.T1).Sub(s.now); got != 50*time.Millisecond {
		t.Errorf("the server's clock is %v ahead, expected 50 ms", got)
	}
}

// TestTimesOfOtherNodes checks that a node asks the homes of others for the times of frames while a participant wants
// them, and passes the times to this participant, of the tiles that it receives.
func TestTimesOfOtherNodes(t *testing.T) {
	c := newConference(t, func(c *Config) { c.ClockOffset = time.Second }, "a", "b")
	alice := c.enter(c[0], "alice", false, true, ladder(2, 2))
	bob, carol := c.enter(c[1], "bob", true, false), c.enter(c[1], "carol", true, false)
	bob.attach()
	carol.attach()
	asked := func(want bool) {
		t.Helper()
		c.exchange()
		if take := c[1].takes[bodyRef]; len(take.Tiles) != 2 || take.Trace != want {
			t.Errorf("the demand is %+v, expected times of frames: %t", take, want)
		}
	}
	asked(false)
	bob.say(&signal.Trace{FrameTimes: true})
	asked(true)
	in := start.UnixNano() + 1500
	times := roomevent.Relayed{
		Ref: bodyRef, ID: alice.Publications[0].ID, Offset: -5 * time.Second, Bound: 2000, Uncertainty: 300,
		Frames: []trace.Relay{
			{Track: 3, Frame: 7, LastIn: in, Held: time.Millisecond}, {Track: 4, Frame: 7, LastIn: in}, {Track: 99},
		},
	}
	c[1].receive("a", times)
	m, n := latest[*signal.FrameTimes](bob.shelf)
	if n != 1 || m.Host != signal.FrameHostRelay || len(m.Tracks) != 1 || m.Clock != (signal.HostClock{
		Source: signal.ClockEstimated, Offset: -4e9, Bound: 2000, Uncertainty: 300,
	}) {
		t.Fatalf("%d messages, last %+v", n, m)
	}
	track := m.Tracks[0]
	if track.Participant != "alice" || track.Publication != "body" || track.Tile != 1 || track.Quality != 1 {
		t.Errorf("the track is %+v", track)
	}
	want := [][]int64{{7, 0, (in + 1e9) / 1000, 500, 1_000_500}}
	if !slices.EqualFunc(track.Frames, want, slices.Equal) {
		t.Errorf("the rows are %v, expected %v", track.Frames, want)
	}
	times.Frames = make([]trace.Relay, signal.MaxFrameTimes+1)
	c[1].receive("a", times)
	if m, n = latest[*signal.FrameTimes](bob.shelf); n != 3 || len(m.Tracks[0].Frames) != 1 {
		t.Errorf("%d messages, expected two for more frames than one message may have", n)
	}
	times.ID++
	c[1].receive("a", times)
	if _, n = latest[*signal.FrameTimes](bob.shelf); n != 3 {
		t.Error("times of another publication are sent")
	}
	if _, n = latest[*signal.FrameTimes](carol.shelf); n != 0 {
		t.Errorf("carol, who did not ask, gets %d messages", n)
	}
	bob.say(&signal.Trace{FrameTimes: false})
	asked(false)
}

func TestClockIsValidated(t *testing.T) {
	c := DefaultConfig()
	c.ClockSource = string(signal.ClockEstimated)
	if c.Validate() == nil {
		t.Error("a server estimates its own clock")
	}
}
