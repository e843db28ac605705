package frames

import (
	"testing"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/forward/forwardtest"
	"github.com/volsfu/volsfu/internal/forward/ingress"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// rig is tracks with ingresses and writers, without goroutines, stepped by a test in virtual time.
type rig struct {
	t         testing.TB
	now       time.Time
	budget    *packetlog.Budget
	pieces    *packetlog.Pieces
	tracks    *track.Tracks
	ingresses *ingress.Set
	writers   *egress.Set
}

// newRig returns a rig with caches of that many bytes.
func newRig(t testing.TB, mode pacing.Mode, cacheBytes int64) *rig {
	t.Helper()
	r := &rig{t: t, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	plan, err := mode.Plan()
	if err != nil {
		t.Fatal(err)
	}
	clock := packetlog.NewClock(func() time.Time { return r.now })
	r.budget = packetlog.NewBudget(cacheBytes)
	r.pieces = packetlog.NewPieces(r.budget)
	r.tracks = track.NewTracks(clock, packetlog.Limits{Age: time.Second, Bytes: 32 << 20}, r.budget)
	in, out := ingress.DefaultConfig(), egress.DefaultConfig()
	in.Plan, out.Plan = plan, plan
	r.ingresses = ingress.NewSet(in, clock, r.pieces)
	r.writers = egress.NewSet(out, clock, r.tracks, r.pieces, []egress.Batch{noBatch{}})
	return r
}

// run lets the writer do its pending work.
func (r *rig) run() { r.writers.Step() }

// ingress adds a publisher's connection.
func (r *rig) ingress() *ingress.Ingress { return r.ingresses.NewStepped(fakePeer{}) }

// noBatch is the batch of peers that send at once.
type noBatch struct{}

func (noBatch) Send()       {}
func (noBatch) Empty() bool { return true }

// fakePeer is a peer that sends nothing, and reports by stream.
type fakePeer struct{}

func (fakePeer) Post(egress.Batch)             {}
func (fakePeer) Blocked(time.Time) bool        { return false }
func (fakePeer) WriteRTCP([]rtcp.Packet) error { return nil }
func (fakePeer) RTT() time.Duration            { return 0 }
func (fakePeer) TransportSequenceID() uint8    { return 0 }
func (fakePeer) SetECN(ecn.Codepoint)          {}
func (fakePeer) ReportsByStream() bool         { return true }
func (fakePeer) AcceptsReportsByStream() bool  { return false }
func (fakePeer) Fail()                         {}

// limited is a receiver whose Backlog the test sets.
type limited struct {
	*egress.Receiver
	backlog int64
}

// Backlog implements Receiver.
func (l *limited) Backlog() int64 { return l.backlog }

// publisher makes the packets of one track.
type publisher struct {
	*forwardtest.Publisher
	ingress *ingress.Ingress
	track   *track.Track
}

// publish adds a track of a codec and binds the track.
func (r *rig) publish(i *ingress.Ingress, ssrc uint32, mime string) *publisher {
	r.t.Helper()
	clockRate := uint32(90000)
	if mime == volumetric.MIMEOpus {
		clockRate = 48000
	}
	track := r.tracks.New(track.Config{Codec: volumetric.Codec{MIMEType: mime, ClockRate: clockRate}})
	i.Bind(ssrc, ssrc+1, track)
	return &publisher{Publisher: forwardtest.NewPublisher(r.t, i, ssrc), ingress: i, track: track}
}
