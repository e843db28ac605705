package firstlight

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/testbed"
)

// Switching makes a receiver switch single tiles at random between their qualities, and measures broken frames and
// delays.
type Switching struct {
	Progress lab.Progress
	Switches int
	// Pace is the mean time between two switches.
	Pace time.Duration
	Load testbed.Load
	Seed uint64
	// Slack is the time by which the server may exceed one frame interval in 99 % of switches.
	Slack time.Duration
}

// NewSwitching returns the check of the claim: a body of 40,000 points in 15 tiles has frames of about 8 kB at the
// highest quality. 25 switches per second are about two per tile and second, more than a viewer would cause.
func NewSwitching(progress lab.Progress) *Switching {
	return &Switching{
		Progress: progress, Switches: 1000, Pace: 40 * time.Millisecond, Seed: 1, Slack: 5 * time.Millisecond,
		Load: testbed.Load{Name: "body", Tiles: 15, Qualities: 3, FrameBytes: 8000, Step: 2, Rate: 30},
	}
}

// Name implements lab.Check.
func (s *Switching) Name() string {
	return fmt.Sprintf("%d random switches over %d tiles × %d qualities", s.Switches, s.Load.Tiles, s.Load.Qualities)
}

// Run implements lab.Check.
func (s *Switching) Run(ctx context.Context) ([]claim.Line, error) {
	conference, err := testbed.NewConference(settings(), nil, zap.NewNop())
	if err != nil {
		return nil, err
	}
	defer conference.Close()
	publisher, err := conference.Join(ctx, testbed.Part{Room: "room", Identity: "alice", Loads: []testbed.Load{s.Load},
		MinUplink: testbed.Everything})
	if err != nil {
		return nil, err
	}
	receiver, err := conference.Join(ctx, testbed.Part{Room: "room", Identity: "bob", Receive: true})
	if err != nil {
		return nil, err
	}
	tiles := tilesOf("alice", s.Load.Name, s.Load.Tiles)
	if err := awaitFlow(ctx, receiver, tiles, 10); err != nil {
		return nil, err
	}
	// The same without switches, to separate the machine's own effect.
	quiet, err := s.observe(ctx, receiver, func() error { return lab.Pause(ctx, quietTime(s.Switches, s.Pace)) })
	if err != nil {
		return nil, err
	}
	w := &switcher{check: s, receiver: receiver, random: rand.New(rand.NewPCG(s.Seed, 0)), tiles: tiles,
		quality: make(map[tileRef]volumetric.Quality)}
	asking, stopAsking := context.WithCancel(ctx)
	asks := make(chan []ask, 1)
	go func() { asks <- observeNACKs(asking, receiver) }()
	busy, err := s.observe(ctx, receiver, func() error { return w.run(ctx) })
	stopAsking()
	w.asks = <-asks
	if err != nil {
		return nil, err
	}
	publisher.StopPublishing()
	return s.lines(quiet, busy, w), receiver.Failure()
}

// quietTime returns the time of observation without switches: as long as with switches, at most half a minute.
func quietTime(switches int, pace time.Duration) time.Duration {
	return min(time.Duration(switches)*pace, 30*time.Second)
}

// observe sums the receiver's counters of all tiles while during runs, and until the frames begun in that time are
// settled.
func (s *Switching) observe(ctx context.Context, receiver *testbed.Peer, during func() error) (client.TileStats,
	error) {
	before := sumOf(receiver)
	if err := during(); err != nil {
		return client.TileStats{}, err
	}
	if err := lab.Pause(ctx, settleTime); err != nil {
		return client.TileStats{}, err
	}
	return difference(sumOf(receiver), before), nil
}

// settleTime is longer than the deadline after which a frame is given up.
const settleTime = 500 * time.Millisecond

// sumOf adds up a client's counters of all tiles.
func sumOf(p *testbed.Peer) client.TileStats {
	var sum client.TileStats
	for _, t := range p.Session.Stats() {
		sum.FrameCounts = plus(sum.FrameCounts, t.FrameCounts)
		sum.Packets += t.Packets
		sum.Bytes += t.Bytes
		sum.Lost += t.Lost
		sum.Recovered += t.Recovered
		sum.Gaps += t.Gaps
		sum.Repeats += t.Repeats
		sum.Requests += t.Requests
	}
	return sum
}

// switcher makes the receiver's choices. A tile is switched again only after its last switch was seen, so that each
// switch has its own delay.
type switcher struct {
	check    *Switching
	receiver *testbed.Peer
	random   *rand.Rand
	tiles    []tileRef
	// quality is the quality last requested for each tile; the highest before.
	quality map[tileRef]volumetric.Quality
	// server is the time from reading the request to the first packet sent; roundTrip is the time from the request to
	// the first complete frame.
	server, roundTrip lab.Distribution
	// done has all switches that were seen. asks has the receiver's requests in that time.
	done []switched
	asks []ask
	// expired counts the switches that were not seen within confirmTimeout.
	expired int
}

// pendingSwitch is a requested switch.
type pendingSwitch struct {
	tile    tileRef
	quality volumetric.Quality
	asked   time.Time
	// after is the number of messages received before the request.
	after int
}

// confirmTimeout bounds the wait for a switch to be confirmed.
const confirmTimeout = 5 * time.Second

// run makes the switches.
func (w *switcher) run(ctx context.Context) error {
	var pending []pendingSwitch
	for n := range w.check.Switches {
		if n > 0 && n%250 == 0 {
			w.check.Progress.Say("%d of %d switches", n, w.check.Switches)
		}
		// Times between switches are exponential, so that switches fall anywhere in the frame interval. Long times are
		// cut.
		pause := time.Duration(w.random.ExpFloat64() * float64(w.check.Pace))
		if err := lab.Pause(ctx, min(pause, 10*w.check.Pace)); err != nil {
			return err
		}
		pending = w.confirm(pending)
		if w.expired >= len(w.tiles) && w.expired > w.server.Count() {
			w.check.Progress.Say("%d switches were not made within %v; the check requests no more switches", w.expired,
				confirmTimeout)
			return nil
		}
		tile, ok := w.choose(pending)
		for ; !ok; tile, ok = w.choose(pending) {
			if err := lab.Pause(ctx, time.Millisecond); err != nil {
				return err
			}
			pending = w.confirm(pending)
		}
		asked, err := w.ask(ctx, tile)
		if err != nil {
			return err
		}
		pending = append(pending, asked)
	}
	for len(pending) > 0 {
		if err := lab.Pause(ctx, time.Millisecond); err != nil {
			return err
		}
		pending = w.confirm(pending)
	}
	return nil
}

// choose picks a tile that is not being switched.
func (w *switcher) choose(pending []pendingSwitch) (tileRef, bool) {
	var free []tileRef
	for _, tile := range w.tiles {
		busy := false
		for _, p := range pending {
			busy = busy || p.tile == tile
		}
		if !busy {
			free = append(free, tile)
		}
	}
	if len(free) == 0 {
		return tileRef{}, false
	}
	return free[w.random.IntN(len(free))], true
}

// ask requests another quality of a tile.
func (w *switcher) ask(ctx context.Context, tile tileRef) (pendingSwitch, error) {
	highest := w.check.Load.Qualities - 1
	present, known := w.quality[tile]
	if !known {
		present = volumetric.Quality(highest)
	}
	next := volumetric.Quality(w.random.IntN(highest))
	if next >= present {
		next++
	}
	w.quality[tile] = next
	asked := pendingSwitch{tile: tile, quality: next, asked: time.Now(), after: len(w.receiver.Sendings())}
	index := tile.Tile
	choice := signal.Choice{PublicationRef: tile.PublicationRef, Tile: &index, Quality: signal.Only(next)}
	return asked, w.receiver.Session.SetQuality(ctx, choice)
}

// confirm removes the switches that have happened or expired from the list.
func (w *switcher) confirm(pending []pendingSwitch) []pendingSwitch {
	if len(pending) == 0 {
		return pending
	}
	sendings := w.receiver.Sendings()
	kept := pending[:0]
	for _, p := range pending {
		if w.happened(p, sendings[p.after:]) {
			continue
		}
		if time.Since(p.asked) > confirmTimeout {
			w.expired++
			continue
		}
		kept = append(kept, p)
	}
	return kept
}

// happened reports whether the message about a switch and a frame of the new quality have arrived.
func (w *switcher) happened(p pendingSwitch, sendings []client.Sending) bool {
	for _, s := range sendings {
		if s.Track.TileRef != p.tile || s.Quality != p.quality {
			continue
		}
		at, ok := w.receiver.QualitySince(p.tile, p.quality)
		if !ok || at.Before(p.asked) {
			return false
		}
		w.server.Add(s.Delay)
		w.roundTrip.Add(at.Sub(p.asked))
		w.done = append(w.done, switched{p.tile, p.asked, at})
		return true
	}
	return false
}

// lines returns the figures.
func (s *Switching) lines(quiet, busy client.TileStats, w *switcher) []claim.Line {
	interval := time.Duration(float64(time.Second) / s.Load.Rate)
	ms := lab.Milliseconds
	return []claim.Line{
		claim.Exactly("switches seen", int64(w.server.Count()), "", int64(s.Switches)),
		claim.Exactly("frames undecodable", busy.Undecodable, "", 0),
		claim.Exactly("frames missing, dropped or not read", lost(busy.FrameCounts)-busy.Undecodable, "", 0),
		claim.Information("frames expected", float64(busy.Expected), ""),
		claim.Exactly("packets requested (NACK) because of a switch", int64(causedBySwitches(w.asks, w.done)), "", 0),
		claim.Information("packets requested (NACK), all reasons", float64(busy.Requests), ""),
		claim.Exactly("gaps in the receiver's sequence numbers", int64(busy.Gaps), "", 0),
		claim.Exactly("repeats in the receiver's sequence numbers", int64(busy.Repeats), "", 0),
		claim.AtMost("request read → first packet of the quality sent, p99", ms(w.server.Percentile(0.99)), "ms",
			ms(interval+s.Slack)),
		claim.Information("request read → first packet of the quality sent, p50", ms(w.server.Percentile(0.5)), "ms"),
		claim.Information("request read → first packet of the quality sent, max", ms(w.server.Max()), "ms"),
		claim.Information("request → first complete frame of the quality at the receiver, p50",
			ms(w.roundTrip.Percentile(0.5)), "ms"),
		claim.Information("request → first complete frame of the quality at the receiver, p99",
			ms(w.roundTrip.Percentile(0.99)), "ms"),
		claim.Information("without switches: incomplete frames", float64(lost(quiet.FrameCounts)),
			fmt.Sprintf("of %d", quiet.Expected)),
		claim.Information("without switches: packets requested (NACK)", float64(quiet.Requests), ""),
	}
}
