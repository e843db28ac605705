package capture

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// writeDump writes a dump of cwipc with a point for each tile.
func writeDump(t *testing.T, path string, milliseconds uint64, tiles ...uint8) {
	t.Helper()
	data := binary.LittleEndian.AppendUint32([]byte("cpcd"), 0x20210208)
	data = binary.LittleEndian.AppendUint64(data, milliseconds)
	data = binary.LittleEndian.AppendUint32(data, math.Float32bits(0.004))
	data = binary.LittleEndian.AppendUint32(data, 0)
	data = binary.LittleEndian.AppendUint64(data, uint64(16*len(tiles)))
	for _, tile := range tiles {
		for _, v := range []float32{float32(tile), 1, 2} {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		}
		data = append(data, 10, 20, 30, tile)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestOpenCWIPC plays dumps at their capture times, in a loop.
func TestOpenCWIPC(t *testing.T) {
	dir := t.TempDir()
	for i, at := range []uint64{1000, 1040, 1100} {
		writeDump(t, filepath.Join(dir, []string{"a", "b", "c"}[i]+".cwipcdump"), at, 1, 2, uint8(4+i))
	}
	clock := newHandClock()
	source, err := OpenOn(clock, "cwipc:"+dir, DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	info := source.Info()
	if info.FrameRate != 20 || info.Points != 3 || info.Box.Max[0] != 6 || len(info.Cameras) != 0 ||
		!strings.Contains(info.Description, "3 cwipc frames from "+dir+", a point for 4 mm") {
		t.Errorf("got %+v", info)
	}
	var frame Frame
	var times []time.Duration
	var first time.Time
	for i := range 4 {
		if err := source.Read(context.Background(), &frame); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = frame.Capture
		}
		times = append(times, frame.Capture.Sub(first))
		labels := slices.Clone(frame.Cloud.Labels)
		slices.Sort(labels)
		if want := []uint16{1, 2, uint16(4 + i%3)}; !slices.Equal(labels, want) {
			t.Errorf("frame %d has the labels %v, expected %v", i, labels, want)
		}
	}
	ms := time.Millisecond
	if want := []time.Duration{0, 40 * ms, 100 * ms, 150 * ms}; !slices.Equal(times, want) {
		t.Errorf("frames at %v, expected %v", times, want)
	}
}
