package adaptation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/volsfu/volsfu/internal/sfu/demand"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/testbed"
)

// Switching makes a receiver switch single tiles at random between their qualities under each policy. Switching
// measures the delay separately for qualities that the publisher already sends and for suppressed qualities, which the
// publisher has to start.
type Switching struct {
	Progress lab.Progress
	Load     testbed.Load
	// RTTs are the round trips between publisher and server at which the switches are made; 0 is a publisher on the
	// server's host.
	RTTs []time.Duration
	// Encode is the publisher's time from capturing a frame to sending it.
	Encode time.Duration
	// Switches is the least number of switches under each policy: to suppressed qualities if the policy suppresses any.
	Switches int
	// Pace is the mean time between two switches.
	Pace time.Duration
	// Hold is the time for which the policy neighbours keeps unused tracks.
	Hold time.Duration
	// WarmSlack and SuppressedSlack are the times by which 99 % of switches of each kind may exceed the necessary
	// delay: one frame interval and, for suppressed qualities, additionally the round trip to the publisher and Encode.
	WarmSlack, SuppressedSlack time.Duration
	Seed                       uint64
}

// NewSwitching returns the check of the claim. Frames are prepared and need no encoding time. The publisher is first on
// the server's host, at a round trip far below a millisecond, and then as far away as the other end of a country. With
// a hold time of a quarter of a second, the policy neighbours suppresses tracks while tiles are switched twice per
// second.
func NewSwitching(progress lab.Progress) *Switching {
	return &Switching{
		Progress: progress, Load: body, RTTs: []time.Duration{0, 40 * time.Millisecond}, Switches: 300,
		Pace: 40 * time.Millisecond, Hold: 250 * time.Millisecond,
		WarmSlack: 5 * time.Millisecond, SuppressedSlack: 10 * time.Millisecond, Seed: 1,
	}
}

// Name implements lab.Check.
func (s *Switching) Name() string {
	return fmt.Sprintf("%d random switches over %d tiles × %d qualities for each policy, %v to encode, "+
		"a publisher on the server's host and one behind a link",
		s.Switches, s.Load.Tiles, s.Load.Qualities, s.Encode)
}

// Run implements lab.Check.
func (s *Switching) Run(ctx context.Context) ([]claim.Line, error) {
	lines := []claim.Line{claim.Information("time to encode", lab.Milliseconds(s.Encode), "ms")}
	for _, rtt := range s.RTTs {
		for _, policy := range policies {
			s.Progress.Say("policy %s, a publisher %v away: %d switches", policy, rtt, s.Switches)
			w, err := s.measure(ctx, policy, rtt)
			if err != nil {
				return lines, fmt.Errorf("policy %s, a publisher %v away: %w", policy, rtt, err)
			}
			lines = append(lines, s.lines(w)...)
		}
	}
	return lines, nil
}

// settleTime is longer than the deadline after which a frame is given up.
const settleTime = 500 * time.Millisecond

// measure makes the switches under one policy, with a publisher rtt away.
func (s *Switching) measure(ctx context.Context, policy demand.Policy, rtt time.Duration) (*switcher, error) {
	config := testbed.ConferenceConfig()
	config.Rooms.Suppression = demand.Config{Policy: policy, Hold: s.Hold}
	host, err := newStage(config, rtt, s.Seed)
	if err != nil {
		return nil, err
	}
	defer host.close()
	publisher, err := host.publish(ctx, testbed.Part{Room: "room", Identity: publisherName,
		Loads: []testbed.Load{s.Load}, Seed: s.Seed})
	if err != nil {
		return nil, err
	}
	receiver, err := host.receive(ctx, testbed.Part{Room: "room", Identity: "bob", Receive: true})
	if err != nil {
		return nil, err
	}
	if err := awaitHighest(ctx, receiver, s.Load); err != nil {
		return nil, err
	}
	w := &switcher{
		check: s, policy: policy, rtt: rtt, publisher: publisher.Session.Publisher(s.Load.Name), receiver: receiver,
		random: rand.New(rand.NewPCG(s.Seed, 0)), tiles: tilesOf(s.Load), broken: -broken(receiver),
	}
	w.quality = make([]volumetric.Quality, s.Load.Tiles)
	for i := range w.quality {
		w.quality[i] = volumetric.Quality(s.Load.Qualities - 1)
	}
	if err := w.run(ctx); err != nil {
		return nil, err
	}
	if err := lab.Pause(ctx, settleTime); err != nil {
		return nil, err
	}
	w.broken += broken(receiver)
	return w, receiver.Failure()
}

// delays holds the delays of the switches of one kind.
type delays struct {
	asked int
	// server is the time from reading the request to the first packet sent; whole is the time from the request to the
	// first complete frame.
	server, whole lab.Distribution
}

// switcher makes the choices of the receiver. A tile is switched again only after its last switch was seen, so that
// each switch has its own delay.
type switcher struct {
	check     *Switching
	policy    demand.Policy
	rtt       time.Duration
	publisher *client.Publisher
	receiver  *testbed.Peer
	random    *rand.Rand
	tiles     []volumetric.TileRef
	// quality is the quality last requested, by tile.
	quality []volumetric.Quality
	pending []pendingSwitch

	warm, suppressed delays
	// broken counts frames that did not arrive completely in that time.
	broken int64
}

// pendingSwitch is a requested switch that has not been seen.
type pendingSwitch struct {
	tile    volumetric.TileRef
	quality volumetric.Quality
	asked   time.Time
	// after is the number of messages received before the request.
	after int
	kind  *delays
}

// confirmTimeout bounds the wait for a switch to be confirmed.
const confirmTimeout = 5 * time.Second

// counted returns the kind of switches whose number must reach Switches.
func (w *switcher) counted() *delays {
	if w.policy == demand.Warm {
		return &w.warm
	}
	return &w.suppressed
}

// run makes the switches.
func (w *switcher) run(ctx context.Context) error {
	for w.counted().asked < w.check.Switches {
		// Times between switches are exponential, so that switches fall anywhere in the frame interval. Long times are
		// cut.
		pause := time.Duration(w.random.ExpFloat64() * float64(w.check.Pace))
		if err := lab.Pause(ctx, min(pause, 10*w.check.Pace)); err != nil {
			return err
		}
		w.confirm()
		if err := w.ask(ctx); err != nil {
			return err
		}
	}
	for len(w.pending) > 0 {
		if err := lab.Pause(ctx, time.Millisecond); err != nil {
			return err
		}
		w.confirm()
	}
	return nil
}

// ask requests another quality of a random tile, unless that tile is being switched.
func (w *switcher) ask(ctx context.Context) error {
	tile := w.tiles[w.random.IntN(len(w.tiles))]
	for _, p := range w.pending {
		if p.tile == tile {
			return nil
		}
	}
	next := volumetric.Quality(w.random.IntN(w.check.Load.Qualities - 1))
	if next >= w.quality[tile.Tile] {
		next++
	}
	w.quality[tile.Tile] = next
	kind := &w.suppressed
	if w.publisher.Wanted(tile.Tile, next) {
		kind = &w.warm
	}
	kind.asked++
	w.pending = append(w.pending, pendingSwitch{tile: tile, quality: next, asked: time.Now(),
		after: len(w.receiver.Sendings()), kind: kind})
	choice := signal.Choice{PublicationRef: tile.PublicationRef, Tile: &tile.Tile, Quality: signal.Only(next)}
	return w.receiver.Session.SetQuality(ctx, choice)
}

// confirm removes the switches that have happened or expired from the list.
func (w *switcher) confirm() {
	if len(w.pending) == 0 {
		return
	}
	sendings := w.receiver.Sendings()
	kept := w.pending[:0]
	for _, p := range w.pending {
		if !w.happened(p, sendings[p.after:]) && time.Since(p.asked) < confirmTimeout {
			kept = append(kept, p)
		}
	}
	w.pending = kept
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
		p.kind.server.Add(s.Delay)
		p.kind.whole.Add(at.Sub(p.asked))
		return true
	}
	return false
}

// lines returns the figures of one policy and publisher. The check learns of the demand on a publisher behind a link
// half a round trip late. If tracks are suppressed, a switch to a quality that seems to be sent may be a switch to a
// quality that the server has just suppressed; such switches are not judged.
func (s *Switching) lines(w *switcher) []claim.Line {
	interval := time.Duration(float64(time.Second) / s.Load.Rate)
	name := string(w.policy)
	if w.rtt > 0 {
		name = fmt.Sprintf("%s, a publisher %v away", w.policy, w.rtt)
	}
	var lines []claim.Line
	if w.rtt == 0 || w.policy == demand.Warm {
		lines = w.warm.lines(name+", to a sent quality", interval+s.WarmSlack)
	}
	lines = append(lines, w.suppressed.lines(name+", to a suppressed quality",
		interval+w.rtt+s.Encode+s.SuppressedSlack)...)
	return append(lines, claim.Exactly(name+": incomplete frames", w.broken, "", 0))
}

// lines returns the figures of one kind of switches, or none without such switches.
func (d *delays) lines(kind string, bound time.Duration) []claim.Line {
	if d.asked == 0 {
		return nil
	}
	ms := lab.Milliseconds
	return []claim.Line{
		claim.Exactly(kind+": switches seen", int64(d.server.Count()), "", int64(d.asked)),
		claim.AtMost(kind+": request read → first packet sent, p99", ms(d.server.Percentile(0.99)), "ms", ms(bound)),
		claim.Information(kind+": request read → first packet sent, p50", ms(d.server.Percentile(0.5)), "ms"),
		claim.Information(kind+": request read → first packet sent, max", ms(d.server.Max()), "ms"),
		claim.Information(kind+": request → first complete frame at the receiver, p50",
			ms(d.whole.Percentile(0.5)), "ms"),
		claim.Information(kind+": request → first complete frame at the receiver, p99",
			ms(d.whole.Percentile(0.99)), "ms"),
	}
}
