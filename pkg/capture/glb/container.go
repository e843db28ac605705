package glb

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/qmuntal/gltf"
)

// The container: a header of magic, version and length, then chunks of length, type and data, all
// little-endian (glTF 2.0 section 4.4).
const (
	magic      = 0x46546C67
	chunkJSON  = 0x4E4F534A
	chunkBIN   = 0x004E4942
	headerSize = 12
	chunkSize  = 8
)

// supported contains the extensions that a file may require: extensions that do not affect shape
// and base colour.
var supported = []string{
	"KHR_materials_unlit",
	"KHR_materials_specular",
	"KHR_materials_ior",
	"KHR_materials_emissive_strength",
	"KHR_materials_clearcoat",
}

// parse parses a document whose only buffer is in the file. gltf.Decoder is not used because it
// trusts the lengths in the file.
func parse(data []byte) (*gltf.Document, error) {
	if len(data) < headerSize || binary.LittleEndian.Uint32(data) != magic {
		return nil, fmt.Errorf("%w: the file does not start with glTF", ErrFile)
	}
	if version := binary.LittleEndian.Uint32(data[4:]); version != 2 {
		return nil, fmt.Errorf("%w: version %d, expected 2", ErrFile, version)
	}
	text, rest, err := chunk(data[headerSize:], chunkJSON)
	if err != nil {
		return nil, err
	}
	var buffer []byte
	if len(rest) > 0 {
		if buffer, _, err = chunk(rest, chunkBIN); err != nil {
			return nil, err
		}
	}
	doc := new(gltf.Document)
	if err := json.Unmarshal(text, doc); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	for _, extension := range doc.ExtensionsRequired {
		if !slices.Contains(supported, extension) {
			return nil, fmt.Errorf("%w: extension %.60q", ErrUnsupported, extension)
		}
	}
	if hasHoles(doc) {
		return nil, fmt.Errorf("%w: null where an object is expected", ErrFile)
	}
	for i, b := range doc.Buffers {
		if i > 0 || b.URI != "" {
			return nil, fmt.Errorf("%w: buffers outside of the file", ErrUnsupported)
		}
		b.Data = buffer
	}
	return doc, nil
}

// chunk returns the content of the first chunk and the data after it.
func chunk(data []byte, kind uint32) (content, rest []byte, err error) {
	if len(data) < chunkSize {
		return nil, nil, fmt.Errorf("%w: it ends before a chunk", ErrFile)
	}
	length, found := binary.LittleEndian.Uint32(data), binary.LittleEndian.Uint32(data[4:])
	data = data[chunkSize:]
	if found != kind || uint64(length) > uint64(len(data)) {
		return nil, nil, fmt.Errorf(
			"%w: chunk %#x of %d bytes, expected %#x of at most %d",
			ErrFile,
			found,
			length,
			kind,
			len(data),
		)
	}
	return data[:length], data[length:], nil
}

// hasHoles reports whether a list of objects contains null.
func hasHoles(doc *gltf.Document) bool {
	for _, a := range doc.Animations {
		if a == nil || slices.Contains(a.Channels, nil) || slices.Contains(a.Samplers, nil) {
			return true
		}
	}
	for _, m := range doc.Meshes {
		if m == nil || slices.Contains(m.Primitives, nil) {
			return true
		}
	}
	return slices.Contains(doc.Nodes, nil) || slices.Contains(doc.Skins, nil) ||
		slices.Contains(doc.Accessors, nil) || slices.Contains(doc.BufferViews, nil) ||
		slices.Contains(doc.Buffers, nil) || slices.Contains(doc.Materials, nil) ||
		slices.Contains(doc.Textures, nil) || slices.Contains(doc.Images, nil) ||
		slices.Contains(doc.Samplers, nil) ||
		slices.Contains(doc.Scenes, nil)
}

// at returns an element of a list by an index in the file.
func at[T any](list []T, index int, what string) (T, error) {
	if index < 0 || index >= len(list) {
		var none T
		return none, fmt.Errorf("%w: %s %d, expected one of %d", ErrFile, what, index, len(list))
	}
	return list[index], nil
}

// accessor returns an accessor as the only one of a document whose only view is exactly its data.
// The library that reads the accessor ignores offsets and, for bytes, the data after its end.
func accessor(doc *gltf.Document, index int) (*gltf.Document, *gltf.Accessor, error) {
	a, err := at(doc.Accessors, index, "accessor")
	if err != nil {
		return nil, nil, err
	}
	if a.Sparse != nil || a.BufferView == nil {
		return nil, nil, fmt.Errorf("%w: sparse accessor %d", ErrUnsupported, index)
	}
	view, err := at(doc.BufferViews, *a.BufferView, "buffer view")
	if err != nil {
		return nil, nil, err
	}
	data, err := contents(doc, view)
	if err != nil {
		return nil, nil, err
	}
	size := gltf.SizeOfElement(a.ComponentType, a.Type)
	stride := max(size, view.ByteStride)
	if size <= 0 || a.Count <= 0 || a.ByteOffset < 0 || len(data)-size < a.ByteOffset ||
		view.ByteStride != 0 && view.ByteStride < size ||
		a.Count-1 > (len(data)-a.ByteOffset-size)/stride {
		return nil, nil, fmt.Errorf(
			"%w: accessor %d of %d elements does not fit into its %d bytes",
			ErrFile,
			index,
			a.Count,
			len(data),
		)
	}
	data = data[a.ByteOffset:][:(a.Count-1)*stride+size]
	only := &gltf.Document{
		Buffers:     []*gltf.Buffer{{ByteLength: len(data), Data: data}},
		BufferViews: []*gltf.BufferView{{ByteLength: len(data), ByteStride: view.ByteStride}},
	}
	return only, &gltf.Accessor{
		BufferView:    new(int),
		ComponentType: a.ComponentType,
		Type:          a.Type,
		Count:         a.Count,
		Normalized:    a.Normalized,
	}, nil
}

// contents returns the bytes of a buffer view.
func contents(doc *gltf.Document, view *gltf.BufferView) ([]byte, error) {
	buffer, err := at(doc.Buffers, view.Buffer, "buffer")
	if err != nil {
		return nil, err
	}
	if view.ByteOffset < 0 || view.ByteLength < 0 || view.ByteOffset > len(buffer.Data) ||
		view.ByteLength > len(buffer.Data)-view.ByteOffset {
		return nil, fmt.Errorf(
			"%w: a view of %d bytes at %d of a buffer of %d",
			ErrFile,
			view.ByteLength,
			view.ByteOffset,
			len(buffer.Data),
		)
	}
	return buffer.Data[view.ByteOffset:][:view.ByteLength], nil
}

// named returns an attribute whose accessor has as many elements as there are vertices, or nil if
// the attribute is absent.
func named(
	doc *gltf.Document,
	attributes gltf.PrimitiveAttributes,
	name string,
	count int,
) (*gltf.Document, *gltf.Accessor, error) {
	index, ok := attributes[name]
	if !ok {
		return nil, nil, nil
	}
	only, a, err := accessor(doc, index)
	if err != nil {
		return nil, nil, fmt.Errorf("attribute %s: %w", name, err)
	}
	if a.Count != count {
		return nil, nil, fmt.Errorf("%w: %d elements of %s for %d vertices", ErrFile, a.Count, name, count)
	}
	return only, a, nil
}
