package browser

import (
	"image"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/server"
	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec"
	_ "github.com/volsfu/volsfu/pkg/codec/cwi1" // registers the codec
	"github.com/volsfu/volsfu/pkg/codec/cwi1/cwi1test"
	"github.com/volsfu/volsfu/pkg/codec/dracojpeg"
	"github.com/volsfu/volsfu/pkg/codec/labels"
	"github.com/volsfu/volsfu/pkg/codec/parts"
	"github.com/volsfu/volsfu/pkg/codec/rgbd"
	_ "github.com/volsfu/volsfu/pkg/codec/zstd" // registers the codec
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// decoded is a frame as decoded by a page.
type decoded struct {
	Count             int
	Positions, Colors []float64
}

// decodes lets a page watch publishers, and returns the first frame of each, and the page's messages.
func decodes(t *testing.T, s *server.Server, publishers int) (kept map[string]decoded, failed int, said string) {
	t.Helper()
	v := begin(t, "codecs.mjs", pageURL(s), strconv.Itoa(publishers))
	var told struct {
		Failed int
		Said   string
		Kept   map[string]decoded
	}
	v.expect("decoded", &told)
	v.expect("done", nil)
	return told.Kept, told.Failed, told.Said
}

// TestCodecs compares point by point the frames that a page and volpeer decode, for every codec of the repository.
func TestCodecs(t *testing.T) {
	tools(t)
	if !dracojpeg.Available() {
		t.Skip("built without cgo: frames of Draco cannot be made")
	}
	cloud := coloredBall(4000)
	s := start(t, nil)
	wanted := make(map[string]*pointcloud.Cloud)
	for name, bits := range map[string]int{"raw": 11, "zstd": 11, "zstd fine": 17, "draco": 11, "draco+jpeg": 11,
		"parts of draco": 10, "parts of zstd": 16, "parts of draco+jpeg": 11, "labels of draco": 11,
		"labels of zstd": 12} {
		c := codecOf(t, name)
		params := codec.Params{PositionBits: bits, Speed: 7,
			Box: volumetric.BoundingBox{Min: [3]float32{-0.6, 0, -0.6}, Max: [3]float32{0.6, 1.3, 0.6}}}
		data, err := c.NewEncoder().Encode(nil, cloud, params)
		if err != nil {
			t.Fatal(err)
		}
		wanted[name] = &pointcloud.Cloud{}
		if err := c.NewDecoder().Decode(wanted[name], data); err != nil {
			t.Fatal(err)
		}
		publishFrame(t, s, name, c.FourCC(), data)
	}
	octree, _ := cwi1test.Of(cloud, 1.0/128).Encode()
	wanted["cwi1, colours as jpeg"] = &pointcloud.Cloud{}
	if err := codecOf(t, "cwi1").NewDecoder().Decode(wanted["cwi1, colours as jpeg"], octree); err != nil {
		t.Fatal(err)
	}
	publishFrame(t, s, "cwi1, colours as jpeg", codec.FourCC{'c', 'w', 'i', '1'}, octree)
	raster := rasterFrame(t)
	wanted["rgbd, colours as jpeg"] = &pointcloud.Cloud{}
	if err := rgbd.Codec.NewDecoder().Decode(wanted["rgbd, colours as jpeg"], raster); err != nil {
		t.Fatal(err)
	}
	publishFrame(t, s, "rgbd, colours as jpeg", rgbd.Codec.FourCC(), raster)
	kept, failed, said := decodes(t, s, len(wanted))
	if failed > 0 {
		t.Fatalf("%d frames failed: %s", failed, said)
	}
	for name, want := range wanted {
		t.Run(name, func(t *testing.T) { compare(t, kept[name], want, strings.Contains(name, "jpeg")) })
	}
}

// rasterFrame returns a frame of rgbd: a half ball before a depth camera that is turned and moved.
func rasterFrame(t *testing.T) []byte {
	t.Helper()
	const width, height = 90, 70
	turn, ok := depth.Rotation([4]float64{0, 0.1, 0, 1})
	if !ok {
		t.Fatal("no rotation")
	}
	camera := depth.Camera{Width: width, Height: height, FX: 100, FY: 100, CX: 44.5, CY: 34.5, Unit: 0.001,
		Pose: depth.Pose{Rotation: turn, Translation: [3]float64{0.1, 0.6, 1}}}
	captured := depth.Image{Depth: make([]uint16, width*height), Colors: make([][3]uint8, width*height)}
	for i := range captured.Depth {
		x, y := float64(i%width-44)/30, float64(i/width-34)/30
		if r := x*x + y*y; r < 1 {
			captured.Depth[i] = uint16(1000 - 200*math.Sqrt(1-r))
			captured.Colors[i] = [3]uint8{uint8(128 + 100*x), uint8(128 + 100*y), 90}
		}
	}
	data, _, err := rgbd.Codec.NewEncoder().(codec.RasterEncoder).EncodeRaster(nil, &camera, &captured,
		codec.RasterParams{Rect: image.Rect(0, 0, width, height), Step: 0.001, ColorQuality: 90})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// codecOf returns the codec of a test by its name.
func codecOf(t *testing.T, name string) codec.Codec {
	t.Helper()
	around, inner, within := strings.Cut(name, " of ")
	if !within {
		inner = name
	}
	c, err := codec.ByName(strings.TrimSuffix(inner, " fine"))
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case !within:
		return c
	case around == "parts":
		return parts.New(parts.Config{Inner: c, Parts: 4})
	}
	labelled, err := labels.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return labelled
}

// coloredBall returns a ball with gradually changing colours, whose points have labels.
func coloredBall(points int) *pointcloud.Cloud {
	random := rand.New(rand.NewPCG(1, 2))
	cloud := &pointcloud.Cloud{}
	for range points {
		x, y, z := random.NormFloat64(), random.NormFloat64(), random.NormFloat64()
		n := 2 * math.Sqrt(x*x+y*y+z*z)
		p := [3]float32{float32(x / n), float32(0.6 + y/n), float32(z / n)}
		cloud.Positions = append(cloud.Positions, p)
		cloud.Colors = append(cloud.Colors, [3]uint8{uint8(40 + 200*(p[0]+0.5)*0.9), uint8(40 + 200*(p[1]-0.1)*0.9),
			uint8(40 + 200*(p[2]+0.5)*0.9)})
		cloud.Labels = append(cloud.Labels, uint16(8*p[1]))
	}
	return cloud
}

// compare compares the frame decoded by a page with that of the Go decoder.
func compare(t *testing.T, got decoded, want *pointcloud.Cloud, lossy bool) {
	t.Helper()
	if got.Count != want.Len() {
		t.Fatalf("%d points, expected %d", got.Count, want.Len())
	}
	off, square := 0.0, 0.0
	for i := range want.Positions {
		for axis := range 3 {
			off = max(off, math.Abs(got.Positions[3*i+axis]-float64(want.Positions[i][axis])))
			away := got.Colors[3*i+axis] - float64(want.Colors[i][axis])
			square += away * away
		}
	}
	// Half a micrometre is the rounding of float32 at a metre. Browsers smooth the chroma of images between pixels,
	// unlike the Go decoder: colours then differ by about two steps of 255.
	if off > 5e-7 {
		t.Errorf("positions are up to %g m off", off)
	}
	rms := math.Sqrt(square / float64(3*want.Len()))
	t.Logf("colours differ by %.2f (root mean square)", rms)
	if !lossy && rms > 0 || rms > 4 {
		t.Errorf("colours differ by %g", rms)
	}
}

// publishFrame lets a client publish one frame repeatedly.
func publishFrame(t *testing.T, s *server.Server, identity string, name codec.FourCC, data []byte) {
	t.Helper()
	body := volumetric.Publication{
		Name: "body", Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives, FrameRate: 1,
		Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
		Tiles: []volumetric.Tile{{Box: volumetric.BoundingBox{Min: [3]float32{-0.6, 0, -0.6},
			Max: [3]float32{0.6, 1.3, 0.6}}}},
		Qualities: []volumetric.QualityLevel{{Bitrate: volumetric.Bitrate(8 * len(data))}},
	}
	session, err := client.Join(t.Context(), client.Config{URL: s.URL(), Room: "demo", Identity: identity,
		Publications: []volumetric.Publication{body}})
	if err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		camera := time.NewTicker(time.Second)
		defer camera.Stop()
		for number := uint32(0); ; {
			select {
			case <-stop:
				return
			case capture := <-camera.C:
				if taken, _ := session.Publisher("body").WriteFrame(0, 0,
					client.OutgoingFrame{Number: number, Capture: capture, Codec: name, Data: data}); taken {
					number++
				}
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-done
		_ = session.Close()
	})
}

// TestCodecsOfPeers has a page watch volpeer publish with every codec that it supports.
func TestCodecsOfPeers(t *testing.T) {
	tools(t)
	s := start(t, nil)
	names := []string{"raw", "zstd"}
	if dracojpeg.Available() {
		names = append(names, "draco", "draco+jpeg", "parts:draco:3", "parts:zstd:2", "labels:draco")
	}
	for _, name := range names {
		publish(t, s, name, "--codec", name, "--tiles", "1", "--fps", "5")
	}
	kept, failed, said := decodes(t, s, len(names))
	if failed > 0 || len(kept) != len(names) {
		t.Fatalf("%d frames failed, frames of %d peers arrived: %s", failed, len(kept), said)
	}
	for name, d := range kept {
		high := 0.0
		for i := 1; i < len(d.Positions); i += 3 {
			high = max(high, d.Positions[i])
		}
		if d.Count < 500 || high < 1.6 || high > 1.8 {
			t.Errorf("%s: %d points up to %g m, expected a person", name, d.Count, high)
		}
	}
}

// TestUnknownCodec checks that a page reports what it cannot decode, the publisher, and the codecs that it supports.
func TestUnknownCodec(t *testing.T) {
	tools(t)
	s := start(t, nil)
	publishFrame(t, s, "prepared", codec.FourCC{'d', 'r', 'c', 'm'}, make([]byte, 100))
	_, failed, said := decodes(t, s, 1)
	for _, words := range []string{"prepared", `"drcm"`, "triangle meshes", "zstd"} {
		if failed == 0 || !strings.Contains(said, words) {
			t.Errorf("%d frames failed, the page shows %q, expected %q in it", failed, said, words)
		}
	}
}
