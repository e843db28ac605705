package consumer

import (
	"bytes"
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/lab/baseline/chunks"
	"github.com/volsfu/volsfu/lab/direct/stages"
	"github.com/volsfu/volsfu/lab/direct/stream"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ledger records the reports of received frames.
type ledger struct {
	mu   sync.Mutex
	list []stages.Received
	told chan struct{}
}

func newLedger() *ledger { return &ledger{told: make(chan struct{}, 100)} }

func (l *ledger) Received(r *stages.Received) {
	l.mu.Lock()
	l.list = append(l.list, *r)
	l.mu.Unlock()
	l.told <- struct{}{}
}

// here is a clock without offset to the producer's clock.
type here struct{}

func (here) Producer(t time.Time) time.Time { return t }
func (here) RTT() time.Duration             { return time.Millisecond }

// stage counts the drawn points.
type stage struct{ points int }

func (s *stage) Draw(cloud *pointcloud.Cloud) { s.points += cloud.Len() }

var unit = volumetric.BoundingBox{Max: [3]float32{1, 1, 1}}

// encoded returns a frame with the given number of points.
func encoded(t *testing.T, points int) []byte {
	t.Helper()
	var cloud pointcloud.Cloud
	for i := range points {
		cloud.Append([3]float32{float32(i) / float32(points), 0, 0}, [3]uint8{1, 2, 3})
	}
	data, err := codec.Raw.NewEncoder().Encode(nil, &cloud, codec.Params{PositionBits: 10, Box: unit})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// run runs a consumer until stop is called.
func run(t *testing.T, c *Consumer) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Run(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// TestDecoding: frames are decoded, drawn and reported. Frames that cannot be decoded are reported as well.
func TestDecoding(t *testing.T) {
	l, s := newLedger(), &stage{}
	c := New(1, l, here{}, s, slog.New(slog.DiscardHandler))
	stop := run(t, c)
	released := 0
	raw := codec.Raw.FourCC()
	for i, a := range []*Arrival{
		{Number: 1, Codec: raw, Data: encoded(t, 100)},
		{Number: 2, Codec: raw, Data: []byte{1, 2, 3}},
		{Number: 3, Codec: volumetric.FourCC{'n', 'o', 'n', 'e'}, Data: []byte{1}},
		{Number: 4, Codec: raw},
	} {
		a.release = func() { released++ }
		a.First, a.Last, a.Whole, a.Hash = time.Now(), time.Now(), time.Now(), uint64(i)
		c.take(a)
		<-l.told
	}
	stop()
	if released != 4 || c.Decoded() != 2 || s.points != 100 {
		t.Errorf("%d frames released, %d decoded, %d points drawn", released, c.Decoded(), s.points)
	}
	for i, r := range l.list {
		decodable := i == 0 || i == 3
		if r.Frame != uint32(i+1) || r.Undecodable == decodable || (r.Decoded != 0) != decodable ||
			(r.Shown != 0) != decodable || r.ReceivedHash != uint64(i) {
			t.Errorf("got %+v", r)
		}
	}
	if l.list[0].DecodedPoints != 100 || l.list[0].Shown < l.list[0].Decoded {
		t.Errorf("got %+v", l.list[0])
	}
}

// TestSuperseded: without decoding, one frame may wait.
func TestSuperseded(t *testing.T) {
	l := newLedger()
	c := New(1, l, here{}, nil, slog.New(slog.DiscardHandler))
	for number := range uint32(3) {
		c.take(&Arrival{Number: number, Data: []byte{1}})
	}
	if len(l.list) != 2 || !l.list[0].Superseded || l.list[1].Frame != 1 || l.list[1].Decoded != 0 {
		t.Errorf("got %+v", l.list)
	}
}

var (
	producer = netip.MustParseAddrPort("127.0.0.1:5000")
	stranger = netip.MustParseAddrPort("127.0.0.1:5001")
)

// TestAdaptiveInlet: packets of the producer make frames, packets from other addresses do not, and reports are sent.
func TestAdaptiveInlet(t *testing.T) {
	l := newLedger()
	c := New(1, l, here{}, nil, slog.New(slog.DiscardHandler))
	a := NewAdaptive(c, stream.ReceiverConfig{Sender: 9}, producer)
	wire := stream.Wire{SSRC: 1, RetransmissionSSRC: 2, PayloadType: 96, RetransmissionPayloadType: 97, Extension: 1}
	data := encoded(t, 500)
	now := time.Now()
	sender, err := stream.NewSender(stream.SenderConfig{Wire: wire, Congestion: congestion.DefaultConfig(),
		Pacing: pacing.Off}, now)
	if err != nil {
		t.Fatal(err)
	}
	var datagrams [][]byte
	for number := range uint32(2) {
		prefix := payload.Prefix{FourCC: codec.Raw.FourCC(), Capture: now}.AppendTo(nil)
		if err := sender.Send(stream.Frame{Number: number, Capture: now, Data: append(prefix, data...)},
			now); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range sender.Step(now, nil) {
		datagram := make([]byte, p.Header.MarshalSize(), 1500)
		if _, err := p.Header.MarshalTo(datagram); err != nil {
			t.Fatal(err)
		}
		datagrams = append(datagrams, append(datagram, p.Payload...))
	}
	a.Datagram(datagrams[0], producer, ecn.NotECT, now) // before the stream is known
	a.Expect(wire)
	half := len(datagrams) / 2
	for _, d := range datagrams[:half] {
		a.Datagram(bytes.Clone(d), stranger, ecn.NotECT, now)
		a.Datagram(bytes.Clone(d), producer, ecn.NotECT, now)
	}
	stop := run(t, c)
	<-l.told
	for _, d := range datagrams[half:] {
		a.RTP(1, bytes.Clone(d), &transport.PacketInfo{At: now})
	}
	<-l.told
	stop()
	a.RTCP(nil, now)
	a.Flush()
	if stats := a.Stats(); stats.Packets != uint64(len(datagrams)) || c.Decoded() != 2 ||
		l.list[1].ReceivedHash != stages.Hash(data) {
		t.Errorf("%d packets of %d, %d frames decoded", stats.Packets, len(datagrams), c.Decoded())
	}
	w := &way{sent: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.Watch(ctx, w, here{})
	}()
	<-w.sent
	cancel()
	<-ended
}

// way reports each sent packet.
type way struct{ sent chan struct{} }

func (w *way) SendOne([]byte) {
	select {
	case w.sent <- struct{}{}:
	default:
	}
}

// TestPaper002Inlet: a frame is complete when the next frame begins. The frame has its own memory, and its holes are
// counted.
func TestPaper002Inlet(t *testing.T) {
	l := newLedger()
	c := New(10, l, here{}, nil, slog.New(slog.DiscardHandler))
	p := NewPaper002(c, codec.Raw.FourCC(), 1<<20, producer)
	data := encoded(t, 500)
	now := time.Now()
	for number := range uint32(4) {
		for i := range chunks.Count(len(data)) {
			if number == 2 && i == 1 {
				continue // lost
			}
			p.Datagram(chunks.Append(nil, number, data, i), stranger, ecn.NotECT, now)
			p.Datagram(chunks.Append(nil, number, data, i), producer, ecn.NotECT, now)
		}
	}
	p.Datagram([]byte{1}, producer, ecn.NotECT, now)
	stop := run(t, c)
	for range 3 {
		<-l.told
	}
	stop()
	for i, r := range l.list {
		if (r.ReceivedHash == stages.Hash(data)) != (i != 2) || r.Frame != uint32(i) {
			t.Errorf("got %+v", r)
		}
	}
	if stats, holes := p.Stats(); holes != 1 || stats.Malformed != 1 {
		t.Errorf("got %+v, %d holes", stats, holes)
	}
}
