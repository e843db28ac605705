//go:build cgo

// Package vectors makes the test vectors of package codectest. The tests of all codecs and of the
// web clients read these vectors. After a change of the frames below, go test
// ./pkg/codec/codectest/vectors -update writes the vectors again.
package vectors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/codectest"
	_ "github.com/volsfu/volsfu/pkg/codec/cwi1" // registers itself
	"github.com/volsfu/volsfu/pkg/codec/cwi1/cwi1test"
	"github.com/volsfu/volsfu/pkg/codec/draco/yardstick"
	_ "github.com/volsfu/volsfu/pkg/codec/dracojpeg" // registers itself and draco
	"github.com/volsfu/volsfu/pkg/codec/parts"
	_ "github.com/volsfu/volsfu/pkg/codec/zstd" // registers itself
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

var update = flag.Bool("update", false, "write the test vectors")

var testdata = filepath.Join("..", "testdata")

// TestHostile expects that the file contains the frames made here.
func TestHostile(t *testing.T) {
	want := hostile(t)
	if *update {
		write(t, "hostile.json", want)
		return
	}
	got := codectest.Hostile()
	// The compressed data of encoders may change between versions; names and heads do not.
	const head = 24
	same := func(a, b codectest.Frame) bool {
		return a.Codec == b.Codec && a.Name == b.Name &&
			bytes.Equal(a.Data[:min(head, len(a.Data))], b.Data[:min(head, len(b.Data))])
	}
	if !slices.EqualFunc(got, want, same) {
		t.Error("the file of hostile frames has others than are made here; write it with -update")
	}
}

// TestHostileCosts decodes all hostile frames in a program with every codec, so that the codecs of
// inner frames are found.
func TestHostileCosts(t *testing.T) {
	for _, name := range []string{"raw", "cwi0", "cwi1", "zstd", "draco", "draco-mesh", "draco+jpeg", "labels", "parts"} {
		c, err := codec.ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) { codectest.TestHostile(t, c) })
	}
}

// TestValid expects that every valid frame decodes to the points described in the file.
func TestValid(t *testing.T) {
	if *update {
		write(t, "valid.json", valid(t))
		return
	}
	frames := codectest.Valid()
	if len(frames) == 0 {
		t.Fatal("there are no valid frames")
	}
	for _, frame := range frames {
		cloud := decoded(t, frame)
		if cloud.Len() != frame.Points || sum(cloud) != frame.Sum {
			t.Errorf("%s, %s: %d points with the sum %d, want %d with %d", frame.Codec, frame.Name, cloud.Len(),
				sum(cloud), frame.Points, frame.Sum)
		}
	}
}

func write(t *testing.T, name string, frames []codectest.Frame) {
	t.Helper()
	text, err := json.MarshalIndent(frames, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(testdata, name), append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

func decoded(t *testing.T, frame codectest.Frame) *pointcloud.Cloud {
	t.Helper()
	c, err := codec.ByFourCC(codec.FourCC([]byte(frame.Codec)))
	if err != nil {
		t.Fatal(err)
	}
	cloud := new(pointcloud.Cloud)
	if err := c.NewDecoder().Decode(cloud, frame.Data); err != nil {
		t.Fatalf("%s, %s: %v", frame.Codec, frame.Name, err)
	}
	return cloud
}

func sum(cloud *pointcloud.Cloud) uint32 {
	h := fnv.New32a()
	for _, p := range cloud.Positions {
		for _, v := range p {
			h.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
		}
	}
	return h.Sum32()
}

// encoded returns a frame of a codec by its name in parts.Find.
func encoded(t *testing.T, name string, cloud *pointcloud.Cloud, params codec.Params) []byte {
	t.Helper()
	c, err := parts.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	frame, err := c.NewEncoder().Encode(nil, cloud, params)
	if err != nil {
		t.Fatal(err)
	}
	return frame
}

// valid returns frames of all codecs and variants, of points distributed like those of a scene.
func valid(t *testing.T) (frames []codectest.Frame) {
	add := func(fourCC, name string, data []byte) {
		frame := codectest.Frame{Codec: fourCC, Name: name, Data: data}
		cloud := decoded(t, frame)
		frame.Points, frame.Sum = cloud.Len(), sum(cloud)
		frames = append(frames, frame)
	}
	surface, labelled := ball(240), ball(100)
	labelled.Labels = make([]uint16, labelled.Len())
	for i := range labelled.Labels {
		labelled.Labels[i] = uint16(i / 10)
	}
	params := func(bits, speed int) codec.Params {
		return codec.Params{PositionBits: bits, Speed: speed, Box: codectest.Box}
	}
	plain := params(11, 7)
	plain.NoColors = true
	sequential := params(11, 7)
	sequential.Sequential = true
	for _, fourCC := range []string{"raw1", "cwi0", "zstd", "drco", "drcj"} {
		c, err := codec.ByFourCC(codec.FourCC([]byte(fourCC)))
		if err != nil {
			t.Fatal(err)
		}
		for _, bits := range []int{7, 11, 20} {
			add(fourCC, fmt.Sprintf("%d bits", bits), encoded(t, c.Name(), surface, params(bits, 7)))
		}
		add(fourCC, "without colours", encoded(t, c.Name(), surface, plain))
	}
	for _, points := range []int{1, 240, 2000} {
		octree := cwi1test.Of(ball(points), 1.0/128)
		data, _ := octree.Encode()
		add("cwi1", fmt.Sprintf("%d points", points), data)
	}
	octree := cwi1test.Of(surface, 1.0/512)
	octree.Plain = true
	data, _ := octree.Encode()
	add("cwi1", "without colours", data)
	for _, speed := range []int{0, 5, 10} {
		add("drco", fmt.Sprintf("speed %d", speed), encoded(t, "draco", surface, params(11, speed)))
		add("zstd", fmt.Sprintf("speed %d", speed), encoded(t, "zstd", ball(600), params(11, speed)))
	}
	add("drco", "in their order", encoded(t, "draco", surface, sequential))
	// Enough points for Huffman codes, transmitted tables of codes, and matches.
	add("zstd", "2,000 points", encoded(t, "zstd", ball(2000), params(9, 0)))
	place := new(pointcloud.Cloud)
	for range 70_000 {
		place.Append([3]float32{0.1, 1, 0.2}, [3]uint8{1, 2, 3})
	}
	add("zstd", "70,000 points in one place", encoded(t, "zstd", place, params(11, 7)))
	add("labl", "labels beside draco", encoded(t, "labels:draco", labelled, params(11, 7)))
	add("labl", "labels beside zstd", encoded(t, "labels:zstd", labelled, params(11, 7)))
	add("labl", "no labels", encoded(t, "labels:raw", ball(50), params(11, 7)))
	add("part", "parts of draco", encoded(t, "parts:draco:2", ball(2000), plain))
	add("part", "parts of raw", encoded(t, "parts:raw:2", ball(2000), plain))
	faces := [][3]uint32{{0, 1, 2}, {1, 2, 3}, {2, 3, 4}}
	for _, way := range []codec.Params{{}, {Sequential: true}} {
		way.PositionBits, way.Speed, way.Box = 11, 5, codectest.Box
		data, err := yardstick.EncodeMesh(ball(5), faces, way)
		if err != nil {
			t.Fatal(err)
		}
		add("drcm", fmt.Sprintf("sequential %v", way.Sequential), data)
	}
	return frames
}

// ball returns points on a sphere whose colours follow from their positions.
func ball(points int) *pointcloud.Cloud {
	cloud := new(pointcloud.Cloud)
	for i := range points {
		y := 1 - 2*(float64(i)+0.5)/float64(points)
		around, r := 2.4*float64(i), math.Sqrt(1-y*y)
		p := [3]float32{float32(0.5 * r * math.Cos(around)), float32(1 + 0.5*y), float32(0.5 * r * math.Sin(around))}
		cloud.Append(p, [3]uint8{uint8(100 + 50*p[0]), uint8(100 + 50*p[1]), uint8(100 + 50*p[2])})
	}
	return cloud
}
