package publish

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/produce"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/production"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/summary"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/watch"
	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

func TestAppendVR2Gather(t *testing.T) {
	capture := time.UnixMilli(1_795_188_600_250)
	cloud := &pointcloud.Cloud{Positions: [][3]float32{{0, 0, 0}}, Colors: [][3]uint8{{1, 2, 3}}}
	params := codec.Params{PositionBits: 10, Box: volumetric.BoundingBox{Max: [3]float32{1, 1, 1}}}
	points, err := codec.CWI0.NewEncoder().Encode(nil, cloud, params)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"a point": points, "no points": nil} {
		whole := appendVR2Gather([]byte("before"), codec.CWI0.FourCC(), data, capture)
		var header vr2gather.FrameHeader
		rest, err := header.Parse(whole[len("before"):])
		if err != nil || header.FourCC != vr2gather.CodecRawPoints || !header.Capture().Equal(capture) ||
			!bytes.HasPrefix(whole, []byte("before")) {
			t.Fatalf("%s: %+v, %v", name, header, err)
		}
		// VR2Gather's decoder requires at least the 32 bytes before the first point, and reads the time there.
		if want := codec.StampCWI0(nil, data, capture); !bytes.Equal(rest, want) || len(rest) < 32 ||
			int(header.Length) != len(rest) {
			t.Errorf("%s: got % x, want % x", name, rest, want)
		}
	}
}

// lateClock is a server's clock that is one hour ahead.
type lateClock struct{}

func (lateClock) ServerTime(t time.Time) time.Time { return t.Add(time.Hour) }

// keeper stores the hashes of frames by tile, quality and number, and passes the frames on.
type keeper struct {
	produce.Sink
	mu     sync.Mutex
	hashes map[frameName][sha256.Size]byte
	newest client.OutgoingFrame
}

type frameName struct {
	tile    int
	quality volumetric.Quality
	number  int64
}

func (k *keeper) WriteFrame(tile int, quality volumetric.Quality, f client.OutgoingFrame) (bool, error) {
	k.mu.Lock()
	k.hashes[frameName{tile, quality, int64(f.Number)}] = sha256.Sum256(f.Data)
	k.newest = f
	k.newest.Data = bytes.Clone(f.Data)
	k.mu.Unlock()
	return k.Sink.WriteFrame(tile, quality, f)
}

func (k *keeper) hash(name frameName) ([sha256.Size]byte, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	hash, ok := k.hashes[name]
	return hash, ok
}

func TestVR2GatherSinkWritesServerTime(t *testing.T) {
	kept := &keeper{Sink: &fakePublisher{}, hashes: make(map[frameName][sha256.Size]byte)}
	sink := vr2gatherSink{kept, lateClock{}}
	capture := time.UnixMilli(1_795_188_600_250)
	if _, err := sink.WriteFrame(1, 2, client.OutgoingFrame{Number: 7, Capture: capture,
		Codec: codec.CWI0.FourCC()}); err != nil {
		t.Fatal(err)
	}
	var header vr2gather.FrameHeader
	if _, err := header.Parse(kept.newest.Data); err != nil || !header.Capture().Equal(capture.Add(time.Hour)) ||
		!kept.newest.Capture.Equal(capture) || kept.newest.Number != 7 {
		t.Errorf("frame %d of %v has the header %+v, %v", kept.newest.Number, kept.newest.Capture, header, err)
	}
}

// broadcastVR2Gather publishes as alice until the context ends, and stores the sent frames.
func broadcastVR2Gather(ctx context.Context, t *testing.T, url string) (kept *keeper, ended <-chan error) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	p := &options{
		Options: production.Options{
			Source: "synthetic", Capture: capture.Options{FPS: 30, Points: 2000}, Tiles: 2, Qualities: "low,high",
			Name: "body", Mode: string(volumetric.ModeAlternatives), VR2Gather: true,
		},
		room: peer.Room{Server: url, Name: "room", Identity: "alice"},
	}
	settings, err := p.check(log)
	if err != nil {
		t.Fatal(err)
	}
	source, err := capture.Open(p.Source, p.Capture)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = source.Close() })
	b, err := p.prepare(ctx, settings, source)
	if err != nil {
		t.Fatal(err)
	}
	b.console, b.log = io.Discard, log
	session, err := p.enter(ctx, b)
	if err != nil {
		t.Fatal(err)
	}
	sink := b.sink.(vr2gatherSink)
	kept = &keeper{Sink: sink.Sink, hashes: make(map[frameName][sha256.Size]byte)}
	b.sink = vr2gatherSink{kept, sink.clock}
	end := make(chan error, 1)
	go func() {
		err := b.run(ctx, session, 0)
		_ = session.Close()
		b.producer.Close()
		end <- err
	}()
	return kept, end
}

// TestVR2GatherPublication checks that frames published with --vr2gather arrive byte for byte, and that volpeer watch
// decodes them.
func TestVR2GatherPublication(t *testing.T) {
	settings := testbed.ConferenceConfig()
	// Frames are repaired for long enough that a stall of the machine loses no frame.
	settings.Forward.NACK.Deadline, settings.Forward.NACK.LongDeadline, settings.Forward.CacheAge = signal.MaxDeadline,
		signal.MaxDeadline, 5*signal.MaxDeadline
	conference, err := testbed.NewConference(settings, nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conference.Close()
		goleak.VerifyNone(t)
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	url := conference.Server.URL()
	kept, ended := broadcastVR2Gather(ctx, t, url)
	w := &watch.Options{Room: peer.Room{Server: url, Name: "room", Identity: "bob"}, Seconds: 5, Quality: "auto",
		Deadline: signal.MaxDeadline, JSON: true}
	var out bytes.Buffer
	watched := make(chan error, 1)
	go func() { watched <- w.Run(ctx, nil, &out, io.Discard, slog.New(slog.DiscardHandler)) }()
	listening, err := client.Join(ctx, client.Config{URL: url, Room: "room", Identity: "carol", Receive: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listening.Close() }()
	compareFrames(t, listening, kept)
	for _, participant := range listening.Participants() {
		if p := participant.Publications; participant.Identity == "alice" &&
			(len(p) != 1 || !p[0].VR2Gather || p[0].Codec.Format != "codec=cwi0") {
			t.Errorf("alice publishes %+v, want frames of VR2Gather's as cwi0", p)
		}
	}
	if err := <-watched; err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	var sum summary.Summary
	if err := json.Unmarshal(out.Bytes(), &sum); err != nil {
		t.Fatal(err)
	}
	if sum.Decoded == 0 || sum.Undecodable != 0 || sum.Latency.P50 == nil || *sum.Latency.P50 <= 0 ||
		*sum.Latency.P50 > 1000 {
		t.Errorf("the watcher decoded %d frames and could not decode %d, latency %s ms", sum.Decoded, sum.Undecodable,
			sum.Latency.Text())
	}
}

// compareFrames receives enough frames of both tiles and compares them with the sent frames.
func compareFrames(t *testing.T, session *client.Session, kept *keeper) {
	t.Helper()
	const enough = 20
	decoder, seen := codec.CWI0.NewDecoder(), [2]int{}
	timeout := time.After(wait.Patience)
	for seen[0] < enough || seen[1] < enough {
		select {
		case f := <-session.Frames():
			sent, ok := kept.hash(frameName{f.Track.Tile, f.Track.Quality, f.Number})
			if !ok || sha256.Sum256(f.Whole) != sent {
				t.Fatalf("frame %d of tile %d at quality %d has %d bytes that were not sent", f.Number, f.Track.Tile,
					f.Track.Quality, len(f.Whole))
			}
			var cloud pointcloud.Cloud
			if err := decoder.Decode(&cloud, f.Data); err != nil || f.Codec != codec.CWI0.FourCC() || cloud.Len() == 0 {
				t.Fatalf("frame %d of codec %v has %d points, %v", f.Number, f.Codec, cloud.Len(), err)
			}
			if age := time.Since(f.Capture); age < 0 || age > 10*time.Second {
				t.Fatalf("frame %d was captured %v ago", f.Number, age)
			}
			seen[f.Track.Tile]++
		case <-timeout:
			t.Fatalf("%v frames of both tiles came, want %d", seen, enough)
		}
	}
}
