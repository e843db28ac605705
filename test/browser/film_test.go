package browser

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"hash/fnv"
	"image"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/server"
	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/dracojpeg"
	"github.com/volsfu/volsfu/pkg/codec/rgbd"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// film is the file for the film of README.md; without it the film is not made.
var film = flag.String("film", "", "file to make README's film in")

const (
	// filmRate is the number of pictures per second, and filmLength the number of pictures. The frames of people are
	// shown forwards and backwards, so that the film repeats without a jump.
	filmRate   = 25
	filmLength = 150
	// mostTakes is the number of times that a frame is published. Servers of busy machines drop frames.
	mostTakes = 20
	// mostFilm is the largest size of the film in bytes, since README.md is loaded with it.
	mostFilm = 3_000_000
)

// filmSize is the size of the pictures.
var filmSize = image.Pt(720, 405)

// TestFilm makes the film of README.md, if requested: two people in the viewer, one as points of Draco, and one as
// rasters of virtual depth cameras. Both are synthetic. The film does not depend on the machine's speed.
func TestFilm(t *testing.T) {
	if *film == "" {
		t.Skip("the film is made on demand: go test ./test/browser -run TestFilm -args -film FILE")
	}
	tools(t)
	if !dracojpeg.Available() {
		t.Skip("built without cgo: frames of Draco cannot be made")
	}
	s := start(t, nil)
	cast := []*actor{pointsActor(t, "Ada"), rastersActor(t, "Grace")}
	for _, a := range cast {
		a.join(t, s)
	}
	ctx, ready := context.WithCancel(t.Context())
	var rehearsing sync.WaitGroup
	for _, a := range cast {
		rehearsing.Go(func() { a.rehearse(ctx, t) })
	}
	v := begin(t, "film.mjs", pageURL(s), strconv.Itoa(filmRate), strconv.Itoa(filmLength))
	v.patience = 5 * patience
	v.say(`{"people": ` + strconv.Itoa(len(cast)) + `}`)
	v.expect("ready", nil)
	ready()
	rehearsing.Wait()
	made := &animation{width: filmSize.X, height: filmSize.Y}
	for i := range filmLength {
		picture, err := base64.StdEncoding.DecodeString(shoot(v, cast, min(i, filmLength-1-i)))
		if err != nil {
			t.Fatal(err)
		}
		if err := made.add(picture, pictureTime(i+1)-pictureTime(i)); err != nil {
			t.Fatal(err)
		}
	}
	v.expect("done", nil)
	if err := os.WriteFile(*film, made.encode(), 0o644); err != nil {
		t.Fatal(err)
	}
	checkFilm(t, *film)
}

// shoot publishes a frame of all actors until the page has it, and returns the picture.
func shoot(v *visit, cast []*actor, frame int) string {
	v.t.Helper()
	first := make(map[string]uint32)
	for _, a := range cast {
		first[a.name] = a.next
	}
	for range mostTakes {
		v.say(play(v.t, cast, frame, first))
		var shot struct{ Step, Picture string }
		if v.expectOneOf(&shot, "picture", "again"); shot.Step == "picture" {
			return shot.Picture
		}
	}
	v.t.Fatalf("the page does not get frame %d in %d attempts", frame, mostTakes)
	return ""
}

// pictureTime returns the time of a picture in whole milliseconds.
func pictureTime(i int) time.Duration {
	return (time.Duration(i) * time.Second / filmRate).Truncate(time.Millisecond)
}

// TestFilmOfReadme checks that README.md shows the film, and that the film is complete and small.
func TestFilmOfReadme(t *testing.T) {
	const path = "docs/images/film.webp"
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(readme, []byte(path)) {
		t.Errorf("README.md does not show %s", path)
	}
	checkFilm(t, filepath.Join(root, path))
}

// checkFilm checks the size, the length and some pictures of a film, which change from one to the next.
func checkFilm(t *testing.T, path string) {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	read, err := parseAnimation(file)
	if err != nil {
		t.Fatal(err)
	}
	var lasts time.Duration
	for _, f := range read.frames {
		lasts += f.duration
	}
	if len(file) > mostFilm || len(read.frames) != filmLength || lasts != pictureTime(filmLength) {
		t.Errorf("%d pictures in %v, %d bytes, expected %d in %v, at most %d bytes", len(read.frames), lasts,
			len(file), filmLength, pictureTime(filmLength), mostFilm)
	}
	for i := 0; i+1 < len(read.frames); i += 30 {
		picture, err := read.picture(i)
		if err != nil {
			t.Fatal(err)
		}
		if picture.Bounds().Size() != filmSize {
			t.Errorf("picture %d has the size %v, expected %v", i, picture.Bounds().Size(), filmSize)
		}
		if bytes.Equal(read.frames[i].chunks, read.frames[i+1].chunks) {
			t.Errorf("pictures %d and %d are equal", i, i+1)
		}
	}
}

// actor is a person of the film with all encoded frames, one for each tile and half of the pictures.
type actor struct {
	name   string
	codec  codec.FourCC
	boxes  []volumetric.BoundingBox
	frames [][][]byte

	publisher *client.Publisher
	next      uint32
}

// join lets the actor publish in room "demo".
func (a *actor) join(t *testing.T, s *server.Server) {
	t.Helper()
	body := volumetric.Publication{
		Name: "body", Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives, FrameRate: filmRate,
		Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
		// Frames are published as slowly as pictures are drawn.
		Qualities: []volumetric.QualityLevel{{Bitrate: 1e6}},
	}
	for _, box := range a.boxes {
		body.Tiles = append(body.Tiles, volumetric.Tile{Box: box})
	}
	session, err := client.Join(t.Context(), client.Config{URL: s.URL(), Room: "demo", Identity: a.name,
		Publications: []volumetric.Publication{body}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	a.publisher = session.Publisher("body")
}

// rehearse publishes the first frame repeatedly until the context ends.
func (a *actor) rehearse(ctx context.Context, t *testing.T) {
	camera := time.NewTicker(200 * time.Millisecond)
	defer camera.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-camera.C:
			for tile := range a.boxes {
				_, _ = a.write(tile, 0)
			}
			a.next++
		}
	}
}

func (a *actor) write(tile, frame int) (taken bool, err error) {
	return a.publisher.WriteFrame(tile, 0, client.OutgoingFrame{Number: a.next, Capture: time.Now(), Codec: a.codec,
		Data: a.frames[frame][tile]})
}

// play publishes a frame of all actors, and returns its numbers as the script takes them: from the first attempt.
func play(t *testing.T, cast []*actor, frame int, first map[string]uint32) string {
	t.Helper()
	type shown struct {
		First uint32 `json:"first"`
		Last  uint32 `json:"last"`
		Tiles int    `json:"tiles"`
	}
	numbers := make(map[string]shown)
	for _, a := range cast {
		for tile := range a.boxes {
			for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
				taken, err := a.write(tile, frame)
				if taken {
					break
				}
				if time.Since(began) > patience {
					t.Fatalf("no receiver takes frame %d of %s: %v", a.next, a.name, err)
				}
			}
		}
		numbers[a.name] = shown{first[a.name], a.next, len(a.boxes)}
		a.next++
	}
	line, err := json.Marshal(numbers)
	if err != nil {
		t.Fatal(err)
	}
	return string(line)
}

// stepped is a clock that is at the time for which a source waits: the source returns every frame, at once.
type stepped struct{ now time.Time }

// Now implements capture.Clock.
func (c *stepped) Now() time.Time { return c.now }

// Wait implements capture.Clock.
func (c *stepped) Wait(_ context.Context, until time.Time) error {
	if until.After(c.now) {
		c.now = until
	}
	return nil
}

// performed returns an actor with the frames of the synthetic figure that encode has encoded.
func performed(t *testing.T, name string, id codec.FourCC, o capture.Options,
	encode func(capture.Info, *capture.Frame) [][]byte) *actor {
	t.Helper()
	o.FPS = filmRate
	source, err := capture.OpenOn(&stepped{time.Now()}, "synthetic", o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = source.Close() }()
	a := &actor{name: name, codec: id}
	var frame capture.Frame
	for range (filmLength + 1) / 2 {
		if err := source.Read(t.Context(), &frame); err != nil {
			t.Fatal(err)
		}
		a.frames = append(a.frames, encode(source.Info(), &frame))
	}
	for range a.frames[0] {
		a.boxes = append(a.boxes, source.Info().Box)
	}
	return a
}

// looks returns the seed of the figure that volpeer publishes under a name.
func looks(name string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return int(h.Sum32() >> 1)
}

// pointsActor is the synthetic figure as points of Draco in one tile.
func pointsActor(t *testing.T, name string) *actor {
	t.Helper()
	o := capture.DefaultOptions()
	o.Seed, o.Points = looks(name), 45000
	draco := codecOf(t, "draco")
	encoder := draco.NewEncoder()
	return performed(t, name, draco.FourCC(), o, func(info capture.Info, frame *capture.Frame) [][]byte {
		data, err := encoder.Encode(nil, &frame.Cloud, codec.Params{PositionBits: 11, Speed: 7, Box: info.Box})
		if err != nil {
			t.Fatal(err)
		}
		return [][]byte{data}
	})
}

// rastersActor is the synthetic figure as rasters of four virtual depth cameras, a tile each.
func rastersActor(t *testing.T, name string) *actor {
	t.Helper()
	o := capture.DefaultOptions()
	o.Seed, o.Rasters, o.VirtualCameras = looks(name), true, filepath.Join(root, "docs", "cameras", "ring.yaml")
	encoder := rgbd.Codec.NewEncoder().(codec.RasterEncoder)
	return performed(t, name, rgbd.Codec.FourCC(), o, func(info capture.Info, frame *capture.Frame) [][]byte {
		var tiles [][]byte
		for i := range info.Cameras {
			camera := &info.Cameras[i]
			data, points, err := encoder.EncodeRaster(nil, camera, &frame.Rasters[i], codec.RasterParams{
				Rect: image.Rect(0, 0, camera.Width, camera.Height), Step: max(0.00065, camera.Unit), ColorQuality: 85,
				CameraID: uint32(i)})
			if err != nil || points == 0 {
				t.Fatalf("camera %s: %d points, %v", camera.Name, points, err)
			}
			tiles = append(tiles, data)
		}
		return tiles
	})
}
