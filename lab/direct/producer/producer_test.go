package producer

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/lab/baseline/chunks"
	"github.com/volsfu/volsfu/lab/direct/individual"
	"github.com/volsfu/volsfu/lab/direct/stages"
	"github.com/volsfu/volsfu/lab/direct/stream"
	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var unit = volumetric.BoundingBox{Max: [3]float32{1, 1, 1}}

// source returns the given number of frames of 1,000 points without waiting, and then an error.
type source struct {
	frames int
	read   int
}

var errOver = errors.New("the source has ended")

// skipped is the number of frames that fall due between two frames that are read.
const skipped = 2

func (s *source) Info() capture.Info { return capture.Info{FrameRate: 30, Box: unit, Points: 1000} }
func (s *source) Close() error       { return nil }

func (s *source) Read(ctx context.Context, f *capture.Frame) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.read == s.frames {
		return errOver
	}
	s.read++
	f.Capture, f.Skipped = time.Now(), skipped
	f.Cloud.Reset()
	for i := range 1000 {
		f.Cloud.Append([3]float32{float32(i) / 1000, 0.5, 0.5}, [3]uint8{uint8(i), 0, 0})
	}
	return nil
}

// outlet records the sent frames.
type outlet struct {
	mu       sync.Mutex
	frames   []stages.Sent
	estimate volumetric.Bitrate
	wanted   volumetric.Bitrate
	err      error
}

func (o *outlet) Send(f *Frame) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(f.Data) != payload.PrefixSize+f.Sent.Bytes || stages.Hash(f.Data[payload.PrefixSize:]) != f.Sent.Hash {
		return errors.New("the frame differs from its record")
	}
	o.frames = append(o.frames, f.Sent)
	return o.err
}

func (o *outlet) Estimate() volumetric.Bitrate { return o.estimate }
func (o *outlet) Want(rate volumetric.Bitrate) { o.wanted = rate }

// config returns the configuration of a producer of the given number of frames.
func config(o *outlet, frames int) Config {
	return Config{
		Source: &source{frames: frames}, Codec: codec.Raw, Params: codec.Params{PositionBits: 11, Box: unit},
		Gaze:   NewGaze(pointcloud.FieldOfView{}, nil, unit),
		Outlet: o, Log: slog.New(slog.DiscardHandler),
	}
}

// TestSequential: every frame is encoded, one after the other.
func TestSequential(t *testing.T) {
	o := &outlet{}
	c := config(o, 20)
	c.Sequential = true
	p := New(c)
	if err := p.Run(t.Context()); !errors.Is(err, errOver) {
		t.Errorf("got %v", err)
	}
	// Frames due before the first frame was fetched do not count as missed.
	if counts := p.Counts(); counts != (Counts{Captured: 20, Missed: 19 * skipped}) || len(o.frames) != 20 {
		t.Errorf("%+v, %d sent of 20", counts, len(o.frames))
	}
	for i, f := range o.frames {
		if f.Frame != uint32(i+1) || f.Points != 1000 || f.SourcePoints != 1000 || f.Target != 0 ||
			f.Encoded < f.Capture {
			t.Errorf("got %+v", f)
		}
	}
}

// TestLimit: the producer ends after the limit of frames, without an error.
func TestLimit(t *testing.T) {
	for _, sequential := range []bool{false, true} {
		o := &outlet{}
		c := config(o, 1_000_000)
		c.Sequential, c.Limit = sequential, 3
		if err := New(c).Run(t.Context()); err != nil || len(o.frames) != 3 {
			t.Errorf("sequential %v: %d frames, %v; expected 3", sequential, len(o.frames), err)
		}
	}
}

// TestOverlap: capturing does not wait for encoding, and the newest frame is encoded.
func TestOverlap(t *testing.T) {
	o := &outlet{estimate: 2_000_000}
	c := config(o, 200)
	var err error
	c.Control, err = individual.New(individual.Config{
		FrameRate: 30, Min: 1_000_000, Share: 1, FragmentBytes: payload.FragmentSize, PacketBytes: stream.PacketBytes,
		FrameBytes: FrameBytes, BusyShare: 1,
	}, c.Codec, c.Params)
	if err != nil {
		t.Fatal(err)
	}
	p := New(c)
	if err := p.Run(t.Context()); !errors.Is(err, errOver) {
		t.Errorf("got %v", err)
	}
	counts := p.Counts()
	captured, superseded := counts.Captured, counts.Superseded
	// One frame was encoded to learn the sizes. One frame may have waited when the source ended.
	if sent := int64(len(o.frames)); captured != 199 || sent == 0 || sent+superseded < captured-1 ||
		sent+superseded > captured {
		t.Errorf("%d captured, %d superseded, %d sent", captured, superseded, sent)
	}
	for _, f := range o.frames {
		// 2 Mbit/s are 8,333 bytes per frame, with 9 bytes per point.
		if f.Bound != "rate" || f.Target != 8333 || math.Abs(float64(f.Points)-840) > 30 {
			t.Errorf("%d points, bound by %s, for %d bytes", f.Points, f.Bound, f.Target)
		}
	}
	if o.wanted < 2_100_000 {
		t.Errorf("all points need %v, expected more than the estimate", o.wanted)
	}
}

// swelling is a codec whose frames have twice the size from one frame on.
type swelling struct {
	codec.Codec
	frames, from int
}

func (s *swelling) NewEncoder() codec.Encoder { return &swellingEncoder{s.Codec.NewEncoder(), s} }

type swellingEncoder struct {
	codec.Encoder
	codec *swelling
}

func (e *swellingEncoder) Encode(dst []byte, cloud *pointcloud.Cloud, params codec.Params) ([]byte, error) {
	begin := len(dst)
	dst, err := e.Encoder.Encode(dst, cloud, params)
	if e.codec.frames++; e.codec.frames > e.codec.from {
		dst = append(dst, make([]byte, len(dst)-begin)...)
	}
	return dst, err
}

// TestSecondAttempt: a frame that misses its target is encoded once more.
func TestSecondAttempt(t *testing.T) {
	o := &outlet{estimate: 2_000_000}
	c := config(o, 8)
	c.Codec, c.Sequential = &swelling{Codec: codec.Raw, from: 6}, true
	var err error
	if c.Control, err = individual.New(individual.Config{
		FrameRate: 30, Share: 1, FragmentBytes: payload.FragmentSize, PacketBytes: stream.PacketBytes,
		FrameBytes: FrameBytes, BusyShare: 1,
	}, c.Codec, c.Params); err != nil {
		t.Fatal(err)
	}
	if err := New(c).Run(t.Context()); !errors.Is(err, errOver) {
		t.Errorf("got %v", err)
	}
	// Two frames were encoded to learn the sizes. The fifth frame after them has twice its target.
	if got := c.Codec.(*swelling).frames; len(o.frames) != 7 || got < 2+7+1 {
		t.Errorf("%d frames were encoded, and %d sent", got, len(o.frames))
	}
	if first, swollen := o.frames[3].Points, o.frames[4].Points; swollen >= first {
		t.Errorf("%d points after %d, although points need twice as many bytes", swollen, first)
	}
}

func TestEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := New(config(&outlet{}, 5)).Run(ctx); err != nil {
		t.Errorf("expected no error at the end of the context, got %v", err)
	}
	broken := errors.New("broken")
	for _, sequential := range []bool{false, true} {
		c := config(&outlet{err: broken}, 5)
		c.Sequential = sequential
		if err := New(c).Run(t.Context()); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	}
	// A codec that rejects every frame.
	c := config(&outlet{}, 5)
	c.Sequential, c.Params.PositionBits = true, 0
	p := New(c)
	if err := p.Run(t.Context()); !errors.Is(err, errOver) {
		t.Errorf("got %v", err)
	}
	if counts := p.Counts(); counts.Failed != 5 {
		t.Errorf("%+v, expected 5 rejected frames", counts)
	}
}

// TestGaze: the limit of the points follows the consumer's view.
func TestGaze(t *testing.T) {
	box := volumetric.BoundingBox{Min: [3]float32{-0.5, 0, -0.5}, Max: [3]float32{0.5, 2, 0.5}}
	g := NewGaze(pointcloud.FieldOfView{Angle: math.Pi / 2, Maxima: []float64{1, 0.5, 0.25}, Outside: 0.05}, nil, box)
	if g.Limit() != 1 {
		t.Error("expected all points for an unknown viewpoint")
	}
	look := func(yaw float64) *signal.Viewpoint {
		sin, cos := math.Sincos(yaw * math.Pi / 360)
		return &signal.Viewpoint{Position: signal.Vector{0, 1, 3}, Orientation: signal.Rotation{0, sin, 0, cos}}
	}
	// The view has 45 degrees to each side, in three regions of 15 degrees.
	for yaw, want := range map[float64]float64{0: 1, 10: 1, -20: 0.5, 40: 0.25, 60: 0.05, 180: 0.05} {
		g.Look(look(yaw))
		if got := g.Limit(); got != want {
			t.Errorf("looking %g degrees aside: %g of the points, expected %g", yaw, got, want)
		}
	}
	pitch := math.Sin(math.Pi / 8)
	g.Look(&signal.Viewpoint{Position: signal.Vector{0, 1, 3},
		Orientation: signal.Rotation{pitch, 0, 0, math.Cos(math.Pi / 8)}})
	if got := g.Limit(); got != 0.05 && got != 0.25 {
		t.Errorf("looking 45 degrees up: %g of the points", got)
	}
	if none := NewGaze(pointcloud.FieldOfView{}, nil, box); none.Limit() != 1 {
		t.Error("expected all points without regions")
	}
}

// ledger records the reports of sent frames.
type ledger struct {
	mu   sync.Mutex
	list []stages.Sent
	told chan struct{}
}

func (l *ledger) Sent(s *stages.Sent) {
	l.mu.Lock()
	l.list = append(l.list, *s)
	l.mu.Unlock()
	l.told <- struct{}{}
}

// way records the sent packets.
type way struct {
	mu        sync.Mutex
	datagrams [][]byte
	packets   int
}

func (w *way) SendOne(d []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.datagrams = append(w.datagrams, append([]byte(nil), d...))
}

func (w *way) Send(packets []stream.Packet) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.packets += len(packets)
}

// frame returns a frame of the given size.
func frame(number uint32, size int) *Frame {
	data := payload.Prefix{Capture: time.Now()}.AppendTo(nil)
	for i := range size {
		data = append(data, byte(int(number)+i/chunks.ChunkSize))
	}
	return &Frame{Sent: stages.Sent{Frame: number, Bytes: size, Hash: stages.Hash(data[payload.PrefixSize:])},
		Capture: time.Now(), Data: data}
}

// TestPaper002: ten frames wait, and an eleventh drops the oldest. The others are sent in order, and an empty frame
// closes the last.
func TestPaper002(t *testing.T) {
	w, l := &way{}, &ledger{told: make(chan struct{}, 100)}
	o := NewPaper002(time.Microsecond, w, l)
	for number := range uint32(13) {
		if err := o.Send(frame(number+1, 3000)); err != nil {
			t.Fatal(err)
		}
	}
	if len(l.list) != 3 || !l.list[0].Dropped || l.list[2].Frame != 3 {
		t.Errorf("expected the first three frames to be dropped, got %+v", l.list)
	}
	if !o.Waiting() || o.Estimate() != 0 {
		t.Error("expected that ten frames wait")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		o.Run(ctx)
	}()
	for range 13 {
		<-l.told
	}
	cancel()
	<-ended
	if o.Waiting() {
		t.Error("expected that no frame waits")
	}
	a := chunks.NewAssembler(1 << 20)
	next := uint32(4)
	for _, d := range w.datagrams {
		f, closed, err := a.Push(d, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if !closed {
			continue
		}
		if f.Number != next || stages.Hash(f.Data) != l.list[next-1].Hash || f.Holes != 0 {
			t.Errorf("got frame %d, expected %d", f.Number, next)
		}
		next++
	}
	if s := l.list[12]; next != 14 || s.Packets != 3 || s.Wire != 3000+3*36 || s.Dropped || s.LastSent < s.FirstSent ||
		s.FirstSent == 0 {
		t.Errorf("%d frames arrived; the record of the last is %+v", next-4, s)
	}
}

// TestAdaptive: frames are sent packet by packet, and reported when the last packet has left.
func TestAdaptive(t *testing.T) {
	settings := stream.SenderConfig{
		Wire: stream.Wire{SSRC: 1, PayloadType: 96, Extension: 1}, Congestion: congestion.DefaultConfig(),
		Pacing: pacing.Default, Budget: time.Second,
	}
	w, l := &way{}, &ledger{told: make(chan struct{}, 100)}
	o, err := NewAdaptive(settings, 40_000_000, w, l)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		o.Run(ctx)
	}()
	for number := range uint32(3) {
		if err := o.Send(frame(number+1, 10_000)); err != nil {
			t.Fatal(err)
		}
		<-l.told
	}
	o.Want(1_000_000)
	o.RTCP([]byte{0x80, 201, 0, 1, 0, 0, 0, 9}, time.Now(), 0)
	if o.Waiting() || o.Estimate() != 40_000_000 {
		t.Errorf("waiting %v, estimate %v", o.Waiting(), o.Estimate())
	}
	cancel()
	<-ended
	// 10,012 bytes are nine fragments.
	if w.packets != 27 {
		t.Errorf("%d packets, expected 27", w.packets)
	}
	for i, s := range l.list {
		if s.Frame != uint32(i+1) || s.Packets != 9 || s.Wire != 10_012+9*stream.PacketBytes ||
			s.LastSent < s.FirstSent {
			t.Errorf("got %+v", s)
		}
	}
	if err := o.Send(&Frame{Data: []byte{1}}); err == nil {
		t.Error("expected an error for a frame without prefix")
	}
	settings.Pacing = "slowly"
	if _, err := NewAdaptive(settings, 0, w, l); err == nil {
		t.Error("expected an error for the pacing mode")
	}
}
