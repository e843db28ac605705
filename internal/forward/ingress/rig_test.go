package ingress

import (
	"sync"
	"testing"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/forward/turn"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/payload"
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
	t         testing.TB
	ingress   *Ingress
	track     *track.Track
	ssrc, rtx uint32
	sequence  uint16
	frame     uint32
	timestamp uint32
	fragments payload.Fragmenter
	// extension is the identifier of an empty transport-wide sequence number in packets, 0 for none.
	extension uint8
	// parity is the number of parity fragments per frame.
	parity uint16
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
	if p.extension != 0 {
		if err := feedback.SetTransportSequence(&packet.Header, p.extension, 0); err != nil {
			p.t.Fatal(err)
		}
	}
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

// repair passes retransmissions of packets to the ingress, as one batch.
func (p *publisher) repair(now time.Time, packets ...[]byte) {
	for _, packet := range packets {
		p.ingress.RTP(p.rtx, p.retransmission(packet), infoAt(now))
	}
	p.ingress.Flush()
}

// retransmission returns the RTX packet of a packet.
func (p *publisher) retransmission(packet []byte) []byte {
	p.t.Helper()
	var original rtp.Packet
	if err := original.Unmarshal(packet); err != nil {
		p.t.Fatal(err)
	}
	n := original.SequenceNumber
	original.SSRC, original.PayloadType, original.SequenceNumber = p.rtx, 97, n*7
	original.Payload = append([]byte{byte(n >> 8), byte(n)}, original.Payload...)
	raw, err := original.Marshal()
	if err != nil {
		p.t.Fatal(err)
	}
	return raw
}
