package egress

import (
	"testing"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/forwardtest"
	"github.com/volsfu/volsfu/internal/forward/ingress"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/panics"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// rigConfig is the configuration of a rig: of the writers, and of ingresses and caches.
type rigConfig struct {
	Config
	Writers         int
	Pacing          pacing.Mode
	CacheAge        time.Duration
	TrackCacheBytes int64
	CacheBytes      int64
	MaxFrameBytes   int
	Guard           *panics.Guard
}

func defaultConfig() rigConfig {
	return rigConfig{
		Config: DefaultConfig(), Pacing: pacing.Default, CacheAge: time.Second, TrackCacheBytes: 32 << 20,
		CacheBytes:    1 << 30,
		MaxFrameBytes: ingress.DefaultConfig().MaxFrameBytes,
	}
}

// engine is ingresses, tracks and writers.
type engine struct {
	*Set
	cfg       rigConfig
	budget    *packetlog.Budget
	ingresses *ingress.Set
}

// newEngine returns an engine whose writers do not run.
func newEngine(cfg rigConfig, now func() time.Time) *engine {
	plan, err := cfg.Pacing.Plan()
	if err != nil {
		panic(err)
	}
	cfg.Plan = plan
	clock, budget := packetlog.NewClock(now), packetlog.NewBudget(cfg.CacheBytes)
	pieces := packetlog.NewPieces(budget)
	tracks := track.NewTracks(clock, packetlog.Limits{Age: cfg.CacheAge, Bytes: cfg.TrackCacheBytes}, budget)
	in := ingress.Config{
		Guard: cfg.Guard, Plan: plan, MaxFrameBytes: cfg.MaxFrameBytes, KeyFrameInterval: cfg.KeyFrameInterval,
		ReportInterval: cfg.ReportInterval, NACK: cfg.NACK,
	}
	batches := make([]Batch, cfg.Writers)
	for n := range batches {
		batches[n] = noBatch{}
	}
	return &engine{
		Set: NewSet(cfg.Config, clock, tracks, pieces, batches), cfg: cfg, budget: budget,
		ingresses: ingress.NewSet(in, clock, pieces),
	}
}

func (e *engine) Close() {
	e.ingresses.Close()
	e.tracks.Close()
	e.Set.Close()
	e.ingresses.Wait()
}

func (e *engine) NewTrack(cfg track.Config) *track.Track { return e.tracks.New(cfg) }

func (e *engine) NewIngress(p ingress.Peer) *ingress.Ingress { return e.ingresses.New(p) }

// Stats returns the counters of both sides, and the histograms and gauges of the writers.
func (e *engine) Stats() counters.Stats {
	var sum counters.Counts
	sent := e.Set.Stats(&sum)
	s := counters.Stats{
		Paced:     e.paced,
		Residence: sent.Residence, PacerHold: sent.PacerHold, SwitchDelay: sent.SwitchDelay,
		FrameHold: sent.FrameHold, FrameDistribution: sent.FrameDistribution, FrameReception: sent.FrameReception,
		Slots: sent.Slots, ActiveSlots: sent.ActiveSlots, WaitingSlots: sent.WaitingSlots, Receivers: sent.Receivers,
		Ingresses: e.ingresses.AddTo(&sum),
	}
	s.Tracks, s.CacheBytes = e.tracks.Usage()
	s.CacheBytes += e.pieces.Used()
	s.Take(&sum)
	return s
}

// rig is an engine without goroutines, stepped by a test in virtual time.
type rig struct {
	t      testing.TB
	now    time.Time
	engine *engine
}

func newRig(t testing.TB, change func(*rigConfig)) *rig {
	t.Helper()
	r := &rig{t: t, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	cfg := defaultConfig()
	cfg.Writers, cfg.Pacing = 1, pacing.Off
	if change != nil {
		change(&cfg)
	}
	r.engine = newEngine(cfg, func() time.Time { return r.now })
	return r
}

// ingress adds a publisher's connection.
func (r *rig) ingress(peer ingress.Peer) *ingress.Ingress { return r.engine.ingresses.NewStepped(peer) }

// step steps an ingress. It returns the packets that it sends, without reports of arrivals, and the time of the next
// step.
func step(i *ingress.Ingress, now time.Time) (packets []rtcp.Packet, next time.Time) {
	compounds, next := i.Step(now)
	for _, compound := range compounds {
		for _, p := range compound {
			if _, ok := p.(*rtcp.RawPacket); !ok {
				packets = append(packets, p)
			}
		}
	}
	return packets, next
}

// run lets every writer do its pending work.
func (r *rig) run() { r.engine.Step() }

// limit sets the estimate of a receiver's pacer in bit/s, 0 for none.
func (r *rig) limit(s *subscriber, estimate int64) {
	w := s.receiver.writer
	s.receiver.path.sender.SetPath(pacing.Path{Estimate: estimate}, w.at)
	w.reschedule(s.receiver)
}

// pass advances the time, in steps in which writers run.
func (r *rig) pass(d time.Duration) {
	for end := r.now.Add(d); r.now.Before(end); {
		r.now = r.now.Add(min(10*time.Millisecond, end.Sub(r.now)))
		r.run()
	}
}

// ticks advances the time, in the steps in which writers wake.
func (r *rig) ticks(d time.Duration) {
	for end := r.now.Add(d); ; {
		r.run()
		idle := end.Sub(r.now)
		if idle <= 0 {
			return
		}
		idle = min(idle, max(r.engine.Idle(), 0))
		r.now = r.now.Add(idle)
	}
}

// idleOf returns the time during which a writer has no timed work.
func idleOf(w *writer) time.Duration {
	_, idle := w.Idle()
	return idle
}

// earliest returns the earlier of two times. The zero time means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// rtpHeader is the size in bytes of an RTP header without extensions.
const rtpHeader = 12

// publisher makes the packets of one track.
type publisher struct {
	*forwardtest.Publisher
	ingress *ingress.Ingress
	track   *track.Track
}

// moveTo makes another connection the one that brings the packets.
func (p *publisher) moveTo(i *ingress.Ingress) { p.ingress, p.To = i, i }

// publish adds a track of a codec and binds the track.
func (r *rig) publish(i *ingress.Ingress, ssrc uint32, mime string) *publisher {
	r.t.Helper()
	clockRate := uint32(90000)
	if mime == volumetric.MIMEOpus {
		clockRate = 48000
	}
	track := r.engine.NewTrack(track.Config{Codec: volumetric.Codec{MIMEType: mime, ClockRate: clockRate}})
	i.Bind(ssrc, ssrc+1, track)
	return &publisher{Publisher: forwardtest.NewPublisher(r.t, i, ssrc), ingress: i, track: track}
}

// subscriber is a receiver with one slot.
type subscriber struct {
	peer     *fakePeer
	outlet   *fakeOutlet
	receiver *Receiver
	slot     *Slot
}

// subscribe adds a receiver with one slot.
func (r *rig) subscribe(ssrc uint32, kind volumetric.Kind) *subscriber {
	peer := &fakePeer{}
	s := &subscriber{peer: peer, outlet: newFakeOutlet(peer, ssrc)}
	s.receiver = r.engine.NewReceiver(s.peer, time.Hour)
	s.slot = s.receiver.AddSlot(s.outlet, kind)
	return s
}

// switches returns the tracks of the Switched events since the last call.
func (s *subscriber) switches() []*track.Track {
	var tracks []*track.Track
	for _, e := range s.receiver.TakeEvents(nil) {
		if e.Switched {
			tracks = append(tracks, e.Track)
		}
	}
	return tracks
}

// dropped returns the number of dropped frames in the events since the last call, by reason.
func (s *subscriber) dropped() map[DropReason]int {
	frames := make(map[DropReason]int)
	for _, e := range s.receiver.TakeEvents(nil) {
		if e.DroppedFrames > 0 {
			frames[e.Dropped] += e.DroppedFrames
		}
	}
	return frames
}

// nack requests numbers as the receiver's peer does.
func (s *subscriber) nack(t testing.TB, now time.Time, numbers ...uint16) {
	t.Helper()
	s.rtcp(t, now, &rtcp.TransportLayerNack{SenderSSRC: 1, MediaSSRC: s.outlet.ssrc,
		Nacks: rtcp.NackPairsFromSequenceNumbers(numbers)})
}

func (s *subscriber) rtcp(t testing.TB, now time.Time, packet rtcp.Packet) {
	t.Helper()
	raw, err := packet.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	s.receiver.RTCP(raw, now)
}

// checkContinuous fails if sequence numbers have a gap or a repeat, or timestamps decrease. Packets may be in any
// order.
func checkContinuous(t testing.TB, packets []rtp.Packet) {
	t.Helper()
	if len(packets) == 0 {
		t.Fatal("nothing was sent")
	}
	first := packets[0].SequenceNumber
	for _, p := range packets {
		if int16(p.SequenceNumber-first) < 0 {
			first = p.SequenceNumber
		}
	}
	ordered := make([]*rtp.Packet, len(packets))
	for i, p := range packets {
		n := int(p.SequenceNumber - first)
		if n >= len(ordered) {
			t.Fatalf("packet %d has number %d, %d after the first of %d packets: there is a gap", i, p.SequenceNumber,
				n, len(packets))
		}
		if ordered[n] != nil {
			t.Fatalf("number %d was sent twice", p.SequenceNumber)
		}
		ordered[n] = &packets[i]
	}
	for i := 1; i < len(ordered); i++ {
		if int32(ordered[i].Timestamp-ordered[i-1].Timestamp) < 0 {
			t.Fatalf("timestamp goes from %d back to %d at number %d", ordered[i-1].Timestamp, ordered[i].Timestamp,
				ordered[i].SequenceNumber)
		}
	}
}

// descriptorOf parses the descriptor of a packet of payload v1.
func descriptorOf(t testing.TB, p rtp.Packet) payload.Descriptor {
	t.Helper()
	var d payload.Descriptor
	if _, err := d.Unmarshal(p.Payload); err != nil {
		t.Fatal(err)
	}
	return d
}

// frames counts the packets per frame of payload v1.
func frames(t testing.TB, packets []rtp.Packet) map[uint32]int {
	t.Helper()
	count := make(map[uint32]int)
	for _, p := range packets {
		count[descriptorOf(t, p).Frame]++
	}
	return count
}
