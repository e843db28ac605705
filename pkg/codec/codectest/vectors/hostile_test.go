//go:build cgo

package vectors

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/codectest"
	"github.com/volsfu/volsfu/pkg/codec/cwi1/cwi1test"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// frames collects hostile frames.
type frames struct {
	t   *testing.T
	all []codectest.Frame
}

func (f *frames) add(fourCC, name string, pieces ...[]byte) {
	f.all = append(f.all, codectest.Frame{Codec: fourCC, Name: name, Data: bytes.Join(pieces, nil)})
}

// hostile returns short frames that announce large contents or make a decoder work for a long time.
func hostile(t *testing.T) []codectest.Frame {
	f := &frames{t: t}
	f.raw()
	f.octree()
	f.zstd()
	f.draco()
	f.mesh()
	f.jpeg()
	f.nested()
	return f.all
}

func u16(v uint16) []byte { return binary.BigEndian.AppendUint16(nil, v) }
func u32(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
func varint(v uint64) []byte {
	return binary.AppendUvarint(nil, v)
}

// head returns the head of raw and zstd frames.
func head(points uint32, bits int, plain bool) []byte {
	return codec.Head{Points: points,
		Params: codec.Params{PositionBits: bits, NoColors: plain, Box: codectest.Box}}.AppendTo(nil)
}

func (f *frames) raw() {
	f.add("raw1", "4 billion points", head(math.MaxUint32, 11, false))
	f.add("raw1", "a byte count that overflows 32 bits", head(1<<30, 8, false), make([]byte, 6))
	f.add("raw1", "130 million points without colours", head(130_000_000, 1, true), make([]byte, 7))
	f.add("cwi0", "more bytes than an address space has", []byte("cpcd"), u32(0x20210208), make([]byte, 16),
		binary.LittleEndian.AppendUint64(nil, math.MaxUint64-15))
	f.add("cwi0", "2 GB of points", []byte("cpcd"), u32(0x20210208), make([]byte, 16),
		binary.LittleEndian.AppendUint64(nil, 1<<31), make([]byte, 16))
}

// octree adds frames of cwi1 with large numbers in the header, and trees and images of almost no bits.
func (f *frames) octree() {
	const coloredAt, pointsAt, edgeAt, highAt, branchesAt, treeAt = 54, 55, 63, 104, 161, 169
	frame, _ := cwi1test.Of(ball(200), 1.0/64).Encode()
	changed := func(at int, v uint64) []byte {
		data := bytes.Clone(frame)
		binary.LittleEndian.PutUint64(data[at:], v)
		return data
	}
	f.add("cwi1", "2^64-1 points", changed(pointsAt, math.MaxUint64))
	f.add("cwi1", "4 million points", changed(pointsAt, 1<<22))
	f.add("cwi1", "2^63 branches", changed(branchesAt, 1<<63))
	f.add("cwi1", "a box of 10^38 m", changed(highAt, math.Float64bits(1e38)))
	f.add("cwi1", "leaves of 10^-300 m", changed(edgeAt, math.Float64bits(1e-300)))
	// Sixteen levels, and almost no bits for a branch: each has one child, or all eight.
	deep := bytes.Clone(frame[:treeAt])
	binary.LittleEndian.PutUint64(deep[pointsAt:], codec.FreePoints)
	binary.LittleEndian.PutUint64(deep[branchesAt:], codec.FreePoints)
	for axis := range 3 {
		low := math.Float64frombits(binary.LittleEndian.Uint64(deep[highAt-24+8*axis:]))
		binary.LittleEndian.PutUint64(deep[highAt+8*axis:], math.Float64bits(low+65535.5/64))
	}
	f.add("cwi1", "one child for each branch", deep, cwi1test.Section(bytes.Repeat([]byte{1}, codec.FreePoints)))
	f.add("cwi1", "eight children for each branch", deep, cwi1test.Section(bytes.Repeat([]byte{0xff}, codec.FreePoints)))
	plain := cwi1test.Of(ball(200), 1.0/64)
	plain.Plain = true
	tree, _ := plain.Encode()
	tree[coloredAt] = 1
	f.add("cwi1", "an image of 1 TB", tree, binary.LittleEndian.AppendUint64(nil, 1<<40), frame[len(frame)-2000:])
	f.add("cwi1", "an image of zeros", tree, binary.LittleEndian.AppendUint64(nil, 4000),
		cwi1test.Section(make([]byte, 4000)))
}

// content returns the head of a Zstandard frame in a single segment of the given size (RFC 8878
// section 3.1.1.1).
func content(size uint32) []byte { return append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xa0}, u32(size)...) }

// block returns a Zstandard block: its type, the last-block flag, and the size in its header.
func block(kind, last, size int, data ...byte) []byte {
	h := size<<3 | kind<<1 | last
	return append([]byte{byte(h), byte(h >> 8), byte(h >> 16)}, data...)
}

func (f *frames) zstd() {
	const (
		points = 60_000
		planes = points * 8 // at 11 bits: five bytes of position and three of colour
	)
	begin := head(points, 11, false)
	compressed := func(data ...byte) []byte { return block(2, 1, len(data), data...) }
	f.add("zstd", "4 billion points", head(math.MaxUint32, 11, false), content(16), block(0, 1, 0))
	f.add("zstd", "130 million points", head(130_000_000, 30, false), content(math.MaxUint32), block(1, 1, 1<<17, 0))
	f.add("zstd", "4 GB of content", begin, content(math.MaxUint32), block(1, 1, 1<<17, 0))
	f.add("zstd", "a window of 2 TB", begin, []byte{0x28, 0xb5, 0x2f, 0xfd, 0x80, 0xf8}, u32(planes),
		block(1, 1, 1<<17, 0))
	f.add("zstd", "blocks beyond the content", begin, content(planes), bytes.Repeat(block(1, 0, 1<<17, 0), 500),
		block(1, 1, 1<<17, 0))
	f.add("zstd", "a block of 2 MB", begin, content(planes), block(1, 1, 1<<21-1, 0))
	f.add("zstd", "2,000 empty blocks", begin, content(planes), bytes.Repeat(block(0, 0, 0), 2000), block(0, 1, 0))
	// 98,303 sequences of one code each, whose matches have at least 65,539 bytes: 6 GB from 20
	// bytes. The bits of the lengths are missing.
	f.add("zstd", "98,303 longest matches without bits", begin, content(planes),
		compressed(8, 0, 255, 255, 255, 0x54, 0, 0, 52, 1))
	// The same with bits, 16 for each of 98,303 sequences; and with matches of 34 bytes that need
	// no bits.
	f.add("zstd", "longest matches", begin, content(planes),
		compressed(append([]byte{8, 0, 255, 0, 0, 0x54, 0, 0, 52}, bytes.Repeat([]byte{0xff}, 8000)...)...))
	shortest := compressed(8, 0, 255, 255, 255, 0x54, 1, 2, 31, 1)
	shortest[0] &^= 1
	f.add("zstd", "blocks of 98,303 matches without bits", begin, content(planes), bytes.Repeat(shortest, 100),
		block(0, 1, 0))
	// Literals whose Huffman weights come from a table of one symbol, which uses no bits: the
	// weights never end.
	f.add("zstd", "Huffman weights without end", begin, content(planes),
		compressed(0x02, 1, 2, 3, 0xf0, 0x03, 0xff, 1, 1, 0))
	f.add("zstd", "skippable frames", begin, bytes.Repeat([]byte{0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0}, 500))
	f.add("zstd", "a skippable frame of 4 GB", begin, []byte{0x50, 0x2a, 0x4d, 0x18}, u32(math.MaxUint32))
	f.add("zstd", "a dictionary", begin, []byte{0x28, 0xb5, 0x2f, 0xfd, 0xa3}, u32(1), u32(planes),
		block(1, 1, 1<<17, 0))
}

// tree and sequence are Draco's methods.
const (
	sequence = 0
	tree     = 1
)

// dracoHead returns the start of a Draco point cloud up to the attributes: positions, and colours
// if colored is set.
func dracoHead(method byte, points uint32, colored bool) []byte {
	out := append([]byte("DRACO\x02\x03\x00"), method, 0, 0)
	out = append(out, u32(points)...)
	if colored {
		return append(out, 1, 2, 0, 9, 3, 0, 0, 2, 2, 3, 1, 1)
	}
	return append(out, 1, 1, 0, 9, 3, 0, 0)
}

// trailer returns the data after the points: minimum position, range and bits.
func trailer(bits byte) []byte {
	out := make([]byte, 12, 17)
	return append(append(out, u32(math.Float32bits(1))...), bits)
}

func (f *frames) draco() {
	const points = 65_000
	words := append(u32(4), 0, 0, 0, 0)
	f.add("drco", "a sequence of 130 million points", dracoHead(sequence, 130_000_000, false)[:19], make([]byte, 20))
	f.add("drco", "a sequence of 130 million points with coders", dracoHead(sequence, 130_000_000, false),
		[]byte{2}, make([]byte, 17), trailer(11))
	f.add("drco", "a tree of 130 million points", dracoHead(tree, 130_000_000, true), []byte{6}, u32(11),
		u32(130_000_000), trailer(11))
	f.add("drco", "a tree of 4 billion points", dracoHead(tree, math.MaxUint32, false), []byte{0}, u32(11),
		u32(math.MaxUint32), trailer(11))
	f.add("drco", "a tree that says another number inside", dracoHead(tree, points, false), []byte{0}, u32(11),
		u32(math.MaxUint32), bytes.Repeat(words, 4), trailer(11))
	for level := byte(0); level <= 6; level += 2 {
		f.add("drco", "a tree without bits at level "+string('0'+level), dracoHead(tree, points, true),
			[]byte{level}, u32(30), u32(points), bytes.Repeat(words, 4), trailer(30))
		f.add("drco", "a tree of nothing but one probability at level "+string('0'+level),
			dracoHead(tree, points, false), []byte{level}, u32(30), u32(points),
			bytes.Repeat([]byte{255, 1, 1}, 33), words, words, words, trailer(30))
	}
	f.add("drco", "coordinates of 4 billion bits", dracoHead(tree, points, false), []byte{6}, u32(math.MaxUint32),
		u32(points), bytes.Repeat(words, 4), trailer(30))
	raw := func(symbols uint64) []byte { return append([]byte{0, 1, 1, 1, 18}, varint(symbols)...) }
	f.add("drco", "a table of 4 billion symbols", dracoHead(sequence, points, false), []byte{2},
		raw(math.MaxUint32), make([]byte, 40), trailer(11))
	f.add("drco", "a table of 262,144 symbols", dracoHead(sequence, points, false), []byte{2}, raw(1<<18),
		make([]byte, 40), trailer(11))
	f.add("drco", "a table of one symbol", dracoHead(sequence, points, false), []byte{2}, raw(1),
		[]byte{0xff, 0xff, 0xff}, make([]byte, 40), trailer(11))
	f.add("drco", "tags of 4 billion lengths", dracoHead(sequence, points, false), []byte{2, 0, 1, 1, 0},
		varint(math.MaxUint32), make([]byte, 40), trailer(11))
	f.add("drco", "values that are not compressed", dracoHead(sequence, points, true), []byte{2, 1, 0, 1, 0, 4},
		make([]byte, 40), trailer(11))
	f.add("drco", "255 attributes", dracoHead(tree, points, false)[:15], []byte{255, 255},
		bytes.Repeat([]byte{4, 9, 255, 0, 0}, 255), trailer(11))
	f.add("drco", "positions of 255 components", dracoHead(tree, points, false)[:15],
		[]byte{1, 1, 0, 9, 255, 0, 0, 6}, u32(11), u32(points), bytes.Repeat(words, 4), trailer(11))
	f.add("drco", "the older bit stream", []byte("DRACO\x02\x02\x00\x00\x00\x00"), u32(130_000_000), make([]byte, 40))
	f.add("drco", "a mesh", []byte("DRACO\x02\x02\x01\x00\x00\x00"), varint(math.MaxUint32), varint(math.MaxUint32),
		make([]byte, 40))
	f.add("drco", "metadata without end", []byte("DRACO\x02\x03\x00\x01\x00\x80"), varint(math.MaxUint32),
		bytes.Repeat([]byte{255}, 40))
}

func (f *frames) mesh() {
	const begin = "DRACO\x02\x02\x01"
	f.add("drcm", "a sequence of 4 billion faces", []byte(begin+"\x00\x00\x00"), varint(math.MaxUint32),
		varint(math.MaxUint32), make([]byte, 20))
	f.add("drcm", "a sequence of 16,000 faces from a table of 4 billion symbols", []byte(begin+"\x00\x00\x00"),
		varint(16_000), varint(48_000), []byte{0, 1, 18}, varint(math.MaxUint32), make([]byte, 40))
	f.add("drcm", "a sequence of 16,000 faces that are not there", []byte(begin+"\x00\x00\x00"), varint(16_000),
		varint(48_000), []byte{1}, make([]byte, 40))
	f.add("drcm", "an edgebreaker mesh of 4 billion faces", []byte(begin+"\x01\x00\x00\x00"),
		varint(math.MaxUint32), varint(math.MaxUint32), make([]byte, 40))
	f.add("drcm", "an edgebreaker mesh of 16,000 faces", []byte(begin+"\x01\x00\x00\x00"), varint(48_000),
		varint(16_000), []byte{255}, varint(16_000), varint(0), make([]byte, 40))
	f.add("drcm", "an edgebreaker mesh of 4 billion splits", []byte(begin+"\x01\x00\x00\x00"), varint(3000),
		varint(16_000), []byte{0}, varint(16_000), varint(math.MaxUint32), make([]byte, 40))
	f.add("drcm", "metadata without end", []byte(begin+"\x01\x00\x80"), varint(math.MaxUint32),
		bytes.Repeat([]byte{255}, 40))
}

// segment returns a JPEG segment.
func segment(marker byte, content ...byte) []byte {
	return append(append([]byte{0xff, marker}, u16(uint16(len(content)+2))...), content...)
}

// frameOf returns a JPEG frame with chroma halved in both directions (T.81, B.2.2).
func frameOf(marker byte, width, height uint16) []byte {
	content := append([]byte{8}, append(u16(height), u16(width)...)...)
	return segment(marker, append(content, 3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1)...)
}

func (f *frames) jpeg() {
	geometry := encoded(f.t, "draco", ball(50),
		codec.Params{PositionBits: 8, Speed: 10, Box: codectest.Box, NoColors: true})
	around := func(geometry []byte, quality byte) []byte { return append(u32(uint32(len(geometry))), quality) }
	start, end := []byte{0xff, 0xd8}, []byte{0xff, 0xd9}
	scan := segment(0xda, 3, 1, 0x00, 2, 0x11, 3, 0x11, 0, 63, 0)
	bomb := append(dracoHead(tree, 130_000_000, false),
		append(append([]byte{6}, make([]byte, 8)...), trailer(11)...)...)
	f.add("drcj", "geometry of 130 million points", around(bomb, 85), bomb, start, frameOf(0xc0, 256, 65_500), scan)
	f.add("drcj", "4 GB of geometry", u32(math.MaxUint32), []byte{85}, geometry)
	f.add("drcj", "quality 255", around(geometry, 255), geometry, start, frameOf(0xc0, 16, 16), scan)
	f.add("drcj", "an image of 65,500×65,500 pixels", around(geometry, 85), geometry, start,
		frameOf(0xc0, 65_500, 65_500), scan, make([]byte, 100))
	f.add("drcj", "a progressive image", around(geometry, 85), geometry, start, frameOf(0xc2, 65_500, 65_500),
		segment(0xda, 1, 1, 0, 0, 0, 0), make([]byte, 100))
	f.add("drcj", "a progressive frame before a baseline frame", around(geometry, 85), geometry, start,
		frameOf(0xc2, 65_500, 65_500), frameOf(0xc0, 16, 16), scan, make([]byte, 100))
	f.add("drcj", "two frames", around(geometry, 85), geometry, start, frameOf(0xc0, 16, 16),
		frameOf(0xc0, 65_500, 65_500), scan, make([]byte, 100))
	f.add("drcj", "an arithmetic image", around(geometry, 85), geometry, start, frameOf(0xc9, 16, 16), scan,
		make([]byte, 100))
	f.add("drcj", "a lossless image", around(geometry, 85), geometry, start, frameOf(0xc3, 16, 16), scan,
		make([]byte, 100))
	luma := segment(0xda, 1, 1, 0x00, 0, 63, 0)
	f.add("drcj", "scans of one component each", around(geometry, 85), geometry, start, frameOf(0xc0, 16, 16),
		bytes.Repeat(append(luma, make([]byte, 4)...), 500), end)
	f.add("drcj", "scans of some coefficients each", around(geometry, 85), geometry, start, frameOf(0xc2, 16, 16),
		bytes.Repeat(append(segment(0xda, 1, 1, 0, 1, 63, 0), make([]byte, 4)...), 500), end)
	whole := encoded(f.t, "draco+jpeg", ball(50),
		codec.Params{PositionBits: 8, Speed: 10, Box: codectest.Box, ColorQuality: 85})
	scanned := bytes.Index(whole, scan)
	f.add("drcj", "scans behind a whole one", whole[:scanned],
		bytes.Repeat(bytes.TrimSuffix(whole[scanned:], end), 100), end)
	f.add("drcj", "an image without an end", bytes.TrimSuffix(whole, end))
	f.add("drcj", "no image", around(geometry, 85), geometry)
	f.add("drcj", "segments without end", around(geometry, 85), geometry, start, bytes.Repeat(segment(0xe1), 2000))
}

// part returns a frame of parts: their codec, and for each part the number of points in the head.
func part(inner string, points uint32, parts ...[]byte) []byte {
	out := append([]byte(inner), u32(uint32(len(parts)))...)
	for _, p := range parts {
		out = append(append(out, u32(points)...), u32(uint32(len(p)))...)
	}
	return append(out, bytes.Join(parts, nil)...)
}

// labelled returns a frame with labels in addition to a frame of another codec.
func labelled(inner string, frame []byte, points uint32, beside byte, rest ...byte) []byte {
	out := append(append([]byte(inner), u32(uint32(len(frame)))...), u32(points)...)
	return append(append(append(out, beside), frame...), rest...)
}

func (f *frames) nested() {
	place := new(pointcloud.Cloud)
	for range 60_000 {
		place.Append([3]float32{0.1, 1, 0.2}, [3]uint8{1, 2, 3})
	}
	dense := encoded(f.t, "zstd", place, codec.Params{PositionBits: 11, Speed: 7, Box: codectest.Box})
	bomb := append(dracoHead(sequence, 130_000_000, false), append([]byte{2}, make([]byte, 40)...)...)
	small := encoded(f.t, "raw", ball(2), codec.Params{PositionBits: 8, Box: codectest.Box})
	f.add("part", "64 parts of 60,000 points each that say one", part("zstd", 1, slicesOf(64, dense)...))
	f.add("part", "64 parts of 60,000 points", part("zstd", 60_000, slicesOf(64, dense[:60])...))
	f.add("part", "parts of 4 billion points", part("raw1", math.MaxUint32, small, small))
	f.add("part", "4 billion parts", []byte("raw1"), u32(math.MaxUint32), make([]byte, 40))
	f.add("part", "a part of 130 million points that says 100", part("drco", 100, bomb))
	f.add(
		"part",
		"parts of meshes",
		part(
			"drcm",
			40_000,
			append([]byte("DRACO\x02\x02\x01\x00\x00\x00"), append(varint(16_000), varint(48_000)...)...),
		),
	)
	f.add("part", "parts of parts", part("part", 2, part("raw1", 2, small)))
	f.add("part", "parts of labels of 130 million points", part("labl", 100, labelled("drco", bomb, 100, 0)))
	f.add("labl", "4 billion points", labelled("raw1", small, math.MaxUint32, 0))
	f.add("labl", "130 million points that say 100", labelled("drco", bomb, 100, 0))
	f.add("labl", "60,000 points that say one", labelled("zstd", dense, 1, 0))
	f.add("labl", "4 GB of points", []byte("raw1"), u32(math.MaxUint32), u32(2), []byte{0}, small)
	f.add("labl", "4 GB of labels", labelled("raw1", small, 3, 3, content(math.MaxUint32)...))
	f.add("labl", "labels of labels", labelled("labl", labelled("raw1", small, 2, 0), 2, 0))
	deep := small
	inner := "raw1"
	for range 200 {
		deep = labelled("part", part(inner, 2, deep), 2, 0)
		inner = "labl"
	}
	f.add("labl", "400 frames within each other", deep)
}

func slicesOf(count int, data []byte) [][]byte {
	all := make([][]byte, count)
	for i := range all {
		all[i] = data
	}
	return all
}
