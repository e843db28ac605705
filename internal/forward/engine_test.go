package forward

import (
	"sync"
	"testing"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/wait"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// quietPeer is a peer that accepts everything and reports nothing.
type quietPeer struct{}

var _ Peer = quietPeer{}

func (quietPeer) Post(egress.Batch)             {}
func (quietPeer) Blocked(time.Time) bool        { return false }
func (quietPeer) WriteRTCP([]rtcp.Packet) error { return nil }
func (quietPeer) RTT() time.Duration            { return 0 }
func (quietPeer) TransportSequenceID() uint8    { return 0 }
func (quietPeer) SetECN(ecn.Codepoint)          {}
func (quietPeer) ReportsByStream() bool         { return false }
func (quietPeer) AcceptsReportsByStream() bool  { return false }
func (quietPeer) Fail()                         {}

// countingOutlet counts packets.
type countingOutlet struct {
	mu      sync.Mutex
	packets int
}

func (o *countingOutlet) Queue(*rtp.Header, []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.packets++
	return nil
}

func (o *countingOutlet) SSRC() uint32               { return 1000 }
func (o *countingOutlet) RetransmissionSSRC() uint32 { return 0 }

func (o *countingOutlet) PayloadType(string) (media, retransmission uint8, ok bool) {
	return 96, 0, true
}

// count returns the number of packets so far.
func (o *countingOutlet) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.packets
}

type noBatch struct{}

func (noBatch) Send()       {}
func (noBatch) Empty() bool { return true }

// packetOf returns the packet of a frame of payload v1 with one packet.
func packetOf(t *testing.T, frame uint32) []byte {
	t.Helper()
	d := payload.Descriptor{Frame: frame, Source: 1, Length: 100}
	body := make([]byte, payload.DescriptorSize+100)
	if _, err := d.MarshalTo(body); err != nil {
		t.Fatal(err)
	}
	packet := rtp.Packet{
		Header:  rtp.Header{Version: 2, Marker: true, SequenceNumber: uint16(frame), Timestamp: 3000 * frame, SSRC: 10},
		Payload: body,
	}
	raw, err := packet.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestEngine forwards frames from a publisher to a receiver, counts them on both sides, and ends.
func TestEngine(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Writers, cfg.MaxLag = 2, time.Hour
	e := NewEngine(cfg, func() egress.Batch { return noBatch{} })
	in := e.NewIngress(quietPeer{})
	made := e.NewTrack(track.Config{Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000}})
	in.Bind(10, 0, made)
	receiver, outlet := e.NewReceiver(quietPeer{}, 0), &countingOutlet{}
	slot := receiver.AddSlot(outlet, volumetric.KindVideo)
	slot.Select(made, 1, time.Now())
	wait.Until(t, "the writer follows", func() bool { return made.Followers() == 1 })
	const frames = 20
	for frame := range uint32(frames) {
		in.RTP(10, packetOf(t, frame+1), &transport.PacketInfo{At: time.Now()})
		in.Flush()
	}
	wait.Until(t, "all frames leave", func() bool { return outlet.count() == frames })
	wait.Until(t, "the counts", func() bool {
		s := e.Stats()
		return s.Received.Media.Packets == frames && s.Sent.Media.Packets == frames && s.FramesForwarded == frames &&
			s.Residence.Count() == frames && s.Tracks == 1 && s.Slots == 1 && s.Receivers == 1 && s.Ingresses == 1 &&
			s.Paced
	})
	if s := e.Stats(); s.CacheBytes == 0 || s.CacheBytes != made.Stats().CacheBytes {
		t.Errorf("%d bytes are cached, the track has %d", s.CacheBytes, made.Stats().CacheBytes)
	}
	if paths := e.Paths(nil); len(paths) != 1 || paths[0].Known {
		t.Errorf("the paths are %+v, expected one of which nothing is known", paths)
	}
	e.Close()
	e.Close()
	if s := e.Stats(); s.Tracks != 0 || s.Ingresses != 0 || s.CacheBytes != 0 || s.Received.Media.Packets != frames {
		t.Errorf("after the end the counts are %+v", s)
	}
	in.RTP(10, packetOf(t, frames+1), &transport.PacketInfo{At: time.Now()})
	in.Flush()
	slot.Select(made, 1, time.Now())
	receiver.Close()
	if late := e.NewIngress(quietPeer{}); e.Stats().Ingresses != 0 {
		t.Errorf("an engine that is closed has the ingress %v", late)
	}
}

// TestFramesInPiecesCountAsCache lets a publisher begin a frame in chunks.
func TestFramesInPiecesCountAsCache(t *testing.T) {
	e := NewEngine(DefaultConfig(), func() egress.Batch { return noBatch{} })
	defer e.Close()
	made := e.NewTrack(track.Config{Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000}})
	j := e.NewIngress(quietPeer{}).NewInjector(made, 1<<20)
	chunk := payload.Chunk{Frame: 1, Length: 2 * payload.ChunkSize, Data: make([]byte, payload.ChunkSize)}
	if err := j.Chunk(&chunk, time.Now()); err != nil {
		t.Fatal(err)
	}
	if s := e.Stats(); s.CacheBytes < payload.ChunkSize {
		t.Errorf("%d bytes are cached, expected the chunk of %d at least", s.CacheBytes, payload.ChunkSize)
	}
}
