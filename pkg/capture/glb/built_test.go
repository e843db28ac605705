package glb

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"testing"
)

// builder builds a file. Its document is plain JSON, so that the parsing is tested independently of
// the reader's library.
type builder struct {
	doc  map[string]any
	data []byte
}

func newBuilder() *builder {
	return &builder{doc: map[string]any{"asset": map[string]any{"version": "2.0"}}}
}

// add adds an object to a list of the document and returns its index.
func (b *builder) add(list string, object map[string]any) int {
	objects, _ := b.doc[list].([]any)
	b.doc[list] = append(objects, object)
	return len(objects)
}

// view adds bytes.
func (b *builder) view(data []byte) int {
	for len(b.data)%4 != 0 {
		b.data = append(b.data, 0)
	}
	index := b.add("bufferViews", map[string]any{"buffer": 0, "byteOffset": len(b.data), "byteLength": len(data)})
	b.data = append(b.data, data...)
	return index
}

// These are the types of components.
const (
	typeUint8   = 5121
	typeUint16  = 5123
	typeFloat32 = 5126
)

// numbers adds an accessor.
func (b *builder) numbers(shape string, component, count int, values any) int {
	var data bytes.Buffer
	if err := binary.Write(&data, binary.LittleEndian, values); err != nil {
		panic("test data that cannot be written: " + err.Error())
	}
	return b.add(
		"accessors",
		map[string]any{"bufferView": b.view(data.Bytes()), "componentType": component, "count": count, "type": shape},
	)
}

func (b *builder) floats(shape string, count int, values ...float32) int {
	return b.numbers(shape, typeFloat32, count, values)
}

// animate adds a channel to the one animation.
func (b *builder) animate(node int, path, interpolation string, times []float32, shape string, values ...float32) {
	width := map[string]int{"SCALAR": 1, "VEC3": 3, "VEC4": 4}[shape]
	sampler := map[string]any{
		"input":         b.floats("SCALAR", len(times), times...),
		"output":        b.floats(shape, len(values)/width, values...),
		"interpolation": interpolation,
	}
	if b.doc["animations"] == nil {
		b.add("animations", map[string]any{"samplers": []any{}, "channels": []any{}})
	}
	animation := b.doc["animations"].([]any)[0].(map[string]any)
	samplers := animation["samplers"].([]any)
	animation["samplers"] = append(samplers, sampler)
	animation["channels"] = append(
		animation["channels"].([]any),
		map[string]any{"sampler": len(samplers), "target": map[string]any{"node": node, "path": path}},
	)
}

// square adds a mesh with a square of 1 m and its corner at the origin. It returns the primitive
// for further attributes.
func (b *builder) square() (mesh int, primitive map[string]any) {
	primitive = map[string]any{
		"attributes": map[string]any{"POSITION": b.floats("VEC3", 4, 0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0)},
		"indices":    b.numbers("SCALAR", typeUint8, 6, []uint8{0, 1, 2, 0, 2, 3}),
	}
	return b.add("meshes", map[string]any{"primitives": []any{primitive}}), primitive
}

// attribute adds an attribute to a primitive.
func attribute(primitive map[string]any, name string, accessor int) {
	primitive["attributes"].(map[string]any)[name] = accessor
}

// material adds a material to a primitive.
func (b *builder) material(primitive, material map[string]any) {
	primitive["material"] = b.add("materials", material)
}

// texture adds a picture of 2 × 2 pixels: red, green, blue and white, the last one transparent.
func (b *builder) texture(sampler map[string]any) int {
	picture := image.NewNRGBA(image.Rect(0, 0, 2, 2))
	for i, c := range []color.NRGBA{{R: 255, A: 255}, {G: 255, A: 255}, {B: 255, A: 255}, {R: 255, G: 255, B: 255}} {
		picture.SetNRGBA(i%2, i/2, c)
	}
	var data bytes.Buffer
	if err := png.Encode(&data, picture); err != nil {
		panic("a picture cannot be encoded as PNG: " + err.Error())
	}
	source := b.add("images", map[string]any{"bufferView": b.view(data.Bytes()), "mimeType": "image/png"})
	texture := map[string]any{"source": source}
	if sampler != nil {
		texture["sampler"] = b.add("samplers", sampler)
	}
	return b.add("textures", texture)
}

// file assembles the file.
func (b *builder) file(t testing.TB) []byte {
	t.Helper()
	if len(b.data) > 0 {
		b.doc["buffers"] = []any{map[string]any{"byteLength": len(b.data)}}
	}
	text, err := json.Marshal(b.doc)
	if err != nil {
		t.Fatal(err)
	}
	for len(text)%4 != 0 {
		text = append(text, ' ')
	}
	data := b.data
	for len(data)%4 != 0 {
		data = append(data, 0)
	}
	out := binary.LittleEndian.AppendUint32(nil, magic)
	out = binary.LittleEndian.AppendUint32(out, 2)
	out = binary.LittleEndian.AppendUint32(out, uint32(headerSize+2*chunkSize+len(text)+len(data)))
	for _, part := range []struct {
		kind uint32
		data []byte
	}{{chunkJSON, text}, {chunkBIN, data}} {
		out = binary.LittleEndian.AppendUint32(out, uint32(len(part.data)))
		out = binary.LittleEndian.AppendUint32(out, part.kind)
		out = append(out, part.data...)
	}
	return out
}
