package sfu

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/forward/ingress"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/sfu/dataflow"
	"github.com/volsfu/volsfu/internal/sfu/peer"
	"github.com/volsfu/volsfu/internal/sfu/presence"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// start is the beginning of virtual time.
var start = time.Unix(1_795_188_600, 0)

// stage is a room in virtual time. The test replaces its data plane.
type stage struct {
	t      testing.TB
	room   *Room
	engine *forward.Engine
	now    time.Time
	counts *countedMetrics
	// cost is the additional duration of a decision, spent the sum of these durations.
	cost, spent time.Duration
}

// costly is an allocator that needs the duration set by the test.
type costly struct {
	subscriber.Allocator
	stage *stage
}

// Allocate implements subscriber.Allocator.
func (c costly) Allocate(scene *allocate.Scene) allocate.Result {
	c.stage.spent += c.stage.cost
	return c.Allocator.Allocate(scene)
}

// player is a participant on a stage with its received messages.
type player struct {
	*participant
	*shelf
	stage *stage
	way   *playedLink
}

// playedLink is a receiver's link with values set by the test.
type playedLink struct {
	path  egress.Path
	share float64
	// uplink is the share of parity that every publisher's path needs.
	uplink float64
	wanted volumetric.Bitrate
	limits congestion.Limits
}

// Path implements subscriber.Link.
func (l *playedLink) Path() egress.Path { return l.path }

// Want implements subscriber.Link.
func (l *playedLink) Want(rate volumetric.Bitrate) { l.wanted = rate }

// SetLimits implements subscriber.Link.
func (l *playedLink) SetLimits(limits congestion.Limits) { l.limits = limits }

// ParityShare implements subscriber.Link.
func (l *playedLink) ParityShare() float64 { return l.share }

// ParityOf implements subscriber.Link.
func (l *playedLink) ParityOf(*track.Track) float64 { return l.share + l.uplink }

// playedSlot is the output of a slot.
type playedSlot struct {
	track     *track.Track
	requested time.Time
	changes   int
	seen      bool
}

// Select implements subscriber.Output.
func (s *playedSlot) Select(track *track.Track, _ uint64, requested time.Time) {
	s.track, s.requested = track, requested
	s.changes++
}

// SetSeen implements subscriber.Output.
func (s *playedSlot) SetSeen(seen bool) { s.seen = seen }

// playedMeter returns the rate set by the test.
type playedMeter volumetric.Bitrate

// Rate implements subscriber.Meter.
func (m *playedMeter) Rate() (volumetric.Bitrate, bool) { return volumetric.Bitrate(*m), *m > 0 }

// Steady implements subscriber.Meter.
func (m *playedMeter) Steady() time.Duration { return time.Hour }

// countedMetrics counts decisions.
type countedMetrics struct {
	uncounted
	paused      int
	bits        float64
	allocations int
	decided     map[signal.Reason]int
}

func (c *countedMetrics) TracksPaused(n int)                          { c.paused += n }
func (c *countedMetrics) Suppressed(bits float64)                     { c.bits += bits }
func (c *countedMetrics) Allocated(time.Duration, volumetric.Bitrate) { c.allocations++ }
func (c *countedMetrics) Decided(r signal.Reason)                     { c.decided[r]++ }

func newStage(t testing.TB, adjust func(*Config)) *stage {
	t.Helper()
	config := DefaultConfig()
	if adjust != nil {
		adjust(&config)
	}
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	engine := forward.NewEngine(forward.DefaultConfig(), peer.NewBatch)
	t.Cleanup(engine.Close)
	counts := &countedMetrics{decided: map[signal.Reason]int{}}
	node := &Node{config: config, engine: engine, metrics: counts, log: zap.NewNop()}
	node.rooms = newDirectory(node)
	room := newRoom(node, "room")
	room.now = start
	s := &stage{t: t, room: room, engine: engine, now: start, counts: counts}
	room.scheduler.Clock = func() time.Time { return s.now.Add(s.spent) }
	room.scheduler.Allocator = costly{room.scheduler.Allocator, s}
	return s
}

// enter adds a participant with a connected peer connection.
func (s *stage) enter(identity string, receive, pauses bool, publications ...volumetric.Publication) *player {
	s.t.Helper()
	o, way := &shelf{}, &playedLink{}
	p := &participant{
		Presence: presence.Presence{Identity: identity}, profile: &signallingProfile,
		room: s.room, grants: Grants{Publish: true, Subscribe: true}, receive: receive,
		pauses: pauses, log: zap.NewNop(), outbox: o,
		connection: &connection{room: s.room, Connection: &peer.Connection{
			Receiver: &egress.Receiver{}, Ingress: &ingress.Ingress{},
		}},
		subscriber: subscriber.New(subscriber.NewSlots(), subscriber.NewChoices(100)), connected: true,
		publishing: newPublishingLimit(&s.room.node.config), offers: subscriber.NewOfferLimit(),
		data: dataflow.NewFlow(s.room.node.config.dataLimits()),
	}
	p.connection.owner = p
	s.ask(func(r *Room) {
		p.subscriber.Connect(way, r.node.config.Allocation)
		r.enter(p)
		for _, description := range publications {
			if err := r.publish(p, description); err != nil {
				s.t.Fatal(err)
			}
		}
		p.sendPoses()
		p.subscribe(r.present.PublishedByOthers(&p.Presence))
		r.announce(&p.Presence, p.Publications)
		r.wakeBy(r.now)
	})
	pl := &player{participant: p, shelf: o, stage: s, way: way}
	return pl
}

// attach adds a slot for each waiting target.
func (p *player) attach() {
	p.stage.ask(func(*Room) {
		slots := p.subscriber.Slots
		for _, kind := range []volumetric.Kind{volumetric.KindVideo, volumetric.KindAudio} {
			for slots.Count(kind) < slots.Needed(kind) {
				mid := fmt.Sprint(len(slots.All()))
				slots.Add([]subscriber.Line{{MID: mid, Kind: kind}})
				slots.ByMID(mid).Output = &playedSlot{}
			}
		}
		p.sendAssignments(slots.Assign())
		for _, slot := range slots.All() {
			slots.Acknowledge(signal.SlotGeneration{MID: slot.MID, Generation: slot.Generation})
		}
		p.refresh(p.stage.now)
	})
}

// deed is a request of the test.
type deed func(r *Room)

// apply implements request.
func (d deed) apply(r *Room) { d(r) }

func (s *stage) ask(d deed) { s.room.do(s.now, d) }

// pass advances virtual time and wakes the room when its alarm is due.
func (s *stage) pass(d time.Duration) {
	s.t.Helper()
	end := s.now.Add(d)
	for wakes := 0; !s.room.wakeAt.IsZero() && !s.room.wakeAt.After(end); wakes++ {
		if wakes > 100_000 {
			s.t.Fatal("the room does not come to rest")
		}
		if s.room.wakeAt.After(s.now) {
			s.now = s.room.wakeAt
		}
		s.room.do(s.now, wake{})
	}
	s.now = end
}

// say sends messages of the player and fails if a message is refused.
func (p *player) say(messages ...signal.Message) {
	p.stage.t.Helper()
	_, before := latest[*signal.Error](p.shelf)
	for _, m := range messages {
		p.stage.room.do(p.stage.now, messageRequest{participant: p.participant, outbox: p.shelf, message: m,
			at: p.stage.now})
	}
	if refused, after := latest[*signal.Error](p.shelf); after != before {
		p.stage.t.Fatal(refused)
	}
}

// choose chooses the quality of a tile of alice's body, or of the whole body if tile is -1.
func (p *player) choose(tile int, s signal.Selection) {
	p.stage.t.Helper()
	p.say(&signal.SetQuality{Choices: []signal.Choice{choiceOf(tile, s)}})
}

// carries returns the selected qualities of the player's video slots, in order, for example "2 0 -1".
func (p *player) carries() string {
	var all []string
	for _, slot := range p.subscriber.Slots.All() {
		if slot.Kind == volumetric.KindVideo {
			all = append(all, fmt.Sprint(slot.Quality))
		}
	}
	return strings.Join(all, " ")
}

// begin lets the selected qualities of all slots begin.
func (p *player) begin() {
	p.stage.ask(func(*Room) {
		for _, slot := range p.subscriber.Slots.All() {
			if slot.Target == nil || slot.Quality == volumetric.QualityOff {
				continue
			}
			track, _ := slot.Target.Publication.Track(slot.Target.Tile.Tile, slot.Quality)
			played, began := slot.Output, &egress.Slot{}
			slot.Output = began
			p.subscriber.TakeEvents([]egress.Event{{Slot: began, Track: track, Switched: true}}, true)
			slot.Output = played
		}
	})
}

// expectCarried fails unless the slots have the given selected qualities.
func (p *player) expectCarried(want string) {
	p.stage.t.Helper()
	if got := p.carries(); got != want {
		p.stage.t.Fatalf("%s is sent %q, expected %q", p.Identity, got, want)
	}
}

// watches adds a participant without publications whose link has the given estimate.
func (s *stage) watches(identity string, estimate volumetric.Bitrate) *player {
	s.t.Helper()
	p := s.enter(identity, true, false)
	p.way.path = known(estimate)
	p.attach()
	return p
}

// known returns a path with the given estimate.
func known(estimate volumetric.Bitrate) egress.Path {
	return egress.Path{Known: true, Estimate: estimate, RTT: 20 * time.Millisecond}
}

// awaited returns a path before its first report.
func awaited(startRate volumetric.Bitrate) egress.Path {
	return egress.Path{Awaited: true, Estimate: startRate}
}

// ladder returns a body whose qualities have 1, 2, 4 … Mbit/s per tile. The tiles are side by side along x.
func ladder(tiles, qualities int) volumetric.Publication {
	p := bodyOf(tiles, qualities)
	for i := range p.Tiles {
		p.Tiles[i].Box = volumetric.BoundingBox{Min: [3]float32{float32(i), 0, 0},
			Max: [3]float32{float32(i) + 1, 1, 1}}
	}
	for q := range p.Qualities {
		p.Qualities[q].Bitrate = 1e6 << q
	}
	return p
}

// reasons returns the reasons in a message, by line.
func reasons(m *signal.Sending) string {
	var all []string
	for _, slot := range m.Slots {
		all = append(all, fmt.Sprintf("%s:%d:%s", slot.MID, slot.Quality, slot.Reason))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
