package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/recording"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// recorded writes a recording of a second: a body of two tiles at two qualities, and a pose. A tile of quality q has
// q+1 points. The high quality of tile 1 is missing in capture 3, and capture 5 is garbage.
func recorded(t *testing.T) string {
	t.Helper()
	start := time.Now().UTC()
	box := volumetric.BoundingBox{Min: [3]float32{-1, 0, -1}, Max: [3]float32{1, 2, 1}}
	data := recording.Append(nil, &recording.Head{Room: "lab", Segment: 1, Begun: start})
	data = recording.Append(data, &recording.Publication{At: start, ID: 4, Participant: "ada", Qualities: recording.All,
		Description: volumetric.Publication{
			Name: "body", Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives,
			Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
			Tiles: []volumetric.Tile{{Box: box}, {Box: box}}, Qualities: make([]volumetric.QualityLevel, 2),
		}})
	pose, err := signal.Encode(&signal.Pose{Participant: "ada", Publication: "body", Orientation: [4]float64{3: 1}})
	if err != nil {
		t.Fatal(err)
	}
	data = recording.Append(data, &recording.Message{At: start, Text: pose})
	encoder := codec.Raw.NewEncoder()
	for number := range uint32(10) {
		for tile := range 2 {
			for q := range 2 {
				var cloud pointcloud.Cloud
				for n := range q + 1 {
					cloud.Append([3]float32{float32(number), float32(tile), float32(n)}, [3]uint8{200, 10, 10})
				}
				frame, err := encoder.Encode(nil, &cloud, codec.Params{Box: box, PositionBits: 10})
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case number == 3 && tile == 1 && q == 1:
					continue
				case number == 5:
					frame = []byte("garbage")
				}
				at := start.Add(time.Duration(number)*100*time.Millisecond + time.Duration(tile)*time.Millisecond)
				data = recording.AppendFrame(data, &recording.Frame{At: at, Publication: 4, Number: 1<<32 - 2 + number,
					Tile: tile, Quality: volumetric.Quality(q), Prefixed: true, Codec: codec.Raw.FourCC(), Data: frame})
			}
		}
	}
	path := filepath.Join(t.TempDir(), recording.SegmentName(1))
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// run runs the command and returns its counts.
func run(t *testing.T, arguments ...string) (c Counts, err error) {
	t.Helper()
	var out bytes.Buffer
	command := Command()
	command.SilenceUsage, command.SilenceErrors = true, true
	command.SetArgs(append(arguments, "--json"))
	command.SetOut(&out)
	command.SetErr(io.Discard)
	if err := command.ExecuteContext(t.Context()); err != nil {
		return c, err
	}
	return c, json.Unmarshal(out.Bytes(), &c)
}

func TestPLY(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "frames")
	c, err := run(t, recorded(t), "--ply", dir)
	if err != nil {
		t.Fatal(err)
	}
	if c.Captures != 9 || c.Files != 9 || c.Frames != 35 || c.Undecodable != 4 || c.Damage.CutOff != 1 ||
		c.Pictures != 0 {
		t.Errorf("%+v", c)
	}
	for name, points := range map[string]int{
		"ada.body.4294967294.ply": 4, "ada.body.00000001.ply": 3, "ada.body.00000007.ply": 4,
	} {
		file, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		var cloud pointcloud.Cloud
		if err := pointcloud.ReadPLY(file, &cloud); err != nil || cloud.Len() != points {
			t.Errorf("%s has %d points, expected %d: %v", name, cloud.Len(), points, err)
		}
		_ = file.Close()
	}
}

func TestFilm(t *testing.T) {
	if _, err := exec.LookPath("ffmpeg"); err != nil {
		t.Skip("skipped: there is no ffmpeg (make deps)")
	}
	path := filepath.Join(t.TempDir(), "path.txt")
	if err := os.WriteFile(path, []byte("0 0,1,4\n1 1,1,4,10\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, view := range [][]string{nil, {"--camera-path", path}, {"--view", "0,1,3"}} {
		film := filepath.Join(t.TempDir(), "lab.mp4")
		c, err := run(t, append([]string{recorded(t), "--mp4", film, "--fps", "10"}, view...)...)
		if err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(film)
		if err != nil || c.Pictures != 10 || !bytes.Contains(content[:64], []byte("ftyp")) {
			t.Errorf("%v: %d pictures, %d bytes, %v, expected a film of 10 pictures", view, c.Pictures, len(content),
				err)
		}
		if _, err := run(t, recorded(t), "--mp4", film); err == nil || !errors.Is(err, os.ErrExist) {
			t.Errorf("a film over another one: %v", err)
		}
	}
}

func TestFilmWithoutFFmpeg(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := run(t, recorded(t), "--mp4", filepath.Join(t.TempDir(), "lab.mp4"))
	if err == nil || !strings.Contains(err.Error(), "--mp4 needs the program ffmpeg") {
		t.Errorf("got %v", err)
	}
}

func TestFlags(t *testing.T) {
	for says, arguments := range map[string][]string{
		"expected --ply":        {},
		"--fps":                 {"--mp4", "x.mp4", "--fps", "0"},
		"not both":              {"--mp4", "x.mp4", "--view", "0,0,0", "--camera-path", "x"},
		"expected X,Y,Z":        {"--mp4", "x.mp4", "--view", "0,0"},
		"--camera-path":         {"--mp4", "x.mp4", "--camera-path", "/nowhere"},
		"no such file or direc": {"--ply", t.TempDir()},
	} {
		if _, err := run(t, append([]string{"/nowhere"}, arguments...)...); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v, expected an error that says %q", arguments, err, says)
		}
	}
}
