package relay

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/cmd/volbridge/internal/bridge"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/draco"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// someCloud returns points of all colours in a room of 4 m.
func someCloud(points int, seed uint64) *pointcloud.Cloud {
	random := rand.New(rand.NewPCG(seed, 1))
	cloud := &pointcloud.Cloud{}
	for range points {
		var position [3]float32
		for axis := range position {
			position[axis] = 4*random.Float32() - 2
		}
		cloud.Append(position, [3]uint8{uint8(random.Uint32()), uint8(random.Uint32()), uint8(random.Uint32())})
	}
	return cloud
}

// encoded returns a cloud encoded by a codec.
func encoded(t testing.TB, c codec.Codec, cloud *pointcloud.Cloud) []byte {
	t.Helper()
	data, err := c.NewEncoder().Encode(nil, cloud, codec.Params{PositionBits: 20, Speed: 10, Box: cloud.Bounds()})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// packedRaw returns a cloud in the format of connectors.
func packedRaw(t testing.TB, cloud *pointcloud.Cloud, capture time.Time) []byte {
	t.Helper()
	return rawFrame(encoded(t, codec.CWI0, cloud), capture)
}

// sameCloud fails if a frame does not decode to a cloud, in any order, with positions that differ by at most off
// metres.
func sameCloud(t *testing.T, c codec.Codec, data []byte, want *pointcloud.Cloud, off float64) {
	t.Helper()
	var got pointcloud.Cloud
	if err := c.NewDecoder().Decode(&got, data); err != nil {
		t.Fatal(err)
	}
	if got.Len() != want.Len() {
		t.Fatalf("%d points, expected %d", got.Len(), want.Len())
	}
	order := func(cloud *pointcloud.Cloud) []int {
		indices := make([]int, cloud.Len())
		for i := range indices {
			indices[i] = i
		}
		slices.SortFunc(indices, func(a, b int) int { return slices.Compare(cloud.Colors[a][:], cloud.Colors[b][:]) })
		return indices
	}
	ours, theirs := order(&got), order(want)
	for i, j := range ours {
		k := theirs[i]
		for axis := range 3 {
			d := math.Abs(float64(got.Positions[j][axis] - want.Positions[k][axis]))
			if got.Colors[j] != want.Colors[k] || d > off {
				t.Fatalf("point %v, %v, expected %v, %v", got.Positions[j], got.Colors[j], want.Positions[k],
					want.Colors[k])
			}
		}
	}
}

// TestBridgeTranscodes transcodes in both directions, with the codec that needs no library, and with Draco.
func TestBridgeTranscodes(t *testing.T) {
	t.Run("raw", func(t *testing.T) { bridgeTranscodes(t, codec.Raw) })
	t.Run("draco", func(t *testing.T) {
		if !draco.Available() {
			t.Skip("skipped: built without Draco")
		}
		c, err := codec.ByName("draco")
		if err != nil {
			t.Fatal(err)
		}
		bridgeTranscodes(t, c)
	})
}

func bridgeTranscodes(t *testing.T, c codec.Codec) {
	url := openConference(t)
	n := openNeighbour(t)
	stop := bridgeTo(t, &Options{
		sfu: url, port: n.bridge.String(), client: 1, layout: bridge.Layout{Tiles: 1, Qualities: 1}, input: true,
		output: true, transcode: true, pointCodec: c,
	})
	body := (&upward{settings: &Options{layout: bridge.Layout{Tiles: 1, Qualities: 1}}}).describeCloud(c.FourCC())
	body.VR2Gather = false
	session, err := client.Join(t.Context(), client.Config{
		URL: url, Room: defaultRoom, Identity: "ada-12", Publications: []volumetric.Publication{body}, Receive: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close() }()
	// Colours identify the points: all differ, since there are few.
	ours, theirs := someCloud(500, 1), someCloud(700, 2)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	var number uint32
	up, down := 0, 0
	for end := time.After(patience); up < 10 || down < 10; {
		select {
		case now := <-ticker.C:
			number++
			n.send(t, number, packedRaw(t, ours, now))
			f := client.OutgoingFrame{Number: number, Capture: now, Codec: c.FourCC(), Data: encoded(t, c, theirs)}
			// Nothing is sent before the connection is established.
			_, _ = session.Publisher(body.Name).WriteFrame(0, 0, f)
		case f := <-session.Frames():
			if f.Codec != c.FourCC() || f.Whole != nil || f.Track.Participant != "1" ||
				time.Since(f.Capture).Abs() > patience {
				t.Fatalf("frame of codec %v from %v, captured at %v", f.Codec, f.Track, f.Capture)
			}
			sameCloud(t, c, f.Data, ours, 0.0005)
			up++
		case p := <-n.frames:
			var header vr2gather.FrameHeader
			data, err := header.Parse(p.Data)
			if err != nil || header.FourCC != codec.CWI0.FourCC() || p.Client != 12 || header.TimestampMS == 0 {
				t.Fatalf("%v: frame of client %d begins with %+v", err, p.Client, header)
			}
			sameCloud(t, codec.CWI0, data, theirs, 0.00001)
			down++
		case <-end:
			t.Fatalf("%d frames came up, %d down", up, down)
		}
	}
	s := stop()
	if s.Transcoding == nil || s.Transcoding.Up.P50 == nil || s.Transcoding.Down.P99 == nil ||
		*s.Up.Max < *s.Transcoding.Up.P50 || s.Dropped["frames_not_transcoded"] > 0 {
		t.Errorf("summary is %+v", s)
	}
}

// TestBridgePublishesUnknownCodecsUnchanged sends points of an unknown codec, which are published unchanged.
func TestBridgePublishesUnknownCodecsUnchanged(t *testing.T) {
	url := openConference(t)
	n := openNeighbour(t)
	stop := bridgeTo(t, &Options{
		sfu: url, port: n.bridge.String(), client: 1, layout: bridge.Layout{Tiles: 1, Qualities: 1}, input: true,
		transcode: true, pointCodec: codec.Raw,
	})
	session, err := client.Join(t.Context(), client.Config{URL: url, Room: defaultRoom, Identity: "ada", Receive: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close() }()
	unknown := volumetric.FourCC{'o', 't', 'h', 'r'}
	frame := vr2gather.NewFrameHeader(unknown, 100, time.Now()).Append(nil)
	frame = append(frame, make([]byte, 100)...)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	var number uint32
	for end := time.After(patience); ; number++ {
		select {
		case <-ticker.C:
			n.send(t, number, frame)
			continue
		case f := <-session.Frames():
			if f.Codec != unknown || !slices.Equal(f.Whole, frame) {
				t.Errorf("%d bytes of codec %v, expected the connector's frame", len(f.Whole), f.Codec)
			}
		case <-end:
			t.Error("nothing comes")
		}
		break
	}
	if s := stop(); s.Transcoding.Up.P50 != nil {
		t.Errorf("summary is %+v", s)
	}
}

// BenchmarkBridgeTranscode sends clouds of 40,000 points through two bridges that transcode and a server, 30 per
// second. It reports the time that transcoding adds in each bridge, including queueing.
func BenchmarkBridgeTranscode(b *testing.B) {
	if !draco.Available() {
		b.Skip("skipped: built without Draco")
	}
	url := openConference(b)
	from, to := openNeighbour(b), openNeighbour(b)
	layout := bridge.Layout{Tiles: 1, Qualities: 1}
	stopFrom := bridgeTo(b, &Options{sfu: url, port: from.bridge.String(), client: 1, layout: layout, input: true,
		transcode: true})
	stopTo := bridgeTo(b, &Options{sfu: url, port: to.bridge.String(), client: 2, layout: layout, output: true,
		transcode: true})
	points := encoded(b, codec.CWI0, someFigure(40_000))
	ticker := time.NewTicker(time.Second / 30)
	defer ticker.Stop()
	number := uint32(0)
	send := func() {
		<-ticker.C
		number++
		from.send(b, number, rawFrame(points, time.Now()))
	}
	came := false
	for end := time.After(patience); !came; {
		send()
		select {
		case <-to.frames:
			came = true
		case <-end:
			b.Fatal("nothing comes")
		default:
		}
	}
	for b.Loop() {
		send()
	}
	up, down := stopFrom().Transcoding.Up, stopTo().Transcoding.Down
	b.ReportMetric(*up.P50, "up-p50-ms")
	b.ReportMetric(*up.P99, "up-p99-ms")
	b.ReportMetric(*down.P50, "down-p50-ms")
	b.ReportMetric(*down.P99, "down-p99-ms")
}

// someFigure returns the surface of a body of about a person's size.
func someFigure(points int) *pointcloud.Cloud {
	random := rand.New(rand.NewPCG(1, 2))
	cloud := &pointcloud.Cloud{}
	for range points {
		turn, height := 2*math.Pi*random.Float64(), 1.8*random.Float64()
		position := [3]float32{float32(0.3 * math.Cos(turn)), float32(height), float32(0.2 * math.Sin(turn))}
		cloud.Append(position, [3]uint8{uint8(100 * height), uint8(20 * turn), 80})
	}
	return cloud
}
