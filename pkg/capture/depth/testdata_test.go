package depth

import (
	"image"
	"image/png"
	"os"
	"path/filepath"
	"testing"
)

// seated is the camera of the recording of a seated person in the test data: 512 × 424 pixels, with
// near_m and far_m of its description.
var seated = Camera{
	Name:   "seated",
	Width:  512,
	Height: 424,
	FX:     366.557,
	FY:     366.557,
	CX:     254.003,
	CY:     204.552,
	Unit:   0.0001,
}

// seatedImage returns an image pair of the recording, or skips the test.
func seatedImage(t testing.TB, number string) *Image {
	t.Helper()
	root := os.Getenv("VOLSFU_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared", "data") // three folders below the module's root
	}
	dir := filepath.Join(root, "seated-human", "rgbd")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("skipped: test data not found at %s; set VOLSFU_TESTDATA", dir)
	}
	var m Image
	for _, kind := range []string{"depth", "color"} {
		file, err := os.Open(filepath.Join(dir, kind+"_"+number+".png"))
		if err != nil {
			t.Fatal(err)
		}
		picture, err := png.Decode(file)
		_ = file.Close()
		if err != nil {
			t.Fatal(err)
		}
		// With the race detector, reading pixels one by one is slow.
		switch picture := picture.(type) {
		case *image.Gray16:
			for i := 0; i < len(picture.Pix); i += 2 {
				m.Depth = append(m.Depth, uint16(picture.Pix[i])<<8|uint16(picture.Pix[i+1]))
			}
		case *image.RGBA:
			for i := 0; i < len(picture.Pix); i += 4 {
				m.Colors = append(m.Colors, [3]uint8(picture.Pix[i:i+3]))
			}
		}
	}
	return &m
}
