package ingress

import (
	"sync"
	"testing"
	"time"

	"github.com/pion/rtcp"
	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/forwardtest"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/forward/turn"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// rigConfig is the configuration of a rig: of the ingresses, and of the tracks' caches.
type rigConfig struct {
	Config
	CacheBytes int64
}

// rig is ingresses without goroutines, stepped by a test in virtual time.
type rig struct {
	t      testing.TB
	now    time.Time
	cfg    rigConfig
	clock  *packetlog.Clock
	budget *packetlog.Budget
	pieces *packetlog.Pieces
	tracks *track.Tracks
	set    *Set
}

func newRig(t testing.TB, change func(*rigConfig)) *rig {
	t.Helper()
	r := &rig{t: t, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	return r.start(func() time.Time { return r.now }, change)
}

// live returns a rig in real time.
func live(t testing.TB, change func(*rigConfig)) *rig {
	t.Helper()
	r := (&rig{t: t}).start(time.Now, change)
	t.Cleanup(func() {
		r.set.Close()
		r.set.Wait()
	})
	return r
}

func (r *rig) start(now func() time.Time, change func(*rigConfig)) *rig {
	r.cfg = rigConfig{Config: DefaultConfig(), CacheBytes: 1 << 30}
	plan, err := pacing.Off.Plan()
	if err != nil {
		r.t.Fatal(err)
	}
	r.cfg.Plan = plan
	if change != nil {
		change(&r.cfg)
	}
	r.clock, r.budget = packetlog.NewClock(now), packetlog.NewBudget(r.cfg.CacheBytes)
	r.pieces = packetlog.NewPieces(r.budget)
	r.tracks = track.NewTracks(r.clock, packetlog.Limits{Age: time.Second, Bytes: 32 << 20}, r.budget)
	r.set = NewSet(r.cfg.Config, r.clock, r.pieces)
	return r
}

// ingress adds a publisher's connection that the test steps.
func (r *rig) ingress(p Peer) *Ingress { return r.set.NewStepped(p) }

// stats returns the counters so far.
func (r *rig) stats() (s counters.Stats) {
	var sum counters.Counts
	s.Ingresses = r.set.AddTo(&sum)
	s.Take(&sum)
	return s
}

// reader reads new packets of a track's log.
type reader struct {
	track    *track.Track
	position int64
	// signals counts the signals to the reader, gapped the calls of Gapped.
	signals, gapped int
}

func (r *reader) Signal() *turn.Turn {
	r.signals++
	return nil
}

func (r *reader) Gapped() { r.gapped++ }
func (r *reader) Ended()  {}

// follow adds a reader of a track.
func follow(t *track.Track) *reader {
	r := &reader{track: t}
	r.position, _ = t.Join(r)
	return r
}

// read returns the payloads of the packets since the last call, and records the frame of the last packet.
func (r *reader) read(t testing.TB) (payloads [][]byte) {
	t.Helper()
	for ; r.position < r.track.Log().Head(); r.position++ {
		p := r.track.Log().At(r.position)
		if p == nil {
			t.Fatalf("the packet at %d is not in the log", r.position)
		}
		payloads = append(payloads, append([]byte(nil), p.Payload...))
		p.Release()
	}
	return payloads
}

// fakePeer records RTCP packets.
type fakePeer struct {
	mu        sync.Mutex
	rtt       time.Duration
	extension uint8
	byStream  bool
	packets   []rtcp.Packet
	failed    bool
	// broken makes WriteRTCP panic.
	broken bool
}

func (p *fakePeer) WriteRTCP(packets []rtcp.Packet) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken {
		panic("test")
	}
	p.packets = append(p.packets, packets...)
	return nil
}

func (p *fakePeer) RTT() time.Duration { return p.rtt }

func (p *fakePeer) TransportSequenceID() uint8 { return p.extension }

func (p *fakePeer) AcceptsReportsByStream() bool { return p.byStream }

func (p *fakePeer) Fail() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = true
}

// breaks makes the peer panic in WriteRTCP from now on.
func (p *fakePeer) breaks() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = true
}

// hasFailed reports whether Fail was called.
func (p *fakePeer) hasFailed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// publisher makes the packets of one track.
type publisher struct {
	*forwardtest.Publisher
	ingress *Ingress
	track   *track.Track
}

// publish adds a track of a codec and binds the track.
func (r *rig) publish(i *Ingress, ssrc uint32, mime string) *publisher {
	r.t.Helper()
	clockRate := uint32(90000)
	if mime == volumetric.MIMEOpus {
		clockRate = 48000
	}
	track := r.tracks.New(track.Config{Codec: volumetric.Codec{MIMEType: mime, ClockRate: clockRate}})
	i.Bind(ssrc, ssrc+1, track)
	return &publisher{Publisher: forwardtest.NewPublisher(r.t, i, ssrc), ingress: i, track: track}
}
