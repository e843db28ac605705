package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/summary"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/test/testbed"
)

// onstage is a server on this host with one publisher.
type onstage struct {
	t   *testing.T
	url string
}

// perform publishes according to a line of flags, until the test ends.
func perform(t *testing.T, line string) *onstage {
	t.Helper()
	conference, err := testbed.NewConference(testbed.ConferenceConfig(), nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	s := &onstage{t, conference.Server.URL()}
	ctx, stop := context.WithCancel(context.Background())
	var publishing sync.WaitGroup
	publishing.Go(func() {
		if err := s.command(ctx, "publish --identity alice "+line, io.Discard); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		stop()
		publishing.Wait()
		conference.Close()
		goleak.VerifyNone(t)
	})
	return s
}

// command runs volpeer.
func (s *onstage) command(ctx context.Context, line string, out io.Writer) error {
	root := newRoot()
	root.SetArgs(append(strings.Fields(line), "--server", s.url, "--room", "room"))
	root.SetOut(out)
	root.SetErr(io.Discard)
	return root.ExecuteContext(ctx)
}

// longestWatch is the time limit for watching.
const longestWatch = 60 * time.Second

// watch watches until enough returns true for a shown frame. It is called once per frame.
func (s *onstage) watch(line string, enough func(*pointcloud.Cloud) bool) summary.Summary {
	s.t.Helper()
	dir := s.t.TempDir()
	ctx, stop := context.WithTimeout(s.t.Context(), longestWatch)
	defer stop()
	var out bytes.Buffer
	ended := make(chan error, 1)
	go func() { ended <- s.command(ctx, "watch --json --save "+dir+" "+line, &out) }()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	looked := make(map[string]bool)
	for satisfied := false; !satisfied; {
		select {
		case <-ticker.C:
		case err := <-ended:
			s.t.Errorf("%s: not enough was seen of %d frames, error %v", line, len(looked), err)
			return summary.Summary{}
		}
		names, err := filepath.Glob(filepath.Join(dir, "*.ply"))
		if err != nil {
			s.t.Error(err)
		}
		for _, name := range names {
			if satisfied || looked[name] {
				continue
			}
			looked[name] = true
			satisfied = enough(s.load(name))
		}
	}
	stop()
	if err := <-ended; err != nil {
		s.t.Error(err)
	}
	var sum summary.Summary
	if err := json.Unmarshal(out.Bytes(), &sum); err != nil {
		s.t.Error(err)
	}
	return sum
}

// load reads a frame.
func (s *onstage) load(name string) *pointcloud.Cloud {
	var cloud pointcloud.Cloud
	data, err := os.ReadFile(name)
	if err == nil {
		err = pointcloud.ReadPLY(bytes.NewReader(data), &cloud)
	}
	if err != nil {
		s.t.Error(err)
	}
	return &cloud
}

// still returns a folder with one frame of the given number of points. Colours encode the point.
func still(t *testing.T, points int) string {
	t.Helper()
	var cloud pointcloud.Cloud
	random := rand.New(rand.NewPCG(1, 2))
	for i := range points {
		cloud.Append([3]float32{random.Float32(), 2 * random.Float32(), random.Float32()},
			[3]uint8{uint8(i), uint8(i >> 8), 7})
	}
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "frame_0.ply"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(pointcloud.WritePLY(file, &cloud, pointcloud.BinaryLittleEndian), file.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// seen returns the numbers of the points in a frame, which must not repeat.
func seen(t *testing.T, c *pointcloud.Cloud) map[int]bool {
	t.Helper()
	set := make(map[int]bool)
	for _, color := range c.Colors {
		number := int(color[0]) | int(color[1])<<8
		if set[number] || color[2] != 7 {
			t.Fatalf("point %d is there twice, or is no point at all: %v", number, color)
		}
		set[number] = true
	}
	return set
}

// TestDescriptionsMerge checks that a receiver of some descriptions sees their points as one cloud, and that all
// descriptions together are the capture. A frame is shown on time, possibly without a late description, so receivers
// watch until a frame has all requested descriptions.
func TestDescriptionsMerge(t *testing.T) {
	const points = 1000
	s := perform(t, "--source ply:"+still(t, points)+" --fps 10 --tiles 2 --mode descriptions --split 60,25,15:11 "+
		"--codec raw")
	// The share of each of the two tiles is rounded at both ends.
	const tolerance = 4
	whole := make(map[string]map[int]bool)
	for quality, share := range map[string]float64{"auto": 1, "0,2": 0.75, "part2": 0.25} {
		s.watch("--identity bob --quality "+quality, func(frame *pointcloud.Cloud) bool {
			whole[quality] = seen(t, frame)
			return math.Abs(float64(frame.Len())-share*points) <= tolerance
		})
	}
	if n := len(whole["auto"]); n != points {
		t.Errorf("all descriptions have %d points together, want %d", n, points)
	}
	for number := range whole["part2"] {
		if whole["0,2"][number] {
			t.Fatalf("point %d is in the second description, and in the others", number)
		}
	}
	if n := len(whole["part2"]) + len(whole["0,2"]); n != points {
		t.Errorf("the second description and the others have %d points together, want %d", n, points)
	}
}

// TestEmptyTilesAreShown checks that frames with empty tiles are complete: of the 15 sets of four cameras, sets with
// opposite cameras have no points.
func TestEmptyTilesAreShown(t *testing.T) {
	const points = 600
	s := perform(t, fmt.Sprintf("--source synthetic --fps 10 --points %d --tiling cameras --qualities high --codec raw",
		points))
	complete := 0
	sum := s.watch("--identity bob", func(frame *pointcloud.Cloud) bool {
		if frame.Len() == points {
			complete++
		}
		return complete == 5
	})
	if len(sum.Publications) != 15 {
		t.Fatalf("got %d tiles, want 15", len(sum.Publications))
	}
	for tile, f := range sum.Publications {
		if f.Decoded == 0 {
			t.Errorf("tile %d: no frame decoded", tile)
		}
	}
}

// TestCutting checks the errors of the flags that cut an object into tiles and qualities.
func TestCutting(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"--tiling mood", `unknown tiling "mood", expected direction, cameras`},
		{"--tiling cameras --tiles 4", "4 tiles by cameras, expected 1, 3, 7, 15"},
		{"--tiling labels --source ply:faces", "labels are required with every source except synthetic"},
		{"--tiling labels --label-tiles face", `got "face"`},
		{"--tiling labels --label-tiles face=70000", `got "face=70000"`},
		{"--tiling labels --label-tiles =1", `got "=1"`},
		{"--label-tiles face=1", `with --tiling labels, got "direction"`},
		{"--split 60,25,15", "with --mode descriptions"},
		{"--mode descriptions --split 60,25", "the shares add up to 85"},
		{"--mode descriptions --split 60,x", `got "60,x"`},
		{"--mode descriptions --split 110,-10", "size of \"part1\" is \"110%\""},
		{"--mode descriptions --split 60,40:99", "bits of \"part1\" is \"99\""},
		{"--mode descriptions --split 60,40 --qualities high", "without --qualities"},
		{"--sampling best", `got "best" in mode alternatives`},
		{"--sampling importance --mode descriptions", `got "importance" in mode descriptions`},
		{"--label-weights 1=2", "and --sampling importance"},
		{"--sampling importance --label-weights face=2", `got "face=2"`},
		{"--sampling importance --label-weights 1=", `got "1="`},
		{"--sampling importance --label-weights 1=0", "factor of label 1 is 0"},
	} {
		if err := (&onstage{t, "ws://127.0.0.1:1"}).command(t.Context(), "publish --identity i "+c.line,
			io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", c.line, err, c.want)
		}
	}
}
