package rgbd

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// allPixels keeps every pixel with a depth.
var allPixels = depth.Options{Cleaning: depth.Cleaning{EdgeRatio: 1}}

// load loads the cloud of a frame.
func load(t testing.TB, folder *Folder, options depth.Options, into *pointcloud.Cloud) {
	t.Helper()
	camera, err := folder.Intrinsics().Camera("")
	if err != nil {
		t.Fatal(err)
	}
	projector, err := depth.NewProjector(camera, options)
	if err != nil {
		t.Fatal(err)
	}
	var m depth.Image
	for range 2 { // the second time into a used cloud
		if err := folder.LoadImage(0, &m); err != nil {
			t.Fatal(err)
		}
	}
	into.Reset()
	if err := projector.Project(&m, into); err != nil {
		t.Fatal(err)
	}
}

func encode(t testing.TB, picture image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, picture); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// depthImage has the given depth for every pixel.
func depthImage(width, height int, depth func(x, y int) uint16) *image.Gray16 {
	picture := image.NewGray16(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			picture.SetGray16(x, y, color.Gray16{Y: depth(x, y)})
		}
	}
	return picture
}

// colorImage encodes the position of every pixel: red x, green y.
func colorImage(width, height int) *image.RGBA {
	picture := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			picture.SetRGBA(x, y, color.RGBA{R: uint8(x), G: uint8(y), B: 200, A: 255})
		}
	}
	return picture
}

func write(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLoadProjects(t *testing.T) {
	depth := encode(t, depthImage(8, 6, func(x, y int) uint16 { return uint16(1000 * (x % 2) * (y + 1)) }))
	paletted := image.NewPaletted(
		image.Rect(0, 0, 8, 6),
		color.Palette{color.RGBA{1, 2, 3, 255}, color.RGBA{4, 5, 6, 255}},
	)
	transparent := image.NewNRGBA(image.Rect(0, 0, 8, 6))
	for i := range transparent.Pix {
		transparent.Pix[i] = []uint8{9, 8, 7, 6}[i%4]
	}
	tests := []struct {
		name    string
		picture image.Image
		color   func(x, y int) [3]uint8
	}{
		{"colours", colorImage(8, 6), func(x, y int) [3]uint8 { return [3]uint8{uint8(x), uint8(y), 200} }},
		{"palette", paletted, func(int, int) [3]uint8 { return [3]uint8{1, 2, 3} }},
		{"transparent", transparent, func(int, int) [3]uint8 { return [3]uint8{9, 8, 7} }},
		{"grey", image.NewGray(image.Rect(0, 0, 8, 6)), func(int, int) [3]uint8 { return [3]uint8{} }},
	}
	for _, test := range tests {
		dir := t.TempDir()
		write(
			t,
			dir,
			map[string][]byte{
				IntrinsicsFile: []byte(plainIntrinsics),
				"depth_0.png":  depth,
				"color_0.png":  encode(t, test.picture),
			},
		)
		folder, err := OpenFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		var cloud, expected pointcloud.Cloud
		for y := range 6 {
			for x := 1; x < 8; x += 2 {
				d := float64(y + 1) // metres
				expected.Append(
					[3]float32{
						float32((float64(x) + 0.5 - 4) / 4 * d),
						float32((3 - float64(y) - 0.5) / 4 * d),
						float32(-d),
					},
					test.color(x, y),
				)
			}
		}
		load(t, folder, allPixels, &cloud)
		if !slices.Equal(cloud.Colors, expected.Colors) {
			t.Errorf("%s: colours are %v, expected %v", test.name, cloud.Colors, expected.Colors)
		}
		if !slices.EqualFunc(
			cloud.Positions,
			expected.Positions,
			func(a, b [3]float32) bool { return distance(a, b) < 1e-5 },
		) {
			t.Errorf("%s: positions are %v, expected %v", test.name, cloud.Positions, expected.Positions)
		}
	}
}

func distance(a, b [3]float32) float64 {
	return math.Hypot(math.Hypot(float64(a[0]-b[0]), float64(a[1]-b[1])), float64(a[2]-b[2]))
}

func TestLoadErrors(t *testing.T) {
	depths := encode(t, depthImage(8, 6, func(int, int) uint16 { return 1000 }))
	colors := encode(t, colorImage(8, 6))
	huge := slices.Clone(colors)
	copy(
		huge[16:24],
		[]byte{0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff},
	) // the size in the header, whose checksum is now wrong
	tests := []struct {
		name          string
		depths, color []byte
		err           error
		file, says    string
	}{
		{"torn depth", depths[:len(depths)-20], colors, ErrImage, "depth_7.png", "EOF"},
		{"torn colour", depths, colors[:40], ErrImage, "color_7.png", "EOF"},
		{"empty", depths, nil, ErrImage, "color_7.png", "EOF"},
		{"not PNG", []byte("P5 8 6 65535"), colors, ErrImage, "depth_7.png", "not a PNG"},
		{"JPEG", append([]byte("\xff\xd8\xff\xe0"), depths...), colors, ErrImage, "depth_7.png", "not a PNG"},
		{"absurd size", depths, huge, ErrImage, "color_7.png", ""},
		{
			"larger depth",
			encode(t, depthImage(9, 6, func(int, int) uint16 { return 0 })),
			colors,
			ErrImage,
			"depth_7.png",
			"expected 8 × 6 pixels as in intrinsics.json, got 9 × 6",
		},
		{"smaller colour", depths, encode(t, colorImage(8, 5)), ErrImage, "color_7.png", "got 8 × 5"},
		{
			"8-bit depth",
			encode(t, image.NewGray(image.Rect(0, 0, 8, 6))),
			colors,
			ErrImage,
			"depth_7.png",
			"expected depth as 16-bit grey, got 8-bit grey",
		},
		{"coloured depth", colors, colors, ErrImage, "depth_7.png", "8-bit colours"},
	}
	var m depth.Image
	for _, test := range tests {
		dir := t.TempDir()
		write(
			t,
			dir,
			map[string][]byte{
				IntrinsicsFile: []byte(plainIntrinsics),
				"depth_7.png":  test.depths,
				"color_7.png":  test.color,
			},
		)
		folder, err := OpenFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		err = folder.LoadImage(0, &m)
		if !errors.Is(err, test.err) || !strings.Contains(err.Error(), filepath.Join(dir, test.file)) ||
			!strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v, expected an error about %s that says %q", test.name, err, test.file, test.says)
		}
	}
}

func TestOpenFolder(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "rgbd")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"depth_x.png": nil, "depth_1.jpg": nil, "thumb.png": nil}
	for _, number := range []string{"10", "9", "011", "8"} {
		files["depth_"+number+".png"], files["color_"+number+".png"] = nil, nil
	}
	write(t, dir, files)
	if _, err := OpenFolder(
		dir,
	); !errors.Is(err, fs.ErrNotExist) ||
		!strings.Contains(err.Error(), filepath.Join(parent, IntrinsicsFile)) {
		t.Errorf("without intrinsics: %v", err)
	}
	write(t, parent, map[string][]byte{IntrinsicsFile: []byte(plainIntrinsics)})
	folder, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, p := range folder.pairs {
		order = append(order, filepath.Base(p.depth)+" "+filepath.Base(p.color))
	}
	expected := []string{
		"depth_8.png color_8.png",
		"depth_9.png color_9.png",
		"depth_10.png color_10.png",
		"depth_011.png color_011.png",
	}
	if folder.Len() != 4 || !slices.Equal(order, expected) {
		t.Errorf("got %q, expected %q", order, expected)
	}
	// The folder's own description has priority over that of its parent.
	write(t, dir, map[string][]byte{IntrinsicsFile: []byte(strings.Replace(plainIntrinsics, `"fx": 4`, `"fx": 5`, 1))})
	if folder, err = OpenFolder(dir); err != nil || folder.Intrinsics().FX != 5 {
		t.Errorf("two descriptions: error %v", err)
	}
	write(t, dir, map[string][]byte{IntrinsicsFile: []byte("{")})
	if _, err := OpenFolder(
		dir,
	); !errors.Is(err, ErrIntrinsics) ||
		!strings.Contains(err.Error(), filepath.Join(dir, IntrinsicsFile)) {
		t.Errorf("broken description: %v", err)
	}
}

func TestOpenFolderErrors(t *testing.T) {
	tests := []struct {
		files []string
		err   error
		says  string
	}{
		{nil, ErrNoFrames, "depth_NNN.png"},
		{[]string{"depth_.png", "color.png"}, ErrNoFrames, "2 entries"},
		{[]string{"depth_1.png"}, ErrUnpaired, "expected color_1.png"},
		{[]string{"color_1.png"}, ErrUnpaired, "expected depth_1.png"},
		{[]string{"depth_1.png", "color_01.png"}, ErrUnpaired, "expected depth_01.png"},
		{
			[]string{"depth_1.png", "color_1.png", "depth_2.png", "color_2.png", "mask_2.png"},
			ErrUnpaired,
			"expected mask_1.png",
		},
	}
	for _, test := range tests {
		dir := t.TempDir()
		for _, name := range test.files {
			write(t, dir, map[string][]byte{name: nil})
		}
		if _, err := OpenFolder(
			dir,
		); !errors.Is(err, test.err) || !strings.Contains(err.Error(), test.says) ||
			!strings.Contains(err.Error(), dir) {
			t.Errorf("%v: got %v, expected %v that says %q", test.files, err, test.err, test.says)
		}
	}
	if _, err := OpenFolder(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing folder: %v", err)
	}
}

func TestLoadLabels(t *testing.T) {
	gray16 := depthImage(8, 6, func(x, y int) uint16 { return uint16(300*x + y) })
	gray := image.NewGray(image.Rect(0, 0, 8, 6))
	paletted := image.NewPaletted(image.Rect(0, 0, 8, 6), color.Palette{color.White, color.Black, color.Gray{Y: 7}})
	for i := range 48 {
		gray.Pix[i], paletted.Pix[i] = uint8(5*i), uint8(i%3)
	}
	tests := map[string]struct {
		mask  image.Image
		label func(x, y int) uint16
	}{
		"16-bit grey": {gray16, func(x, y int) uint16 { return uint16(300*x + y) }},
		"8-bit grey":  {gray, func(x, y int) uint16 { return uint16(5 * (8*y + x)) }},
		"palette":     {paletted, func(x, y int) uint16 { return uint16((8*y + x) % 3) }},
	}
	files := map[string][]byte{
		IntrinsicsFile: []byte(plainIntrinsics),
		"depth_0.png": encode(
			t,
			depthImage(8, 6, func(int, int) uint16 { return 1000 }),
		), "color_0.png": encode(t, colorImage(8, 6)),
	}
	for name, test := range tests {
		dir := t.TempDir()
		files["mask_0.png"] = encode(t, test.mask)
		write(t, dir, files)
		folder, err := OpenFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		var m depth.Image
		if err := folder.LoadImage(0, &m); err != nil || len(m.Labels) != 48 {
			t.Fatalf("%s: %d labels, error %v", name, len(m.Labels), err)
		}
		for i, label := range m.Labels {
			if want := test.label(i%8, i/8); label != want {
				t.Errorf("%s: label %d at pixel %d, expected %d", name, label, i, want)
			}
		}
	}
	dir := t.TempDir()
	files["mask_0.png"] = files["color_0.png"]
	write(t, dir, files)
	folder, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := folder.LoadImage(
		0,
		new(depth.Image),
	); !errors.Is(err, ErrImage) ||
		!strings.Contains(err.Error(), "mask_0.png") {
		t.Errorf("coloured labels: %v", err)
	}
}
