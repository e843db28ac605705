package imagediff

import (
	"bytes"
	"context"
	"errors"
	"image"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/internal/peer/render"
	"github.com/volsfu/volsfu/lab/direct/stages"
	"github.com/volsfu/volsfu/lab/visual"
	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/capture/journal"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const points = 3000

func openSource(clock capture.Clock) (capture.Source, error) {
	return capture.OpenOn(clock, "synthetic", capture.Options{FPS: 10, Points: points})
}

func params(info capture.Info) codec.Params { return codec.Params{PositionBits: 11, Box: info.Box} }

// figure returns the frames of the source and its description. Making the figure is the longest step of these tests, so
// it is made once.
var figure = sync.OnceValues(func() (frames []capture.Frame, info capture.Info) {
	source, err := openSource(&instantClock{now: time.Unix(0, 0)})
	if err != nil {
		panic(err)
	}
	defer func() { _ = source.Close() }()
	for range 8 {
		var f capture.Frame
		if err := source.Read(context.Background(), &f); err != nil {
			panic(err)
		}
		frames = append(frames, f)
	}
	return frames, source.Info()
})

// shelf is a source with prepared frames.
type shelf struct{ next int64 }

// Info implements capture.Source.
func (s *shelf) Info() capture.Info {
	_, info := figure()
	return info
}

// Read implements capture.Source.
func (s *shelf) Read(_ context.Context, f *capture.Frame) error {
	frames, _ := figure()
	f.Number = s.next
	f.Cloud.CopyFrom(&frames[s.next].Cloud)
	s.next++
	return nil
}

// Close implements capture.Source.
func (s *shelf) Close() error { return nil }

// record returns the log's line of a captured frame of which the given number of points was received.
func record(t *testing.T, number int64, chosen int) stages.Record {
	t.Helper()
	frames, info := figure()
	var sample pointcloud.Cloud
	pointcloud.Stride(&frames[number].Cloud, &sample, chosen)
	data, err := codec.Raw.NewEncoder().Encode(nil, &sample, params(info))
	if err != nil {
		t.Fatal(err)
	}
	var r stages.Record
	r.SourceFrame, r.Points, r.ReceivedHash, r.Decoded, r.Outcome = number, chosen, stages.Hash(data), 1, stages.Intact
	return r
}

func config(records []stages.Record) Config {
	return Config{
		Open:     func(capture.Clock) (capture.Source, error) { return &shelf{}, nil },
		Received: func(info capture.Info) Received { return NewRemaker(records, codec.Raw, params(info)) },
		View:     func(info capture.Info, _ time.Duration) render.View { return render.Fit(info.Box, 1) },
		Every:    1, Width: 64, Height: 64,
	}
}

// TestCompare: frames with all their points have the best score, frames with a tenth of the points a lower one. A
// missing frame repeats the previous frame.
func TestCompare(t *testing.T) {
	lost := record(t, 4, points)
	lost.Outcome, lost.Decoded = stages.Lost, 0
	records := []stages.Record{record(t, 1, points), record(t, 2, points/10), lost, record(t, 5, points)}
	scores, err := Compare(t.Context(), config(records))
	if err != nil {
		t.Fatal(err)
	}
	want := [][2]int64{{1, 1}, {2, 2}, {3, 2}, {4, 2}, {5, 5}}
	if len(scores) != len(want) {
		t.Fatalf("got %d frames, want %d", len(scores), len(want))
	}
	for i, s := range scores {
		if s.Number != want[i][0] || s.Shown != want[i][1] || s.Repeats() != (want[i][0] != want[i][1]) {
			t.Errorf("frame %d was %d, want %v", s.Number, s.Shown, want[i])
		}
	}
	whole, tenth := scores[0], scores[1]
	if whole.SSIM < 0.9 || whole.PSNR < 20 || tenth.SSIM > whole.SSIM-0.05 || tenth.PSNR > whole.PSNR-3 {
		t.Errorf("all points: %+v, a tenth: %+v", whole, tenth)
	}
}

// TestEvery: with every second frame, frames that are not decoded repeat the frame before, whether it counts or not.
func TestEvery(t *testing.T) {
	c := config([]stages.Record{record(t, 0, points), record(t, 1, points), record(t, 3, points), record(t, 6, points)})
	c.Every, c.From, c.Until = 2, 200*time.Millisecond, 600*time.Millisecond
	scores, err := Compare(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	want := [][2]int64{{2, 1}, {4, 3}}
	if len(scores) != len(want) || [2]int64{scores[0].Number, scores[0].Shown} != want[0] ||
		[2]int64{scores[1].Number, scores[1].Shown} != want[1] {
		t.Errorf("got %+v, want %v", scores, want)
	}
}

// TestUntil: missing frames at the end count like missing frames before.
func TestUntil(t *testing.T) {
	c := config([]stages.Record{record(t, 0, points), record(t, 1, points)})
	c.Until = 500 * time.Millisecond
	scores, err := Compare(t.Context(), c)
	if err != nil || len(scores) != 5 {
		t.Fatalf("%d frames, %v; want the 5 frames of half a second", len(scores), err)
	}
	for i, shown := range []int64{0, 1, 1, 1, 1} {
		if scores[i].Number != int64(i) || scores[i].Shown != shown {
			t.Errorf("frame %d was %d, want %d", scores[i].Number, scores[i].Shown, shown)
		}
	}
}

// reel counts pictures.
type reel struct {
	fps      float64
	pictures int
}

// Write implements Film.
func (r *reel) Write(captured, shown *image.RGBA) error {
	if captured == shown || captured.Rect != image.Rect(0, 0, 64, 64) || shown.Rect != captured.Rect {
		return visual.ErrSize
	}
	r.pictures++
	return nil
}

func TestFilm(t *testing.T) {
	c, r := config([]stages.Record{record(t, 0, points), record(t, 2, points)}), &reel{}
	c.Every = 2
	c.Film = func(fps float64) (Film, error) {
		r.fps = fps
		return r, nil
	}
	if _, err := Compare(t.Context(), c); err != nil || r.fps != 5 || r.pictures != 2 {
		t.Errorf("%d pictures at %g per second, %v", r.pictures, r.fps, err)
	}
}

// TestSource: frames encoded again from the source equal the received frames.
func TestSource(t *testing.T) {
	c := config([]stages.Record{record(t, 2, points), record(t, 4, points/2)})
	c.Open = openSource
	if scores, err := Compare(t.Context(), c); err != nil || len(scores) != 3 {
		t.Errorf("%d frames, %v; want 3", len(scores), err)
	}
}

// TestOtherParameters: frames that were received with other parameters are an error.
func TestOtherParameters(t *testing.T) {
	wrong := record(t, 1, points)
	wrong.ReceivedHash++
	if _, err := Compare(t.Context(), config([]stages.Record{wrong})); !errors.Is(err, ErrOther) {
		t.Errorf("got %v", err)
	}
	if _, err := Compare(t.Context(), config(nil)); !errors.Is(err, ErrNothing) {
		t.Errorf("without frames: %v", err)
	}
}

// prepare writes a journal with the given number of captures at two qualities.
func prepare(t *testing.T, captures int) string {
	t.Helper()
	frames, info := figure()
	path := filepath.Join(t.TempDir(), "prepared.vljournal")
	head := journal.Head{Content: journal.Encoded, FrameRate: info.FrameRate, Box: info.Box,
		Publication: &volumetric.Publication{
			Name: "body", Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives,
			Codec:     volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
			FrameRate: info.FrameRate, Tiles: []volumetric.Tile{{Box: info.Box}},
			Qualities: []volumetric.QualityLevel{{Name: "low"}, {Name: "high"}},
		}}
	writer, err := journal.Create(path, head)
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	for number := range captures {
		for q, n := range []int{points / 10, points} {
			var sample pointcloud.Cloud
			pointcloud.Stride(&frames[number].Cloud, &sample, n)
			data, err := codec.Raw.NewEncoder().Encode(nil, &sample, params(info))
			if err != nil {
				t.Fatal(err)
			}
			tile := journal.Tile{Number: uint32(number), Capture: begun.Add(time.Duration(number)),
				Quality: volumetric.Quality(q), Codec: codec.Raw.FourCC(), Data: data}
			if err := writer.WriteTile(&tile); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPrepared: frames of a file that was played in a loop have the score of their quality.
func TestPrepared(t *testing.T) {
	path := prepare(t, 3)
	shown, err := ReadShown(strings.NewReader("{\"number\":0,\"quality\":1}\n{\"number\":2,\"quality\":0}\n" +
		"{\"number\":4,\"quality\":1}\n"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := OpenPrepared(path, shown)
	if err != nil {
		t.Fatal(err)
	}
	c := config(nil)
	c.Open = func(capture.Clock) (capture.Source, error) { return p.Loop(&shelf{}), nil }
	c.Received = func(capture.Info) Received { return p }
	scores, err := Compare(t.Context(), c)
	if err != nil || len(scores) != 5 {
		t.Fatalf("%d frames, %v", len(scores), err)
	}
	for i, want := range []int64{0, 0, 2, 2, 4} {
		if scores[i].Shown != want {
			t.Errorf("frame %d was %d, want %d", i, scores[i].Shown, want)
		}
	}
	if scores[0].PSNR < 20 || scores[2].PSNR > scores[0].PSNR-3 || math.Abs(scores[4].PSNR-scores[0].PSNR) > 3 {
		t.Errorf("all points %.1f and %.1f dB, a tenth %.1f dB", scores[0].PSNR, scores[4].PSNR, scores[2].PSNR)
	}
	if _, err := OpenPrepared(path, []ShownFrame{{Number: 1, Quality: 2}}); !errors.Is(err, ErrPrepared) {
		t.Errorf("a missing quality: %v", err)
	}
}

func TestReadShownErrors(t *testing.T) {
	for _, text := range []string{"x", "{\"number\":-1}", "{\"quality\":-1}", strings.Repeat(" ", maxShownLine+1)} {
		if _, err := ReadShown(strings.NewReader(text)); !errors.Is(err, ErrPrepared) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

func FuzzReadShown(f *testing.F) {
	f.Add([]byte("{\"number\":1,\"quality\":2}\n{\"number\":3}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := ReadShown(bytes.NewReader(text))
		if err != nil && !errors.Is(err, ErrPrepared) || len(list) > len(text) {
			t.Errorf("%d frames of %d bytes, %v", len(list), len(text), err)
		}
	})
}
