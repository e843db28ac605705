//go:build cgo && !portable

package draco

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/codectest"
	"github.com/volsfu/volsfu/pkg/codec/draco/yardstick"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// tube returns a mesh around the y axis, 1 m high: rings of vertices, with two triangles between
// each vertex and the next ring.
func tube(rings, around int) (vertices *pointcloud.Cloud, faces [][3]uint32) {
	vertices = new(pointcloud.Cloud)
	for ring := range rings {
		for i := range around {
			angle := 2 * math.Pi * float64(i) / float64(around)
			vertices.Append(
				[3]float32{
					float32(math.Cos(angle)) / 4,
					float32(ring) / float32(rings-1),
					float32(math.Sin(angle)) / 4,
				},
				[3]uint8{uint8(ring), uint8(i), 200},
			)
			if ring > 0 {
				here, next := uint32(ring*around+i), uint32(ring*around+(i+1)%around)
				below := uint32(around)
				faces = append(faces, [3]uint32{here, next, here - below}, [3]uint32{next, next - below, here - below})
			}
		}
	}
	return vertices, faces
}

// meshWays are the ways in which Draco codes meshes.
var meshWays = []codec.Params{{}, {NoColors: true}, {Sequential: true}, {Sequential: true, NoColors: true}}

func mustEncodeMesh(t testing.TB, rings, around int, params codec.Params) []byte {
	t.Helper()
	vertices, faces := tube(rings, around)
	frame, err := yardstick.EncodeMesh(vertices, faces, params)
	if err != nil {
		t.Fatal(err)
	}
	return frame
}

// TestMesh expects the vertices of a mesh within half a step of the grid, with their colours.
func TestMesh(t *testing.T) {
	c, err := codec.ByFourCC(codec.FourCC{'d', 'r', 'c', 'm'})
	if err != nil || c.Capabilities().Encodes {
		t.Fatalf("got %v, %v, want a codec that only decodes", c, err)
	}
	decoder := c.NewDecoder()
	vertices, _ := tube(40, 30)
	for _, way := range meshWays {
		for _, speed := range []int{0, 5, 10} {
			params := way
			params.PositionBits, params.Speed = 12, speed
			var cloud pointcloud.Cloud
			if err := decoder.Decode(&cloud, mustEncodeMesh(t, 40, 30, params)); err != nil {
				t.Fatalf("%+v: %v", params, err)
			}
			if cloud.Len() != vertices.Len() || len(cloud.Colors) != cloud.Len() {
				t.Fatalf(
					"%+v: %d vertices with %d colours, want %d",
					params,
					cloud.Len(),
					len(cloud.Colors),
					vertices.Len(),
				)
			}
			index := pointcloud.NewIndex(&cloud)
			for i, p := range vertices.Positions {
				nearest, distance := index.Nearest(p)
				want := codec.White
				if !params.NoColors {
					want = vertices.Colors[i]
				}
				// Half a step of 1 m / 4095 on each axis.
				if distance > 0.0003 || cloud.Colors[nearest] != want {
					t.Fatalf(
						"%+v: vertex %v %v comes back as %v %v",
						params,
						p,
						want,
						cloud.Positions[nearest],
						cloud.Colors[nearest],
					)
				}
			}
		}
	}
	if err := decoder.Decode(vertices, nil); err != nil || vertices.Len() != 0 {
		t.Errorf("no data gives %d points and %v, want none", vertices.Len(), err)
	}
}

func TestMeshesAreNotEncoded(t *testing.T) {
	before := []byte("before")
	after, err := mesh{}.NewEncoder().
		Encode(before, codectest.Cloud(1, 3), codec.Params{PositionBits: 11, Box: codectest.Box})
	if !errors.Is(err, codec.ErrParams) || !slices.Equal(after, before) {
		t.Errorf("got %q and %v, want dst unchanged and ErrParams", after, err)
	}
	if after, err = (mesh{}).NewEncoder().
		Encode(before, new(pointcloud.Cloud), codec.Params{}); err != nil ||
		!slices.Equal(after, before) {
		t.Errorf("no points give %q and %v, want dst unchanged", after, err)
	}
}

// faceCount is the offset of the number of faces in an edgebreaker frame, after its header, its
// traversal type and its number of vertices.
const faceCount = 14

func TestMalformedMesh(t *testing.T) {
	frame := mustEncodeMesh(t, 20, 20, codec.Params{PositionBits: 10})
	if n, size := binary.Uvarint(frame[faceCount:]); n != 2*19*20 || size != 2 {
		t.Fatalf("the frame has %d faces at byte %d, want 760: % x", n, faceCount, frame[:20])
	}
	spoil := func(at int, value ...byte) []byte {
		data := slices.Clone(frame)
		copy(data[at:], value)
		return data
	}
	cloudFrame, err := newEncoder().Encode(nil, surface(10), codec.Params{PositionBits: 10, Box: roundBox})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data []byte
		says string
	}{
		"too large":     {make([]byte, maxMeshBytes+1), "1048577 bytes, expected at most"},
		"no mesh":       {cloudFrame, "not a triangle mesh"},
		"older":         {spoil(6, 1), "not a triangle mesh"},
		"metadata":      {spoil(10, 0x80), "not a triangle mesh"},
		"other method":  {spoil(8, 2), "not a triangle mesh"},
		"many faces":    {slices.Insert(slices.Clone(frame), faceCount, 0xff, 0xff, 0xff, 0xff), "not a triangle mesh"},
		"many vertices": {slices.Insert(slices.Clone(frame), faceCount-2, 0xff, 0xff, 0xff), "not a triangle mesh"},
	} {
		cloud := surface(3)
		err := mesh{}.NewDecoder().Decode(cloud, c.data)
		if !errors.Is(err, codec.ErrMalformed) || !strings.Contains(fmt.Sprint(err), c.says) || cloud.Len() != 0 {
			t.Errorf("%s: got %d points and %v, want ErrMalformed that says %q", name, cloud.Len(), err, c.says)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	decoder := mesh{}.NewDecoder()
	for _, way := range meshWays {
		way.PositionBits = 10
		frame := mustEncodeMesh(t, 12, 12, way)
		for cut := 1; cut < len(frame); cut++ {
			if err := decoder.Decode(surface(1), frame[:cut]); !errors.Is(err, codec.ErrMalformed) {
				t.Fatalf("%+v: a frame of %d bytes cut to %d gives %v", way, len(frame), cut, err)
			}
		}
		for range 300 {
			spoilt := slices.Clone(frame)
			spoilt[random.IntN(len(spoilt))] ^= 1 << random.IntN(8)
			cloud := surface(1)
			if err := decoder.Decode(
				cloud,
				spoilt,
			); err != nil &&
				(!errors.Is(err, codec.ErrMalformed) || cloud.Len() != 0) {
				t.Fatalf("%d points and %v", cloud.Len(), err)
			}
		}
	}
}

// TestMeshTables decodes frames of one megabyte that announce the longest symbol tables that Draco
// permits for their size, of faces and of an attribute.
func TestMeshTables(t *testing.T) {
	begin := []byte("DRACO\x02\x02\x01\x00\x00\x00")
	faces := binary.AppendUvarint(binary.AppendUvarint(begin, 1), 3)
	for name, head := range map[string][]byte{
		"of faces": append(slices.Clone(faces), 0, 1, 18),
		// Indices 0 to 2 of one byte each; one decoder of one attribute, three compressed integers
		// in their order.
		"of an attribute": append(slices.Clone(faces), 1, 0, 1, 2, 1, 1, 0, 5, 3, 0, 0, 1, 0xfe, 1, 1, 18),
	} {
		t.Run(name, func(t *testing.T) {
			data := binary.AppendUvarint(head, 60<<20)
			// Runs of 64 symbols that do not occur.
			data = append(data, bytes.Repeat([]byte{0xff}, maxMeshBytes-len(data))...)
			var err error
			cost := codectest.Measure(func() { err = meshCoder{}.Decode(new(pointcloud.Cloud), data) })
			if !errors.Is(err, codec.ErrMalformed) || cost.Heap+cost.Resident > 64<<20 {
				t.Errorf("got %v with %+v, want ErrMalformed and at most 64 MiB", err, cost)
			}
		})
	}
}

func FuzzDecodeMesh(f *testing.F) {
	for _, way := range meshWays {
		for _, speed := range []int{0, 5, 10} {
			way.PositionBits, way.Speed = 9, speed
			f.Add(mustEncodeMesh(f, 3, 4, way))
		}
	}
	codectest.Seeds(f, mesh{}.FourCC())
	f.Fuzz(func(t *testing.T, data []byte) {
		var cloud pointcloud.Cloud
		if codectest.Decode(t, meshCoder{}, &cloud, data) != nil {
			return
		}
		if cloud.Len() != len(cloud.Colors) || cloud.Len() > 3*mostFaces(len(data)) {
			t.Fatalf("%d positions and %d colours from %d bytes", cloud.Len(), len(cloud.Colors), len(data))
		}
		for _, p := range cloud.Positions {
			if (p[0]-p[0])+(p[1]-p[1])+(p[2]-p[2]) != 0 {
				t.Fatalf("%v is not in space", p)
			}
		}
	})
}
