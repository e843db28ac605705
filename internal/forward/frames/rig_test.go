package frames

import (
	"testing"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/forward/ingress"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/payload"
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
func (fakePeer) ReportsByStream() bool         { return true }
func (fakePeer) Fail()                         {}

// windowed is a receiver with a window that the test sets.
type windowed struct {
	*egress.Receiver
	window int64
}

// Window implements Receiver.
func (w *windowed) Window() int64 { return w.window }

// publisher makes the packets of one track.
type publisher struct {
	t         testing.TB
	ingress   *ingress.Ingress
	track     *track.Track
	ssrc, rtx uint32
	sequence  uint16
	frame     uint32
	timestamp uint32
	fragments payload.Fragmenter
	// parity is the number of parity fragments per frame.
	parity uint16
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
	return &publisher{t: r.t, ingress: i, track: track, ssrc: ssrc, rtx: ssrc + 1, sequence: uint16(ssrc) * 1000,
		timestamp: 5000}
}

// next begins a frame. All tracks of a publication must begin it together.
func (p *publisher) next() {
	p.frame++
	p.timestamp += 3000
}

// packets returns the packets of the current frame of payload v1, of that many bytes.
func (p *publisher) packets(size int) [][]byte {
	p.t.Helper()
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i) ^ byte(p.frame) ^ byte(p.ssrc)
	}
	if err := p.fragments.Begin(payload.Descriptor{Frame: p.frame, Parity: p.parity}, data); err != nil {
		p.t.Fatal(err)
	}
	var packets [][]byte
	for i := range p.fragments.Packets() {
		body, err := p.fragments.AppendPacket(nil, i)
		if err != nil {
			p.t.Fatal(err)
		}
		packets = append(packets, p.packet(body, i == p.fragments.Packets()-1))
	}
	return packets
}

// packet returns one packet at the current timestamp.
func (p *publisher) packet(body []byte, marker bool) []byte {
	p.t.Helper()
	packet := rtp.Packet{
		Header: rtp.Header{Version: 2, Marker: marker, PayloadType: 96, SequenceNumber: p.sequence,
			Timestamp: p.timestamp, SSRC: p.ssrc},
		Payload: body,
	}
	p.sequence++
	raw, err := packet.Marshal()
	if err != nil {
		p.t.Fatal(err)
	}
	return raw
}

// infoAt returns the info of a packet without stamps that arrived at the time.
func infoAt(now time.Time) *transport.PacketInfo { return &transport.PacketInfo{At: now} }

// send passes packets to the ingress, as one batch.
func (p *publisher) send(now time.Time, packets ...[]byte) { p.sendInfo(infoAt(now), packets...) }

// sendInfo passes packets with one info to the ingress, as one batch.
func (p *publisher) sendInfo(info *transport.PacketInfo, packets ...[]byte) {
	for _, packet := range packets {
		p.ingress.RTP(p.ssrc, packet, info)
	}
	p.ingress.Flush()
}
