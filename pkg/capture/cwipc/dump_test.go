package cwipc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/capture/sequence"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// point is a point of a dump, in its order.
type point struct {
	X, Y, Z          float32
	Red, Green, Blue uint8
	Tile             uint8
}

// dump returns the bytes of a dump.
func dump(t testing.TB, milliseconds uint64, cell float32, points ...point) []byte {
	t.Helper()
	out := bytes.NewBufferString(magic)
	size := uint64(pointBytes * len(points))
	for _, value := range []any{uint32(version), milliseconds, cell, uint32(0), size, points} {
		if err := binary.Write(out, binary.LittleEndian, value); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

func TestRead(t *testing.T) {
	// Written by hand after api.h: a point at 1, 2, -3 m, colours 10, 20, 30, of cameras 0 and 2.
	data := []byte("cpcd\x08\x02\x21\x20\x01\x02\x00\x00\x00\x00\x00\x00\x0a\xd7\x23\x3c\x00\x00\x00\x00" +
		"\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x3f\x00\x00\x00\x40\x00\x00\x40\xc0\x0a\x14\x1e\x05")
	var cloud pointcloud.Cloud
	for range 2 { // the second time into a used cloud
		head, err := Read(bytes.NewReader(data), &cloud)
		want := Header{Milliseconds: 513, CellSize: float64(float32(0.01)), Points: 1}
		if err != nil || head != want {
			t.Fatalf("got %+v, %v, expected %+v", head, err, want)
		}
		if !slices.Equal(cloud.Positions, [][3]float32{{1, 2, -3}}) ||
			!slices.Equal(cloud.Colors, [][3]uint8{{10, 20, 30}}) ||
			!slices.Equal(cloud.Labels, []uint16{5}) || !slices.Equal(cloud.Sources, []uint16{5}) {
			t.Errorf("got %+v", cloud)
		}
	}
	if built := dump(t, 513, 0.01, point{1, 2, -3, 10, 20, 30, 5}); !bytes.Equal(built, data) {
		t.Errorf("the tests' dump has % x, expected % x", built, data)
	}
}

// TestReadManyPoints reads more points than fit into one chunk, of which some are not finite.
func TestReadManyPoints(t *testing.T) {
	points := make([]point, 2*chunkPoints+7)
	for i := range points {
		points[i].X = float32(i)
	}
	points[chunkPoints].Y, points[chunkPoints+1].Z = float32(math.NaN()), float32(math.Inf(-1))
	var cloud pointcloud.Cloud
	head, err := Read(bytes.NewReader(dump(t, 0, 0, points...)), &cloud)
	if err != nil || head.Points != len(points) || cloud.Len() != len(points)-2 ||
		cloud.Positions[chunkPoints][0] != chunkPoints+2 || cloud.Positions[cloud.Len()-1][0] != 2*chunkPoints+6 {
		t.Errorf("%d of %d points, error %v", cloud.Len(), head.Points, err)
	}
}

func TestMalformed(t *testing.T) {
	whole := dump(t, 0, 0, point{}, point{})
	changed := func(at int, value byte) []byte {
		data := slices.Clone(whole)
		data[at] = value
		return data
	}
	for name, test := range map[string]struct {
		data []byte
		says string
	}{
		"nothing":       {nil, "0 bytes, expected a header of 32"},
		"half a header": {whole[:20], "20 bytes, expected a header of 32"},
		"PLY":           {[]byte("ply\nformat binary_little_endian 1.0\n"), `begins with "ply\n", expected "cpcd"`},
		"version":       {changed(4, 9), "version is 0x20210209, expected 0x20210208"},
		"cell":          {changed(19, 0xff), "size of a cell"},
		"size":          {changed(24, 33), "33 bytes, expected a multiple of 16"},
		"large":         {changed(31, 1), "expected a multiple of 16 up to 67108864 points"},
		"cut":           {whole[:headerBytes+pointBytes+3], "ends after 1 of 2 points"},
		"announced":     {changed(26, 0xff), "ends after 2 of 1044482 points"},
	} {
		cloud := pointcloud.Cloud{Positions: [][3]float32{{}}, Colors: [][3]uint8{{}}}
		if _, err := Read(bytes.NewReader(test.data), &cloud); !errors.Is(err, ErrDump) ||
			!strings.Contains(err.Error(), test.says) || cloud.Len() != 0 {
			t.Errorf("%s: %d points, error %v, expected %q", name, cloud.Len(), err, test.says)
		}
	}
	broken := errors.New("broken")
	if _, err := Read(io.MultiReader(bytes.NewReader(whole[:40]), failing{broken}), new(pointcloud.Cloud)); !errors.Is(
		err, broken) || errors.Is(err, ErrDump) {
		t.Errorf("error of the source: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// record writes dumps into a folder.
func record(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRecording(t *testing.T) {
	const begin = 1_700_000_000_000
	dir := record(t, map[string][]byte{
		"pointcloud-9.cwipcdump":  dump(t, begin, 0.005, point{X: 9}),
		"pointcloud-10.CWIPCDUMP": dump(t, begin+67, 0.005, point{X: 10}),
		"pointcloud-11.cwipcdump": dump(t, begin+133, 0.005, point{X: 11}),
		"tileconfig.json":         []byte("{}"),
	})
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	times, ok := r.Times()
	if r.Len() != 3 || !ok || r.FrameRate() != 15 || math.Abs(r.CellSize()-0.005) > 1e-9 ||
		!slices.Equal(times, []time.Duration{0, 67 * time.Millisecond, 133 * time.Millisecond}) {
		t.Errorf("%d frames at %v, %v, rate %g, cell %g", r.Len(), times, ok, r.FrameRate(), r.CellSize())
	}
	var cloud pointcloud.Cloud
	if err := r.Load(1, &cloud); err != nil || cloud.Positions[0][0] != 10 {
		t.Errorf("second frame: %v, %v", cloud, err)
	}
	single, err := Open(filepath.Join(dir, "pointcloud-9.cwipcdump"))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := single.Times(); ok || single.Len() != 1 || single.FrameRate() != 0 {
		t.Errorf("one file: %d frames, times %v, rate %g", single.Len(), ok, single.FrameRate())
	}
}

func TestUnusableTimes(t *testing.T) {
	for name, times := range map[string][]uint64{
		"equal":      {7, 7, 7},
		"descending": {100, 200, 150},
		"before":     {100, 50},
		"gap":        {0, 10_001},
		"overflow":   {0, math.MaxUint64},
	} {
		var r Recording
		for _, at := range times {
			r.files, r.heads = append(r.files, ""), append(r.heads, Header{Milliseconds: at})
		}
		if got, ok := r.Times(); ok || r.FrameRate() != 0 {
			t.Errorf("%s: %v are accepted, with rate %g", name, got, r.FrameRate())
		}
	}
}

func TestOpenErrors(t *testing.T) {
	dir := record(t, map[string][]byte{"a.cwipcdump": dump(t, 0, 0), "b.cwipcdump": []byte("cpcd")})
	empty := t.TempDir()
	for path, test := range map[string]struct {
		err  error
		says string
	}{
		dir:                               {ErrDump, "b.cwipcdump"},
		empty:                             {sequence.ErrNoFiles, "*.cwipcdump"},
		filepath.Join(empty, "missing"):   {fs.ErrNotExist, "expected a file *.cwipcdump or a folder"},
		filepath.Join(dir, "b.cwipcdump"): {ErrDump, "4 bytes, expected a header of 32"},
	} {
		if _, err := Open(path); !errors.Is(err, test.err) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v, expected %v that says %q", path, err, test.err, test.says)
		}
	}
	r, err := Open(filepath.Join(dir, "a.cwipcdump"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "a.cwipcdump")); err != nil {
		t.Fatal(err)
	}
	if err := r.Load(0, new(pointcloud.Cloud)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removed file: %v", err)
	}
}

// FuzzRead reads arbitrary bytes: an error, or a cloud of at most the announced points, all finite.
func FuzzRead(f *testing.F) {
	f.Add(dump(f, 1, 0.01, point{1, 2, 3, 4, 5, 6, 7}, point{X: float32(math.NaN())}))
	f.Add(dump(f, math.MaxUint64, 0))
	f.Add(dump(f, 0, -1, point{})[:40])
	f.Fuzz(func(t *testing.T, data []byte) {
		var cloud pointcloud.Cloud
		head, err := Read(bytes.NewReader(data), &cloud)
		if err != nil {
			if !errors.Is(err, ErrDump) || cloud.Len() != 0 {
				t.Errorf("%d points, error %v", cloud.Len(), err)
			}
			return
		}
		n := cloud.Len()
		if n > head.Points || len(data) < headerBytes+pointBytes*head.Points || len(cloud.Colors) != n ||
			len(cloud.Labels) != n || len(cloud.Sources) != n {
			t.Errorf("%d points of %d in %d bytes", n, head.Points, len(data))
		}
		for _, at := range cloud.Positions {
			for _, v := range at {
				if v-v != 0 {
					t.Errorf("point at %v", at)
				}
			}
		}
	})
}
