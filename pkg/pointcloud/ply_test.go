package pointcloud

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// plyVertexBytes is the size of one point of the plain layout: three floats and three bytes.
const plyVertexBytes = 15

const plainHeader = "ply\nformat %s 1.0\nelement vertex %d\nproperty float x\nproperty float y\nproperty float z\n" +
	"property uchar red\nproperty uchar green\nproperty uchar blue\nend_header\n"

func TestReadASCII(t *testing.T) {
	cases := map[string]struct {
		file string
		want Cloud
	}{
		"plain": {
			"ply\nformat ascii 1.0\nelement vertex 2\nproperty float x\nproperty float y\nproperty float z\n" +
				"property uchar red\nproperty uchar green\nproperty uchar blue\nend_header\n1 -2.5 3e-1 0 128 " +
				"255\n4 5 6 7 8 9\n",
			Cloud{Positions: [][3]float32{{1, -2.5, 0.3}, {4, 5, 6}}, Colors: [][3]uint8{{0, 128, 255}, {7, 8, 9}}},
		},
		"carriage returns, comments, no last newline": {
			"ply\r\nformat ascii 1.0\r\ncomment made by hand\r\nobj_info none\r\nelement vertex 1\r\nproperty " +
				"double x\r\n" +
				"property float64 y\r\nproperty float32 z\r\nend_header\r\n\r\n1 2 3",
			Cloud{Positions: [][3]float32{{1, 2, 3}}, Colors: [][3]uint8{midGrey}},
		},
		"colours in other words, order and type": {
			"ply\nformat ascii 1.0\nelement vertex 2\nproperty float diffuse_blue\nproperty double " +
				"diffuse_green\nproperty float diffuse_red\n" +
				"property float z\nproperty float y\nproperty float x\nend_header\n0 0.5 1 3 2 1\n-1 nan 7 6 5 4\n",
			Cloud{Positions: [][3]float32{{1, 2, 3}, {4, 5, 6}}, Colors: [][3]uint8{{255, 128, 0}, {255, 0, 0}}},
		},
		"lists and other elements": {
			"ply\nformat ascii 1.0\nelement camera 1\nproperty float fov\nelement nothing 7\nelement vertex 2\n" +
				"property list uchar int neighbours\n" +
				"property float x\nproperty float y\nproperty short confidence\nproperty float z\nelement face " +
				"2\nproperty list uchar int vertex_indices\n" +
				"end_header\n60\n2 8 9 1 2 -7 3\n0 4 5 -7 6\n3 0 1 0\n3 1 0 1\n",
			Cloud{Positions: [][3]float32{{1, 2, 3}, {4, 5, 6}}, Colors: [][3]uint8{midGrey, midGrey}},
		},
		"points without a place": {
			"ply\nformat ascii 1.0\nelement vertex 4\nproperty float x\nproperty float y\nproperty float z\n" +
				"end_header\nnan nan nan\n1 inf 0\n1 2 3\n1e99 0 0\n",
			Cloud{Positions: [][3]float32{{1, 2, 3}}, Colors: [][3]uint8{midGrey}},
		},
		"no points": {
			"ply\nformat ascii 1.0\nelement vertex 0\nproperty float x\nproperty float y\nproperty float z\n" +
				"end_header\n",
			Cloud{},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got Cloud
			got.Append([3]float32{9, 9, 9}, [3]uint8{9, 9, 9})
			if err := ReadPLY(iotest.OneByteReader(strings.NewReader(c.file)), &got); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Positions, c.want.Positions) || !slices.Equal(got.Colors, c.want.Colors) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// binaryFile returns a file with every scalar type, a list, and elements before and after the
// vertices.
func binaryFile(order binary.ByteOrder, format Format, list bool) []byte {
	header := fmt.Sprintf(
		"ply\nformat %s 1.0\nelement before 2\nproperty short a\nproperty list ushort double b\nelement fixed 3\n"+
			"property int8 a\nproperty uint b\n"+
			"element vertex 2\nproperty char skipped\nproperty double y\nproperty float x\nproperty uchar green\n",
		format,
	)
	if list {
		header += "property list uint8 float weights\n"
	}
	header += "property int other\nproperty float z\nproperty uchar red\nproperty float blue\nelement face 1\n" +
		"property list uchar uint32 i\nend_header\n"
	var b bytes.Buffer
	b.WriteString(header)
	write := func(values ...any) {
		for _, v := range values {
			// A bytes.Buffer never fails, and every value has a fixed size.
			_ = binary.Write(&b, order, v)
		}
	}
	write(int16(1), uint16(2), 1.0, 2.0, int16(2), uint16(0))
	write(int8(-1), uint32(7), int8(-1), uint32(7), int8(-1), uint32(7))
	for i := range 2 {
		write(int8(-5), float64(20+i), float32(10+i), uint8(60+i))
		if list {
			write(uint8(2), float32(0.5), float32(0.25))
		}
		write(int32(-9), float32(30+i), uint8(50+i), float32(0.25))
	}
	write(uint8(3), uint32(0), uint32(1), uint32(0))
	return b.Bytes()
}

func TestReadBinary(t *testing.T) {
	want := Cloud{Positions: [][3]float32{{10, 20, 30}, {11, 21, 31}}, Colors: [][3]uint8{{50, 60, 64}, {51, 61, 64}}}
	for _, list := range []bool{false, true} {
		for _, format := range []Format{BinaryLittleEndian, BinaryBigEndian} {
			file := binaryFile(byteOrder(format), format, list)
			var got Cloud
			if err := ReadPLY(iotest.HalfReader(bytes.NewReader(file)), &got); err != nil {
				t.Fatalf("%v, list %v: %v", format, list, err)
			}
			if !slices.Equal(got.Positions, want.Positions) || !slices.Equal(got.Colors, want.Colors) {
				t.Errorf("%v, list %v: got %v, want %v", format, list, got, want)
			}
			for cut := range file {
				if err := ReadPLY(bytes.NewReader(file[:cut]), &got); !errors.Is(err, ErrMalformed) || got.Len() != 0 {
					t.Fatalf(
						"%v, list %v, cut to %d of %d bytes: got %d points and %v, want none and ErrMalformed",
						format,
						list,
						cut,
						len(file),
						got.Len(),
						err,
					)
				}
			}
		}
	}
}

func TestReadPLYErrors(t *testing.T) {
	const begin = "ply\nformat ascii 1.0\n"
	const xyz = "property float x\nproperty float y\nproperty float z\n"
	cases := map[string]struct {
		file string
		want error
		says string
	}{
		"empty":     {"", ErrMalformed, "file ends within the header"},
		"not a PLY": {"solid cube\n", ErrMalformed, `begins with "solid cube", expected "ply"`},
		"no format": {"ply\nelement vertex 0\n" + xyz + "end_header\n", ErrMalformed, "no format line"},
		"format": {
			"ply\nformat text 1.0\n",
			ErrMalformed,
			`header line 2: malformed PLY: format is "text"`,
		},
		"version":    {"ply\nformat ascii 2.0\n", ErrMalformed, `expected "format NAME 1.0"`},
		"keyword":    {begin + "elements vertex 1\n", ErrMalformed, `keyword is "elements"`},
		"count":      {begin + "element vertex -1\n", ErrMalformed, `count of element "vertex" is "-1"`},
		"huge count": {begin + "element vertex 99999999999999999999\n", ErrMalformed, "count of element"},
		"many points": {
			begin + "element vertex 20000001\n" + xyz + "end_header\n",
			ErrLimit,
			"20000001 points, expected at most 20000000",
		},
		"long header": {
			begin + strings.Repeat("comment 0123456789\n", 4000),
			ErrLimit,
			"header is larger than 65536 bytes",
		},
		"endless line":   {begin + "comment " + strings.Repeat("x", 200_000), ErrLimit, "header is larger"},
		"property first": {begin + "property float x\n", ErrMalformed, "before the first element"},
		"property type": {
			begin + "element vertex 1\nproperty half x\n",
			ErrMalformed,
			`type of property "x" is unknown`,
		},
		"property words": {begin + "element vertex 1\nproperty float\n", ErrMalformed, "has 2 words"},
		"list count": {
			begin + "element vertex 1\nproperty list float int x\n",
			ErrMalformed,
			`counted in "float"`,
		},
		"property twice": {
			begin + "element vertex 1\nproperty float x\nproperty float x\n",
			ErrMalformed,
			"declared twice",
		},
		"element twice": {begin + "element vertex 1\nelement vertex 1\n", ErrMalformed, "declared twice"},
		"no vertex":     {begin + "element face 1\n" + xyz + "end_header\n", ErrMalformed, `no element "vertex"`},
		"no z": {
			begin + "element vertex 1\nproperty float x\nproperty float y\nend_header\n",
			ErrMalformed,
			`"z"`,
		},
		"integer position": {
			begin + "element vertex 1\nproperty int x\nproperty float y\nproperty float z\nend_header\n",
			ErrMalformed,
			`"x" is an integer`,
		},
		"short colour": {
			begin + "element vertex 1\n" + xyz + "property short red\nend_header\n",
			ErrMalformed,
			"integer other than uchar",
		},
		"half a colour": {
			begin + "element vertex 1\n" + xyz + "property uchar red\nend_header\n",
			ErrMalformed,
			`no properties ["green" "blue"]`,
		},
		"word for a number": {
			begin + "element vertex 1\n" + xyz + "end_header\n1 two 3\n",
			ErrMalformed,
			`"y" is "two"`,
		},
		"short line": {
			begin + "element vertex 1\n" + xyz + "end_header\n1 2\n",
			ErrMalformed,
			"line has 2 values",
		},
		"long line": {
			begin + "element vertex 1\n" + xyz + "end_header\n1 2 3 4\n",
			ErrMalformed,
			"line has 4 values, expected 3",
		},
		"missing line": {
			begin + "element vertex 2\n" + xyz + "end_header\n1 2 3\n",
			ErrMalformed,
			"file ends at vertex 1, expected 2",
		},
		"line without end": {
			begin + "element vertex 1\n" + xyz + "end_header\n" + strings.Repeat("1", 200_000),
			ErrLimit,
			"longer than",
		},
		"list beyond line": {
			begin + "element vertex 1\n" + xyz + "property list uchar int a\nend_header\n1 2 3 9 1\n",
			ErrMalformed,
			`list "a" has 9 values`,
		},
		"missing face": {
			begin + "element vertex 1\n" + xyz + "element face 2\nproperty list uchar int i\nend_header\n1 2 3\n0\n",
			ErrMalformed,
			"face 1",
		},
		"negative list": {
			"ply\nformat binary_little_endian 1.0\nelement vertex 0\n" + xyz +
				"element e 1\nproperty list char char l\nend_header\n\xff",
			ErrMalformed,
			"-1 values",
		},
		"missing instance": {
			"ply\nformat binary_little_endian 1.0\nelement vertex 0\n" + xyz +
				"element e 3\nproperty int i\nend_header\n12345",
			ErrMalformed,
			"file ends at e 1, expected 3",
		},
		"element overflowing": {
			"ply\nformat binary_little_endian 1.0\nelement vertex 0\n" + xyz +
				"element e 9223372036854775807\nproperty int i\nend_header\n",
			ErrLimit,
			"instances",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := Cloud{Positions: [][3]float32{{1, 2, 3}}, Colors: [][3]uint8{{1, 2, 3}}}
			err := ReadPLY(strings.NewReader(c.file), &got)
			if !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("got %v, want %v that says %q", err, c.want, c.says)
			}
			if got.Len() != 0 || len(got.Colors) != 0 {
				t.Errorf("cloud has %d points after an error, want none", got.Len())
			}
		})
	}
}

func TestReadPLYPassesErrorsOfTheSource(t *testing.T) {
	broken := errors.New("disk on fire")
	file := io.MultiReader(strings.NewReader(fmt.Sprintf(plainHeader, BinaryLittleEndian, 5)), iotest.ErrReader(broken))
	if err := ReadPLY(file, new(Cloud)); !errors.Is(err, broken) || errors.Is(err, ErrMalformed) {
		t.Errorf("got %v, want the source's error alone", err)
	}
}

// TestReadPLYMemoryFollowsData reads a header that announces the maximum and a file that ends: the
// memory must follow the data, not the announcement.
func TestReadPLYMemoryFollowsData(t *testing.T) {
	file := fmt.Appendf(nil, plainHeader, BinaryLittleEndian, 20_000_000)
	file = append(file, make([]byte, 1000*plyVertexBytes)...)
	var got Cloud
	err := ReadPLY(bytes.NewReader(file), &got)
	if !errors.Is(err, ErrMalformed) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want ErrMalformed around an unexpected end", err)
	}
	if cap(got.Positions) > 2*readBufferBytes/plyVertexBytes {
		t.Errorf("room for %d points was made for 1000", cap(got.Positions))
	}
}

func TestWriteAndReadBack(t *testing.T) {
	for _, want := range []*Cloud{{}, randomCloud(1, 1), randomCloud(2, 20_000)} {
		for _, format := range []Format{BinaryLittleEndian, ASCII, BinaryBigEndian} {
			var file bytes.Buffer
			if err := WritePLY(&file, want, format); err != nil {
				t.Fatal(err)
			}
			var got Cloud
			if err := ReadPLY(&file, &got); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Positions, want.Positions) || !slices.Equal(got.Colors, want.Colors) {
				t.Errorf("%v: %d points are not what was written", format, want.Len())
			}
		}
	}
}

func TestWritePLYErrors(t *testing.T) {
	cloud := randomCloud(1, 3)
	if err := WritePLY(io.Discard, cloud, 3); !errors.Is(err, ErrFormat) {
		t.Errorf("unknown format: got %v, want ErrFormat", err)
	}
	if err := WritePLY(io.Discard, &Cloud{Positions: cloud.Positions}, ASCII); !errors.Is(err, ErrFormat) {
		t.Errorf("missing colours: got %v, want ErrFormat", err)
	}
	pipe, end := io.Pipe()
	_ = pipe.Close()
	if err := WritePLY(end, cloud, ASCII); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("closed pipe: got %v, want its error", err)
	}
}

func TestReadRealPLY(t *testing.T) {
	cases := []struct {
		path   []string
		points int
	}{
		{[]string{"seated-human", "ply", "dkvfx_000.ply"}, 68_397},
		{[]string{"seated-human", "ply", "dkvfx_001.ply"}, 68_343},
		{[]string{"seated-human", "ply", "dkvfx_002.ply"}, 68_438},
		{[]string{"desk-human", "pcl_frame1.ply"}, 271_864},
	}
	reader := NewPLYReader(DefaultConfig())
	var cloud Cloud
	for _, c := range cases {
		file, err := os.Open(testData(t, c.path...))
		if err != nil {
			t.Fatal(err)
		}
		err = reader.Read(file, &cloud)
		_ = file.Close()
		if err != nil {
			t.Fatalf("%v: %v", c.path, err)
		}
		if cloud.Len() != c.points || len(cloud.Colors) != c.points {
			t.Errorf("%v: %d points, want %d", c.path, cloud.Len(), c.points)
		}
		// A person at a desk and the background: within a few metres, and not all of one colour.
		box := cloud.Bounds()
		for axis := range 3 {
			if size := box.Max[axis] - box.Min[axis]; size < 0.2 || size > 10 {
				t.Errorf("%v: box is %v to %v, expected 0.2 to 10 m", c.path, box.Min, box.Max)
			}
		}
		if slices.Max(grays(&cloud))-slices.Min(grays(&cloud)) < 100 {
			t.Errorf("%v: colours are nearly the same", c.path)
		}
	}
}

func grays(c *Cloud) []int {
	values := make([]int, c.Len())
	for i, color := range c.Colors {
		values[i] = (int(color[0]) + int(color[1]) + int(color[2])) / 3
	}
	return values
}

func TestBounds(t *testing.T) {
	cloud := Cloud{Positions: [][3]float32{{1, -2, 3}, {-1, 5, 0}, {0, 0, 9}}, Colors: make([][3]uint8, 3)}
	want := volumetric.BoundingBox{Min: [3]float32{-1, -2, 0}, Max: [3]float32{1, 5, 9}}
	if got := cloud.Bounds(); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := new(Cloud).Bounds(); got != (volumetric.BoundingBox{}) {
		t.Errorf("no points: got %v, want the zero box", got)
	}
}
