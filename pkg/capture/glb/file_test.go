package glb

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

func TestFileErrors(t *testing.T) {
	whole := func() (*builder, map[string]any) {
		b := newBuilder()
		mesh, primitive := b.square()
		b.add("nodes", map[string]any{"mesh": mesh})
		return b, primitive
	}
	tests := map[string]struct {
		change func(b *builder, primitive map[string]any)
		err    error
		says   string
	}{
		"extension": {func(b *builder, _ map[string]any) {
			b.doc["extensionsRequired"] = []string{"KHR_draco_mesh_compression"}
		}, ErrUnsupported, "KHR_draco"},
		"null node": {func(b *builder, _ map[string]any) { b.doc["nodes"] = []any{nil} }, ErrFile, "null"},
		"null channel": {func(b *builder, _ map[string]any) {
			b.add("animations", map[string]any{"channels": []any{nil}, "samplers": []any{}})
		}, ErrFile, "null"},
		"missing mesh": {
			func(b *builder, _ map[string]any) { b.add("nodes", map[string]any{"mesh": 7}) },
			ErrFile,
			"mesh 7",
		},
		"missing child": {
			func(b *builder, _ map[string]any) { b.add("nodes", map[string]any{"children": []int{9}}) },
			ErrFile,
			"node 9",
		},
		"two parents": {
			func(b *builder, _ map[string]any) { b.add("nodes", map[string]any{"children": []int{0, 0}}) },
			ErrFile,
			"two parents",
		},
		"its own parent": {
			func(b *builder, _ map[string]any) { b.add("nodes", map[string]any{"children": []int{1}}) },
			ErrFile,
			"own parents",
		},
		"huge scale": {
			func(b *builder, _ map[string]any) { b.add("nodes", map[string]any{"scale": []float64{1e9, 1, 1}}) },
			ErrFile,
			"1e+09",
		},
		"missing scene": {func(b *builder, _ map[string]any) { b.doc["scene"] = 3 }, ErrFile, "scene 3"},
		"outer buffer": {func(b *builder, _ map[string]any) {
			b.add("buffers", map[string]any{"uri": "a.bin", "byteLength": 4})
			b.data = nil
		}, ErrUnsupported, "outside"},
		"no positions": {
			func(_ *builder, p map[string]any) { p["attributes"] = map[string]any{} },
			ErrFile,
			"no positions",
		},
		"missing accessor":  {func(_ *builder, p map[string]any) { p["indices"] = 99 }, ErrFile, "accessor 99"},
		"negative accessor": {func(_ *builder, p map[string]any) { p["indices"] = -1 }, ErrFile, "accessor -1"},
		"vertex beyond": {func(b *builder, p map[string]any) {
			p["indices"] = b.numbers("SCALAR", typeUint16, 3, []uint16{0, 1, 4})
		},
			ErrFile, "vertex 4 of 4"},
		"long accessor": {func(b *builder, p map[string]any) {
			a := b.numbers("SCALAR", typeUint16, 3, []uint16{0, 1, 2})
			b.doc["accessors"].([]any)[a].(map[string]any)["count"] = 1 << 30
			p["indices"] = a
		}, ErrFile, "does not fit"},
		"sparse accessor": {func(b *builder, p map[string]any) {
			p["indices"] = b.add("accessors", map[string]any{"count": 3, "componentType": typeUint16, "type": "SCALAR"})
		}, ErrUnsupported, "sparse"},
		"view beyond the buffer": {func(b *builder, _ map[string]any) {
			b.doc["bufferViews"].([]any)[0].(map[string]any)["byteLength"] = 1 << 30
		}, ErrFile, "a view of"},
		"view before the buffer": {func(b *builder, _ map[string]any) {
			b.doc["bufferViews"].([]any)[0].(map[string]any)["byteOffset"] = -8
		}, ErrFile, "a view of"},
		"positions of integers": {func(b *builder, p map[string]any) {
			attribute(p, "POSITION", b.numbers("VEC3", typeUint16, 1, []uint16{0, 1, 4, 0}))
		},
			ErrFile, "component type"},
		"skin without joints": {func(b *builder, _ map[string]any) {
			b.add("skins", map[string]any{"joints": []int{0}})
			b.doc["nodes"].([]any)[0].(map[string]any)["skin"] = 0
		}, ErrFile, "no joints"},
		"texture without coordinates": {func(b *builder, p map[string]any) {
			b.material(
				p,
				map[string]any{
					"pbrMetallicRoughness": map[string]any{"baseColorTexture": map[string]any{"index": b.texture(nil)}},
				},
			)
		}, ErrFile, "no coordinates"},
		"times that go back": {func(b *builder, _ map[string]any) {
			b.animate(0, "translation", "LINEAR", []float32{0, 1, 0.5}, "VEC3", make([]float32, 9)...)
		}, ErrFile, "ascending"},
		"too few values": {func(b *builder, _ map[string]any) {
			b.animate(0, "translation", "CUBICSPLINE", []float32{0, 1}, "VEC3", make([]float32, 9)...)
		}, ErrFile, "9 values"},
		"no number": {func(b *builder, _ map[string]any) {
			b.animate(0, "translation", "LINEAR", []float32{0}, "VEC3", float32(math.NaN()), 0, 0)
		}, ErrFile, "NaN"},
		"no surface": {func(b *builder, p map[string]any) {
			attribute(p, "POSITION", b.floats("VEC3", 4, make([]float32, 12)...))
		}, ErrFile, "0 m²"},
		"image that is none": {func(b *builder, p map[string]any) {
			attribute(p, "TEXCOORD_0", b.floats("VEC2", 4, make([]float32, 8)...))
			b.material(
				p,
				map[string]any{
					"pbrMetallicRoughness": map[string]any{"baseColorTexture": map[string]any{"index": b.texture(nil)}},
				},
			)
			b.doc["images"].([]any)[0].(map[string]any)["bufferView"] = 0
		}, ErrFile, "image 0"},
	}
	for name, test := range tests {
		b, primitive := whole()
		test.change(b, primitive)
		if _, err := New(
			b.file(t),
			Config{Points: 10, FrameRate: 30},
		); !errors.Is(err, test.err) ||
			!strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v, expected an error around %q that says %q", name, err, test.err, test.says)
		}
	}
}

func TestContainerErrors(t *testing.T) {
	b := newBuilder()
	mesh, _ := b.square()
	b.add("nodes", map[string]any{"mesh": mesh})
	data := b.file(t)
	changed := func(at int, value uint32) []byte {
		other := append([]byte(nil), data...)
		binary.LittleEndian.PutUint32(other[at:], value)
		return other
	}
	for name, file := range map[string][]byte{
		"empty": nil, "text": []byte("solid cube of text"), "version 1": changed(4, 1),
		"long chunk": changed(12, 1<<31), "other chunk": changed(16, chunkBIN),
		"header alone": data[:12], "cut off": data[:len(data)-1], "no JSON": changed(20, 0),
	} {
		if _, err := New(file, Config{Points: 10, FrameRate: 30}); !errors.Is(err, ErrFile) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, c := range []Config{{FrameRate: 30}, {Points: MaxPoints + 1, FrameRate: 30}, {Points: 10},
		{Points: 10, FrameRate: math.NaN()}} {
		if _, err := New(data, c); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := Open(
		filepath.Join(t.TempDir(), "none.glb"),
		Config{Points: 1, FrameRate: 1},
	); !errors.Is(
		err,
		os.ErrNotExist,
	) {
		t.Errorf("no file: %v", err)
	}
}

// FuzzNew reads arbitrary bytes as a file: every frame of an accepted file can be loaded.
func FuzzNew(f *testing.F) {
	b := newBuilder()
	mesh, primitive := b.square()
	attribute(primitive, "JOINTS_0", b.numbers("VEC4", typeUint8, 4, make([]uint8, 16)))
	attribute(primitive, "WEIGHTS_0", b.floats("VEC4", 4, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0))
	attribute(primitive, "COLOR_0", b.numbers("VEC4", typeUint16, 4, make([]uint16, 16)))
	attribute(primitive, "TEXCOORD_0", b.floats("VEC2", 4, 0, 0, 1, 0, 1, 1, 0, 1))
	primitive["targets"] = []any{map[string]any{"POSITION": 0}}
	b.material(
		primitive,
		map[string]any{
			"pbrMetallicRoughness": map[string]any{"baseColorTexture": map[string]any{"index": b.texture(nil)}},
		},
	)
	b.add("nodes", map[string]any{"mesh": mesh, "skin": 0})
	b.add("nodes", map[string]any{"children": []int{0}})
	b.add("skins", map[string]any{"joints": []int{1}})
	b.animate(1, "rotation", "CUBICSPLINE", []float32{0, 1}, "VEC4", make([]float32, 24)...)
	b.animate(0, "weights", "LINEAR", []float32{0, 1}, "SCALAR", 0, 1)
	f.Add(b.file(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		figure, err := New(data, Config{Points: 20, FrameRate: 2})
		if err != nil {
			if !errors.Is(err, ErrFile) && !errors.Is(err, ErrUnsupported) {
				t.Errorf("error without kind: %v", err)
			}
			return
		}
		var cloud pointcloud.Cloud
		for i := range min(figure.Len(), 5) {
			if err := figure.Load(i, &cloud); err != nil && !errors.Is(err, ErrFile) {
				t.Errorf("error without kind: %v", err)
			}
		}
	})
}
