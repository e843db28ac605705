package direct

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/peer/lod"
	"github.com/volsfu/volsfu/internal/peer/render"
	"github.com/volsfu/volsfu/lab/direct/rendezvous"
	"github.com/volsfu/volsfu/lab/direct/stages"
	"github.com/volsfu/volsfu/pkg/capture"
)

// directRun has the results of a producer and a consumer.
type directRun struct {
	produced, consumed Summary
	// sent and received are the logs of both sides.
	sent, received []stages.Record
}

// meetConsumer runs a producer and a consumer on this host and returns their results.
func (p *producing) meetConsumer(t *testing.T, c *consuming) directRun {
	t.Helper()
	met, dir := make(chan string, 1), t.TempDir()
	p.direct = direct{listen: "127.0.0.1:0", met: met, json: true, log: filepath.Join(dir, "sent.jsonl")}
	p.count = 30
	p.capture = capture.Options{FPS: 30, Points: 3000}
	p.source, p.codec, p.bits, p.pacing = "synthetic", "raw", 11, string(pacing.Default)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log := slog.New(slog.DiscardHandler)
	var produced, consumed bytes.Buffer
	ended := make(chan error, 1)
	go func() {
		err := p.run(ctx, &produced, io.Discard, log)
		if err != nil {
			cancel()
		}
		ended <- err
	}()
	select {
	case address := <-met:
		c.direct = direct{connect: address, json: true, log: filepath.Join(dir, "received.jsonl")}
	case <-ctx.Done():
		t.Fatal(<-ended)
	}
	if err := c.run(ctx, &consumed, io.Discard, log); err != nil {
		t.Errorf("the consumer: %v", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the producer: %v", err)
	}
	var r directRun
	for _, side := range []struct {
		text    *bytes.Buffer
		summary *Summary
	}{{&produced, &r.produced}, {&consumed, &r.consumed}} {
		decoder := json.NewDecoder(side.text)
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(side.summary); err != nil {
			t.Fatal(err)
		}
	}
	r.sent, r.received = records(t, p.log), records(t, c.log)
	return r
}

// records reads a log.
func records(t *testing.T, name string) (list []stages.Record) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		var r stages.Record
		if err := decoder.Decode(&r); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
}

// check checks properties that hold on a machine of any speed: received frames equal sent frames, and the times of a
// frame's stages increase.
func (r *directRun) check(t *testing.T) {
	t.Helper()
	for _, s := range []*Summary{&r.produced, &r.consumed} {
		if s.Intact == 0 || s.Corrupt != 0 || s.Unmatched != 0 || s.Undecodable != 0 || s.Decoded == 0 ||
			s.Reliability == nil || s.Bitrate == 0 || s.FPS == 0 {
			t.Errorf("the %s: got %+v", s.Role, s)
		}
	}
	if r.produced.Captured == 0 || r.consumed.Packets == 0 {
		t.Errorf("%d frames captured, %d packets received", r.produced.Captured, r.consumed.Packets)
	}
	for side, list := range map[string][]stages.Record{"producer": r.sent, "consumer": r.received} {
		decoded := 0
		for i := range list {
			f := &list[i]
			if f.Outcome == stages.Intact && f.Hash != f.ReceivedHash {
				t.Errorf("the %s's frame %d has hashes %x and %x", side, f.Sent.Frame, f.Hash, f.ReceivedHash)
			}
			if f.Decoded == 0 {
				continue
			}
			decoded++
			instants := []stages.Instant{
				f.Capture, f.Captured, f.Taken, f.Sampled, f.Encoded, f.FirstSent, f.LastSent, f.LastReceived,
				f.Reassembled, f.DecodeBegun, f.Decoded,
			}
			for k := 1; k < len(instants); k++ {
				if instants[k] == 0 || instants[k] < instants[k-1] {
					t.Errorf("the %s's frame %d: stage %d is at %d, the one before at %d", side, f.Sent.Frame, k,
						instants[k], instants[k-1])
				}
			}
			if f.DecodedPoints != f.Points || f.ReceivedBytes != f.Bytes {
				t.Errorf("the %s's frame %d: %d points of %d in %d bytes of %d", side, f.Sent.Frame, f.DecodedPoints,
					f.Points, f.ReceivedBytes, f.Bytes)
			}
		}
		if decoded == 0 {
			t.Errorf("no frame in the %s's log was decoded", side)
		}
	}
}

// TestDirect runs a producer and a consumer over each transport, in each mode.
func TestDirect(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for _, way := range []struct{ transport, mode, feedback string }{
		{rendezvous.TransportWebRTC, rendezvous.ModeAdaptive, feedbackTransport},
		{rendezvous.TransportWebRTC, rendezvous.ModeAdaptive, feedbackCCFB},
		{rendezvous.TransportUDP, rendezvous.ModeAdaptive, feedbackTransport},
		{rendezvous.TransportUDP, rendezvous.ModeAdaptive, feedbackCCFB},
		{rendezvous.TransportUDP, rendezvous.ModePaper002, feedbackTransport},
	} {
		t.Run(way.transport+" "+way.mode+" "+way.feedback, func(t *testing.T) {
			p := &producing{transport: way.transport, mode: way.mode, feedback: way.feedback,
				seeing: lod.Flags{Regions: "1,0.5", Angle: 110}, gap: time.Microsecond}
			r := p.meetConsumer(t, &consuming{})
			r.check(t)
			if r.consumed.Transport != way.transport || r.consumed.Mode != way.mode {
				t.Errorf("the consumer was configured for %s, %s", r.consumed.Transport, r.consumed.Mode)
			}
		})
	}
}

// TestDirectSizes: frames have the size of a fixed rate, and no more points than the view of the viewer justifies.
func TestDirectSizes(t *testing.T) {
	p := &producing{transport: rendezvous.TransportUDP, mode: rendezvous.ModeAdaptive,
		seeing: lod.Flags{Regions: "1,0.5", Angle: 110}, rate: 4_000_000}
	r := p.meetConsumer(t, &consuming{})
	r.check(t)
	// 4 Mbit/s are 16,667 bytes per frame: some 1,700 of 3,000 points at 9 bytes.
	if s := &r.produced; s.Targeted == 0 || s.WithinTarget != s.Targeted || s.Estimate != 4_000_000 {
		t.Errorf("%d of %d frames were within 5 %% of their target, with %d bit/s", s.WithinTarget, s.Targeted,
			s.Estimate)
	}

	// A viewer that always looks away.
	recording := filepath.Join(t.TempDir(), "away.csv")
	if err := os.WriteFile(recording, []byte("HMDPX,HMDPY,HMDPZ,HMDRX,HMDRY,HMDRZ\n0,1,-2,0,180,0\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "pictures")
	p = &producing{transport: rendezvous.TransportUDP, mode: rendezvous.ModeAdaptive,
		seeing: lod.Flags{Regions: "1,0.5", Angle: 110, Outside: 0.1}}
	r = p.meetConsumer(t, &consuming{viewpoint: recording, render: render.Flags{Dir: dir, Every: 10, From: "0,1,3"}})
	r.check(t)
	// The first frames are sent before the producer knows the consumer's view. On a busy machine, frames may have even
	// fewer points.
	last := r.sent[len(r.sent)-1]
	if last.Points > 300 || last.Bound != "view" && last.Bound != "time" {
		t.Errorf("the last frame has %d of 3,000 points, bound by %s, expected a tenth, which is out of view",
			last.Points, last.Bound)
	}
	if pictures, err := filepath.Glob(filepath.Join(dir, "*.png")); err != nil || len(pictures) == 0 {
		t.Errorf("no pictures: %v", err)
	}
	if shown := r.consumed.Stages["capture_to_shown"]; shown.P50 == nil {
		t.Error("no frame was shown")
	}
}

// TestDirectDetail: a distant viewer is sent fewer points, and a viewer that looks past the object is sent the points
// in view.
func TestDirectDetail(t *testing.T) {
	for name, test := range map[string]struct {
		from   string
		seeing lod.Flags
		most   int
	}{
		"from 12 m, all up to 4 m": {"0,1,12,0,0,0", lod.Flags{Detail: 4}, 500},
		"over the shoulder":        {"0,1,-2,0,180,0", lod.Flags{Regions: "1", Angle: 110, Outside: 0.05}, 150},
	} {
		recording := filepath.Join(t.TempDir(), "there.csv")
		if err := os.WriteFile(recording, []byte("HMDPX,HMDPY,HMDPZ,HMDRX,HMDRY,HMDRZ\n"+test.from+"\n"),
			0o600); err != nil {
			t.Fatal(err)
		}
		p := &producing{transport: rendezvous.TransportUDP, mode: rendezvous.ModeAdaptive, regionBy: regionByPoint,
			seeing: test.seeing}
		r := p.meetConsumer(t, &consuming{viewpoint: recording})
		r.check(t)
		last := r.sent[len(r.sent)-1]
		if last.Points < 1 || last.Points > test.most || last.Bound != "view" && last.Bound != "time" {
			t.Errorf("%s: the last frame has %d of 3,000 points, bound by %s, expected at most %d by the view", name,
				last.Points, last.Bound, test.most)
		}
	}
}

// TestDirectCommandLine: invalid flags are reported before a connection is made.
func TestDirectCommandLine(t *testing.T) {
	tests := []struct{ line, want string }{
		{"produce", "expected either --listen or --connect"},
		{"consume --listen a --connect b", "expected either --listen or --connect"},
		{"consume --connect 127.0.0.1:99999", "connect to ws://127.0.0.1:99999"},
		{"consume --connect a --seconds -1", "expected 0 or more"},
		{"consume --connect a --viewpoint nowhere.csv", "--viewpoint: open nowhere.csv"},
		{"consume --connect a --render --render-every 0", "--render-every"},
		{"consume --connect a --render --render-from 1", "--render-from"},
		{"consume --connect a --render-dir /dev/null/pictures", "--render-dir"},
		{"consume --connect a --log frames.txt", "--log: expected a name that ends with .jsonl or .csv"},
		{"produce --listen 127.0.0.1:99999 --points 100", "--listen"},
		{"produce --connect a --transport pigeon", "--transport: expected webrtc or udp"},
		{"produce --connect a --mode hasty", "--mode: expected adaptive or paper002"},
		{"produce --connect a --mode paper002", "expected --transport udp"},
		{"produce --connect a --mode paper002 --transport udp --bitrate 10Mbit", "expected --transport udp"},
		{"produce --connect a --gap 1s", "--gap"},
		{"produce --connect a --count -1", "--count"},
		{"produce --connect a --codec mp3", "--codec"},
		{"produce --connect a --bits 40", "40 position bits"},
		{"produce --connect a --regions 1,two", "--regions"},
		{"produce --connect a --regions 2", "--regions"},
		{"produce --connect a --region-by eye", "--region-by: expected object or point"},
		{"produce --connect a --detail-distance -1", "--detail-distance"},
		{"produce --connect a --detail-distance 1 --detail-least 2", "--detail-least"},
		{"produce --connect a --pacing slowly", "--pacing"},
		{"produce --connect a --feedback none", "--feedback: expected ccfb or transport"},
		{"produce --connect a --controller bbr", `--controller: invalid congestion configuration: controller is "bbr"`},
		{"produce --connect a --min-bitrate 50Mbit --max-bitrate 20Mbit", "--min-bitrate, --max-bitrate"},
		{"produce --connect a --source lidar", "unknown source"},
	}
	for _, test := range tests {
		t.Run(test.line, func(t *testing.T) {
			root := Command()
			root.SilenceUsage, root.SilenceErrors = true, true
			root.SetArgs(strings.Fields(test.line))
			var out bytes.Buffer
			root.SetOut(&out)
			root.SetErr(&out)
			if err := root.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("expected an error with %q, got %v", test.want, err)
			}
		})
	}
}

// notice is a log that signals each message.
type notice chan struct{}

// Write implements io.Writer.
func (n notice) Write(message []byte) (int, error) {
	select {
	case n <- struct{}{}:
	default:
	}
	return len(message), nil
}

// TestConsumerWaitsForProducer: a consumer that dials before the producer listens connects later.
func TestConsumerWaitsForProducer(t *testing.T) {
	listener, err := rendezvous.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Address()
	listener.Close()
	refused := make(notice, 1)
	met := make(chan error, 1)
	go func() {
		consumer := direct{connect: address}
		conn, err := consumer.meet(t.Context(), slog.New(slog.NewTextHandler(refused, nil)))
		if err == nil {
			conn.Close()
		}
		met <- err
	}()
	select {
	case <-refused:
	case err := <-met:
		t.Fatalf("the consumer did not wait: %v", err)
	}
	producer := direct{listen: address}
	conn, err := producer.meet(t.Context(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := <-met; err != nil {
		t.Error(err)
	}
	conn.Close()
}

// consumeNothing runs a consumer with a producer that ends immediately.
func consumeNothing(t *testing.T, log string) (string, error) {
	t.Helper()
	listener, err := rendezvous.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ended := make(chan error, 1)
	go func() {
		conn, err := listener.Accept(t.Context())
		if err == nil {
			hello := rendezvous.Hello{Role: rendezvous.RoleProducer, Transport: rendezvous.TransportUDP,
				Mode: rendezvous.ModePaper002, Port: 9, Codec: "raw1", FrameRate: 30}
			_, err = conn.Greet(t.Context(), hello)
			conn.Close()
		}
		ended <- err
	}()
	var out bytes.Buffer
	c := &consuming{direct: direct{connect: listener.Address(), json: true, log: log}}
	err = c.run(t.Context(), &out, io.Discard, slog.New(slog.DiscardHandler))
	if err := <-ended; err != nil {
		t.Errorf("the producer: %v", err)
	}
	return out.String(), err
}

// TestDirectNothing: ErrNothing is returned if no frame was decoded, unless another error occurred as well.
func TestDirectNothing(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := t.TempDir()
	summary, err := consumeNothing(t, filepath.Join(dir, "frames.csv"))
	if !errors.Is(err, ErrNothing) || !strings.Contains(summary, `"frames_decoded":0`) {
		t.Errorf("got %v, with the summary %s", err, summary)
	}
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	full := filepath.Join(dir, "full.csv")
	if err := os.Symlink("/dev/full", full); err != nil {
		t.Skip(err)
	}
	summary, err = consumeNothing(t, full)
	if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, ErrNothing) ||
		!strings.Contains(summary, `"frames_decoded":0`) {
		t.Errorf("with a log that cannot be written: got %v, with the summary %s", err, summary)
	}
}

// TestDirectSameClock: with the flag, the producer's clock counts as the consumer's clock, whatever its offset seems to
// be. Without the flag, this holds only for a producer on the loopback interface.
func TestDirectSameClock(t *testing.T) {
	for _, test := range []struct {
		line, producer string
		same           bool
	}{{"--same-clock", "198.18.0.1", true}, {"", "198.18.0.1", false}, {"", "127.0.0.1", true}} {
		c := &consuming{}
		cmd := newConsumeOf(c)
		if err := cmd.ParseFlags(strings.Fields(test.line)); err != nil {
			t.Fatal(err)
		}
		clock, now := c.clock(netip.MustParseAddr(test.producer)), time.Unix(1000, 0)
		// The answer was delayed by a queue: according to the answer, the producer is 50 ms ahead.
		clock.Answered(&rendezvous.Time{Asked: now.UnixMicro(), Received: now.Add(100 * time.Millisecond).UnixMicro(),
			Answered: now.Add(100 * time.Millisecond).UnixMicro()}, now.Add(100*time.Millisecond))
		if got := clock.Producer(now.Add(time.Second)).Equal(now.Add(time.Second)); got != test.same {
			t.Errorf("%q, producer at %s: the same clock is %v, want %v", test.line, test.producer, got, test.same)
		}
	}
}
